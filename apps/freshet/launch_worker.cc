#include "launch_worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "process_state.h"

namespace freshet::cli {
namespace {

Error SystemError(const std::string& what) { return Error{Code::kIo, Str(what, ": ", std::strerror(errno))}; }

// Both ends of a way for bytes; the other one goes to the worker.
struct Way {
  base::Descriptor ours, workers;
};

Result<Way> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("cannot make a pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Way{base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

Result<Way> MakeControl() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return SystemError("cannot make a socket");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Way{base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Open descriptors of a worker, as it will find them; -1 stays what it is.
struct Streams {
  int in = -1, out = -1, err = -1;
};

// In the new process. Never returns.
[[noreturn]] void Become(const WorkerStart& start, const Streams& streams, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before we asked to be told
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(streams.in >= 0 ? streams.in : nothing, 0);
  if (start.out != WorkerStart::Output::kInherit) dup2(streams.out >= 0 ? streams.out : nothing, 1);
  if (start.err != WorkerStart::Output::kInherit) dup2(streams.err >= 0 ? streams.err : nothing, 2);
  if (start.token >= 0) fcntl(start.token, F_SETFD, 0);
  if (start.testimony >= 0) fcntl(start.testimony, F_SETFD, 0);
  execvpe(start.program.c_str(), Pointers(start.arguments).data(), Pointers(start.environment).data());
  const std::string text = Str("freshet: cannot start ", start.program, ": ", std::strerror(errno), "\n");
  (void)!write(2, text.data(), text.size());
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::Start(const WorkerStart& start) {
  Streams streams;
  Way control, testimony, out, err;
  std::vector<LineRelay> relays;
  const std::string mark = Str("[rank ", start.rank, "] ");
  if (start.far) {
    control = TRY(MakeControl());
    streams.in = control.workers.get();
  }
  if (start.out == WorkerStart::Output::kMark) {
    out = TRY(MakePipe());
    streams.out = out.workers.get();
    relays.emplace_back(std::move(out.ours), start.out_to, mark);
  }
  if (start.err == WorkerStart::Output::kMark) {
    err = TRY(MakePipe());
    streams.err = err.workers.get();
    relays.emplace_back(std::move(err.ours), start.err_to, mark);
  }
  WorkerStart inherited = start;
  if (start.testifies) {
    testimony = TRY(MakeControl());
    inherited.testimony = testimony.workers.get();
    inherited.environment.push_back(Str("FRESHET_AGENT_FD=", inherited.testimony));
  }
  sigset_t all, before;  // held until the new process has no handlers of ours left, which would swallow them
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t parent = getpid(), pid = fork();
  if (pid != 0) sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SystemError(Str("cannot start rank ", start.rank));
  if (pid == 0) Become(inherited, streams, parent);
  setpgid(pid, pid);  // here too: it has to be so before we signal the group
  return std::unique_ptr<Worker>(
      new Worker(start, pid, std::move(control.ours), std::move(testimony.ours), std::move(relays)));
}

Worker::Worker(const WorkerStart& start, pid_t pid, base::Descriptor control, base::Descriptor testimony,
               std::vector<LineRelay> relays)
    : rank_(start.rank),
      host_(start.host),
      control_(std::move(control)),
      testimony_(std::move(testimony)),
      relays_(std::move(relays)),
      pid_(pid) {}

const std::optional<fabric::Proof>& Worker::Testimony() {
  char bytes[16 << 10];
  if (testimony_.open())
    for (ssize_t got = 0; (got = recv(testimony_.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      heard_.Add({bytes, static_cast<std::size_t>(got)});
  return heard_.last();
}

Worker::~Worker() {
  Kill();
  // A process that the system holds back is left to it: the signal waits there.
  for (int i = 0; running() && i < 100; ++i) {
    Reap();
    if (running()) usleep(10'000);
  }
}

void Worker::Tell(std::string_view bytes) {
  if (control_.open()) (void)!send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void Worker::Signal(int signal) {
  if (!running()) return;
  asked_ = true;
  if (far()) {
    const char byte = static_cast<char>(signal);
    Tell({&byte, 1});
  } else if (signal == SIGKILL) {
    Kill();
  } else {
    kill(pid_, signal);
  }
}

bool Worker::Frozen() const {
  const auto found = running() ? StateOf(pid_) : std::nullopt;
  return found.has_value() && found->frozen();
}

int Worker::Wake() {
  if (running()) kill(pid_, SIGCONT);
  return ++wakes_;
}

void Worker::Kill() {
  if (running()) kill(-pid_, SIGKILL);
}

void Worker::Reap() {
  siginfo_t ended{};
  if (!running() || waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid == 0)
    return;
  Kill();  // what it may have left behind, while the group's number is still ours
  int status = 0;
  waitpid(pid_, &status, 0);
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  code_ = WIFSIGNALED(status) ? 128 + signal_ : WEXITSTATUS(status);
  pid_ = -1;
}

}  // namespace freshet::cli
