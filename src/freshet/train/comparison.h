#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "fabric/sim/cluster.h"
#include "train/job.h"

namespace freshet::train {

// Ways of training together that run the same job one after another, so that they can be set side by side: how the loss
// falls with time, with epochs and with what travels.

// One of them.
struct Contender {
  std::string name;  // as it was written
  // What belongs to it is set, all else is left as it is.
  void Enter(Together& together) const;

  // bsp, ssp:3, asp:0.01, bap (of a parameter server); allreduce, allreduce:ring; average:8; groups:2,
  // groups:2:bap (through a parameter server); gossip, gossip:push-sum; ring. bsp+1, allreduce+1: does not wait for the slowest one.
  static Result<Contender> Parse(std::string_view text);

  std::string strategy, detail, synchrony = {};
  int backup = 0;
};

// Who computes more slowly than the others.
struct Straggler {
  double times = 1;          // as long
  int rank = -1;             // this one, always
  std::uint64_t one_in = 0;  // or everybody, in one of so many steps, drawn from a seed

  // 2x@1: rank 1 takes twice as long. 4x/10: each takes four times as long in one step of ten.
  static Result<Straggler> Parse(std::string_view text);
};

// What computing a row takes, in seconds: as it was said, or as it is measured on one core of this machine when somebody asks
// first. The same for all contenders. Threads: any.
class RowPrice {
 public:
  explicit RowPrice(double seconds = 0) : seconds_(seconds) {}
  double Of(const model::Model& model);

 private:
  base::Mutex mutex_;
  double seconds_ GUARDED_BY(mutex_);  // 0: not known yet
};

// Where they run: threads of this process, or workers of a simulated platform, one a node.
struct Arena {
  int workers = 4;
  Straggler straggler = {};
  RowPrice& row_price;                              // where computing is simulated, or made slower
  const fabric::sim::Platform* platform = nullptr;  // null: threads
  fabric::sim::Flows* flows = nullptr;              // of the platform
};

// How one of them did, by the clock of the arena.
struct Course {
  struct Moment {
    double seconds = 0, epochs = 0, bytes = 0;  // of training; sent by the first worker
    double loss = 0, rows = 0;                  // of the rows of that step, before it learned from them
  };
  std::string name;
  std::vector<Moment> moments;  // of the first worker, one a step
  double seconds = 0;           // until the last step
  std::uint64_t bytes = 0;      // sent by all
  Report report;
  std::vector<WorkerReport> workers;
};

// Runs the job, which says nothing of workers, by this contender. Blocking and failure as Run's.
Result<Course> RunCourse(const base::Env& env, const Job& job, const Contender& contender, const Arena& arena,
                         const std::atomic<bool>* stop);

}  // namespace freshet::train
