#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch_relay.h"
#include "launch_token.h"
#include "testimony.h"

namespace freshet::cli {

// A worker's exit code when others are gone, or go on without it; see docs/cli.md.
inline constexpr int kPeerLost = 4;

// How a worker is started.
struct WorkerStart {
  enum class Output { kInherit, kMark, kDrop };

  int rank = 0;
  std::string host = "localhost";           // for people
  std::string program = "/proc/self/exe";   // found in PATH when it has no slash
  std::vector<std::string> arguments = {};  // the first is the program's name
  std::vector<std::string> environment = {};
  Output out = Output::kDrop, err = Output::kMark;
  int token = -1;              // a descriptor the worker inherits under the same number
  bool testifies = false;      // it tells us what it has said to others, by FRESHET_AGENT_FD (elastic_seat.h)
  int testimony = -1;          // set by Start: the descriptor it does so by
  bool far = false;            // on another host: an agent there listens on its standard input
  int out_to = 1, err_to = 2;  // where marked lines go
};

// A process that is a worker, or the ssh that leads to one. It is in a process group of its own, so that Ctrl-C reaches
// it through us alone, and dies when we do.
//
// Threads: one. Ownership: the process; the destructor kills what is still running.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> Start(const WorkerStart& start);
  Worker(const Worker&) = delete;
  ~Worker();

  int rank() const { return rank_; }
  const std::string& host() const { return host_; }
  bool running() const { return pid_ > 0; }
  int code() const { return code_; }      // of its exit; 128 + n when signal n ended it
  int signal() const { return signal_; }  // that ended it, or 0
  bool far() const { return control_.open(); }
  bool asked() const { return asked_; }  // to end, by Signal
  std::vector<LineRelay>& relays() { return relays_; }

  // What it has said to the others of its group, as far as it has come.
  const std::optional<fabric::Proof>& Testimony();

  // Sends bytes to the agent of a worker that is far.
  void Tell(std::string_view bytes);
  // Sends a signal to the worker, wherever it runs.
  void Signal(int signal);
  // Has a signal stopped our own process?
  bool Frozen() const;
  // Lets it go on; how often that was done.
  int Wake();
  // Ends our own process and all it has started, now.
  void Kill();
  // Looks whether it has ended; does not wait.
  void Reap();

 private:
  Worker(const WorkerStart& start, pid_t pid, base::Descriptor control, base::Descriptor testimony,
         std::vector<LineRelay> relays);

  const int rank_;
  const std::string host_;
  base::Descriptor control_, testimony_;
  TestimonyReader heard_;
  std::vector<LineRelay> relays_;
  pid_t pid_;
  int code_ = 0, signal_ = 0;
  bool asked_ = false;
  int wakes_ = 0;
};

}  // namespace freshet::cli
