#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/protocol/protocol_fabric.h"
#include "fabric/sim/engine.h"
#include "fabric/sim/wires.h"

namespace freshet::fabric {

struct SimOptions {
  std::uint64_t generation = 0;
  std::vector<std::string> hosts = {};  // by rank; none: each has its own
  base::Clock::Duration heartbeat = std::chrono::milliseconds(250);
  int heartbeat_misses = 12;           // a member silent for this many is lost
  OnLoss on_loss = OnLoss::kEndGroup;  // the same in all members
  base::Clock::Duration wait_timeout = std::chrono::minutes(10);
  std::size_t eager_bytes = 16 << 10;
  std::uint64_t max_message_bytes = std::uint64_t{16} << 30;
};

// A fabric whose members live in one process and in simulated time (base::Fibers), over simulated wires. Everything above and the protocol that finds losses are those of the other fabrics.
//
// Threads, blocking, failure: as Fabric and ProtocolFabric say; a member whose connection is closed is lost at once,
//          one that is frozen or cut off after heartbeat_misses heartbeats.
// Ownership: borrows wires and clock. The clock is of those fibers.
class SimFabric final : public ProtocolFabric {
 public:
  SimFabric(sim::Wires& wires, int rank, const SimOptions& options, base::Clock& clock, sim::Charges charges = {});
  ~SimFabric() override;

  std::string_view name() const override { return "sim"; }
  void Spend(std::string_view work, std::size_t bytes) override;

 private:
  void Rest(Duration idle, Duration longest) override REQUIRES(mutex());
  void Watch(Duration longest) override REQUIRES(mutex());
  void NobodyWaits() override REQUIRES(mutex());

  SimFabric(std::unique_ptr<sim::Engine> engine, const SimOptions& options, base::Clock& clock);

  sim::Engine& engine_;  // the base's own, under its lock
};

}  // namespace freshet::fabric
