#pragma once

#include <mpi.h>

#include <memory>
#include <span>
#include <string_view>

#include "fabric/mpi/engine.h"
#include "fabric/mpi/options.h"
#include "fabric/protocol/protocol_fabric.h"

namespace freshet::fabric {

// A fabric of processes that were started by MPI's launcher (Open MPI, MPICH): over whatever network MPI knows, with
// its own all-reduce as the native one. Who may take part is the launcher's business: there is no token, and what
// travels is as safe as MPI's network.
//
// The caller has started MPI with MPI_THREAD_MULTIPLE, and ends it when the fabric is gone.
//
// Threads:   as Fabric and ProtocolFabric say. MPI wakes nobody: who drives looks, then lets others run, then sleeps
//            for short times; the keeper looks now and then while nobody waits. A second thread is started for the
//            first Post.
// Ownership: the communicator is the fabric's alone while it lives, and is not used again once a group on it was lost.
// Blocking:  Connect, until all members are there; the destructor, at most a second, until the last words are out.
// Failure:   a member that is silent for heartbeat_misses heartbeats is lost. Where that ends the group, who notices
//            tells the others, so that all name the same; a member that leaves in order (its fabric is destroyed) is
//            then no loss to who wants nothing of it. A message longer than its receive is kInvalid for the receiver,
//            and for its sender too unless it was short. A transfer that timed out before it began may be started
//            again; one that timed out half way, and any native sum, ends the group. MPI does not survive the loss of a
//            process: after kPeerLost the process has to end without MPI_Finalize, which would wait for the lost.
//            Launchers then end the others, too. So a group that reports losses (OnLoss::kReport) goes on after members
//            that left, gave up or fell silent, not after the death of a process; and a loss with a long message half
//            way, or in a native sum, is the end for the member it happens to, which gives up: MPI keeps the memory.
class MpiFabric final : public ProtocolFabric {
 public:
  static Result<std::unique_ptr<MpiFabric>> Connect(MPI_Comm communicator, const MpiOptions& options,
                                                    base::Clock& clock);
  ~MpiFabric() override;

  std::string_view name() const override { return "mpi"; }
  // bytes_sent: what was handed to MPI; of a native sum the values once, whatever MPI makes of them.

  bool has_native() const override { return true; }
  Result<void> NativeAllReduce(std::span<float> values) override;

 private:
  MpiFabric(std::unique_ptr<mpi::Engine> engine, Settings settings, base::Clock& clock);
  void Rest(Duration idle, Duration longest) override REQUIRES(mutex());
  void Watch(Duration longest) override REQUIRES(mutex());
  void LeaveInOrder();

  mpi::Engine& engine_;                 // the base's own, and like what follows under its lock
  Duration nap_ GUARDED_BY(mutex()){};  // the last of who drives
};

}  // namespace freshet::fabric
