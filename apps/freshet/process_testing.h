#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/scratch_testing.h"
#include "base/str.h"

namespace freshet::cli {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  // the program takes more memory than it would
#else
inline constexpr bool kSanitized = false;
#endif

// A run of the program in a directory of its own: what tests of the command line share.

struct Finished {
  int code = -1;    // exit code; 128 + n when signal n ended it
  std::string out;  // standard output
  std::string err;  // standard error
  double peak_mb = 0;

  std::vector<std::string> ErrorLines() const {
    std::vector<std::string> lines;
    for (const std::string_view line : Split(err, '\n'))
      if (line.starts_with("freshet: ")) lines.emplace_back(line.substr(9));
    return lines;
  }
};

// The program under test, which lies beside the one that tests it.
inline std::string Binary() { return std::filesystem::read_symlink("/proc/self/exe").replace_filename("freshet"); }

struct Surroundings {
  std::string program = Binary();
  std::string input = "/dev/null";  // where standard input comes from
  std::string output = "";          // where standard output goes; "" is kept and returned
  std::map<std::string, std::string> environment = {};
  int input_descriptor = -1;  // instead of `input`
};

// A port of this machine that nobody uses just now.
inline int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class Process {
 public:
  Process(const base::ScratchDirectory& scratch, const std::vector<std::string>& arguments, const Surroundings& around)
      : scratch_(scratch), name_(Str("process", ++count_)) {
    std::vector<char*> argv = {const_cast<char*>("freshet")};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string out = around.output.empty() ? scratch_ / (name_ + ".out") : around.output,
                      err = scratch_ / (name_ + ".err");
    pid_ = fork();
    if (pid_ == 0) {
      if (chdir(scratch_.path().c_str()) != 0) _exit(99);
      const int in_fd = around.input_descriptor >= 0 ? around.input_descriptor : open(around.input.c_str(), O_RDONLY);
      dup2(in_fd, 0);
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
      for (int fd = 3; fd < 64; ++fd) close(fd);
      for (const auto& [key, value] : around.environment) setenv(key.c_str(), value.c_str(), 1);
      execv(around.program.c_str(), argv.data());
      _exit(98);
    }
  }
  Process(const Process&) = delete;
  ~Process() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  // What has been written to standard error so far.
  std::string said() const { return scratch_.Read(name_ + ".err"); }
  // Has it opened this file?
  bool HasOpen(const std::string& path) const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(Str("/proc/", pid_, "/fd"), error))
      if (std::filesystem::read_symlink(entry.path(), error) == path) return true;
    return false;
  }
  bool Running() {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  // Waits until `condition` holds; false when the process ends before.
  template <class Condition>
  bool WaitUntil(Condition condition) {
    while (Running()) {
      if (condition()) return true;
      usleep(500);
    }
    return condition();
  }
  Finished Wait() {
    Finished finished;
    int status = 0;
    rusage usage{};
    wait4(pid_, &status, 0, &usage);
    pid_ = -1;
    finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    finished.peak_mb = static_cast<double>(usage.ru_maxrss) / 1000;
    finished.out = scratch_.Read(name_ + ".out");
    finished.err = scratch_.Read(name_ + ".err");
    return finished;
  }

 private:
  static inline int count_ = 0;
  const base::ScratchDirectory& scratch_;
  const std::string name_;
  pid_t pid_ = -1;
};

}  // namespace freshet::cli
