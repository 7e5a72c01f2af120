#pragma once

#include <mpi.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/mpi/engine.h"
#include "fabric/mpi/options.h"
#include "fabric/progress.h"

namespace freshet::fabric {

// A fabric of processes that were started by MPI's launcher (Open MPI, MPICH): over whatever network MPI knows, with
// its own all-reduce as the native one. Who may take part is the launcher's business: there is no token, and what
// travels is as safe as MPI's network.
//
// The caller has started MPI with MPI_THREAD_MULTIPLE, and ends it when the fabric is gone.
//
// Threads:   as Fabric says. Who waits moves the bytes itself: it looks, then lets others run, then sleeps for short
//            times. A thread of the fabric does so now and then while nobody waits, sends heartbeats and notices the
//            silence of others; a second one is started for the first Post.
// Ownership: the communicator is the fabric's alone while it lives, and is not used again once a group on it was lost.
// Blocking:  Connect, until all members are there; the destructor, at most a second, until the last words are out.
// Failure:   a member that is silent for heartbeat_misses heartbeats is lost. Who notices tells the others, so that all
//            name the same. A member that leaves in order (its fabric is destroyed) is no loss to who wants nothing of
//            it. A message longer than its receive is kInvalid for the receiver, and for its sender too unless it was
//            short. A transfer that timed out before it began may be started again; one that timed out half way, and
//            any native sum, ends the group.
//            MPI does not survive the loss of a process: after kPeerLost the process has to end without MPI_Finalize,
//            which would wait for the lost. Launchers then end the others, too.
class MpiFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<MpiFabric>> Connect(MPI_Comm communicator, const MpiOptions& options,
                                                    base::Clock& clock);
  ~MpiFabric() override;

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return engine_.rank(); }
  int size() const override { return engine_.size(); }
  std::uint64_t generation() const override { return options_.generation; }
  const std::string& host(int rank) const override { return engine_.host(rank); }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) override;
  Result<Transfer> StartReceive(int from, Tag tag, std::span<std::byte> into) override;
  Result<Transfer> StartReceiveAdd(int from, Tag tag, std::span<float> into) override;
  Result<Transfer> StartBorrow(int from, Tag tag) override;
  void Release(Transfer borrowed) override;
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) override;
  bool Done(Transfer transfer) override;
  void Post(std::function<void()> job) override;
  void Abort(const Error& why) override;
  // What was handed to MPI; of a native sum the values once, whatever MPI makes of them.
  std::uint64_t bytes_sent() const override;

  bool has_native() const override { return true; }
  Result<void> NativeAllReduce(std::span<float> values) override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Condition = std::function<bool()>;
  MpiFabric(MPI_Comm communicator, const MpiOptions& options, std::vector<std::string> hosts, base::Clock& clock);
  Result<Transfer> Start(Operation::Kind kind, int from, Tag tag, Landing landing);
  bool WaitFor(Lock& lock, const Condition& ready, base::Clock::Duration end);
  void Drive(Lock& lock, const Condition& ready, base::Clock::Duration end);
  void Keep();  // the life of the keeper
  void LeaveInOrder();

  const MpiOptions options_;  // constant after construction
  base::Clock& clock_;

  mutable std::mutex mutex_;         // guards everything below
  std::condition_variable changed_;  // something moved, or nobody drives: for those who wait without driving
  std::condition_variable stirred_;  // for the keeper
  mpi::Engine engine_;
  base::Clock::Duration spin_{};
  int waiting_ = 0;
  bool driven_ = false;  // one of the waiting moves the bytes
  bool stopping_ = false;

  std::optional<Progress> progress_;  // runs posted jobs
  std::thread keeper_;
};

}  // namespace freshet::fabric
