#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "fabric/protocol/protocol_fabric.h"
#include "fabric/tcp/engine.h"
#include "fabric/tcp/options.h"

namespace freshet::fabric {

// A fabric of processes, on one host or several, that are connected by TCP, each with each. Long messages between
// processes of one host go through memory they share.
//
// Members prove to each other that they have the job's token before anything else; what follows is checked against
// damage, and encrypted where TcpOptions::tls says so. Nobody listens once the group stands.
//
// Threads:   as Fabric and ProtocolFabric say. Who drives looks for a short while, then sleeps until something comes;
//            so does the keeper while nobody waits. A second thread is started for the first Post.
// Blocking:  Connect, until all members are there or TcpOptions::stop is set; the destructor, at most a second, until
//            the last words are out.
// Failure:   a member that dies is lost at once, one that is frozen or cut off after heartbeat_misses heartbeats. Where
//            that ends the group, who notices tells the others, so that all name the same. A member that leaves in
//            order (its fabric is destroyed) is no loss to who wants nothing of it. A message longer than its receive
//            is kInvalid for the receiver, and for its sender too unless it was short and is not waited for any more. A
//            receive that timed out may be started again; a send that timed out half way is the loss of its receiver.
class TcpFabric final : public ProtocolFabric {
 public:
  struct Statistics {
    std::uint64_t bytes_sent = 0;    // through sockets
    std::uint64_t bytes_shared = 0;  // through shared memory
    int near = 0;                    // members on this host, this one included
    int sharing = 0;                 // of these, how many are reached through shared memory; fewer than
                                     // the other near ones: it was switched off, or could not be had
    std::uint64_t strangers = 0;     // turned away while the group came together
  };

  static Result<std::unique_ptr<TcpFabric>> Connect(const TcpOptions& options, base::Clock& clock);
  ~TcpFabric() override;

  std::string_view name() const override { return "tcp"; }
  Statistics statistics() const;

 private:
  TcpFabric(std::unique_ptr<tcp::Engine> engine, Settings settings, std::uint64_t strangers, base::Clock& clock);
  void Rest(Duration, Duration longest) override REQUIRES(mutex()) { Nap(longest); }
  void Watch(Duration longest) override REQUIRES(mutex());
  bool Look() override REQUIRES(mutex());
  void Nap(Duration longest) REQUIRES(mutex());
  void LeaveInOrder();

  const std::uint64_t strangers_;
  tcp::Engine& engine_;                 // the base's own, and like what follows under its lock
  int asleep_ GUARDED_BY(mutex()) = 0;  // threads that sleep on the engine
};

}  // namespace freshet::fabric
