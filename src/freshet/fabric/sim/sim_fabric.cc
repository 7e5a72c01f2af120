#include "fabric/sim/sim_fabric.h"

#include <utility>

namespace freshet::fabric {
namespace {

std::unique_ptr<sim::Engine> NewEngine(sim::Network& network, int rank, const SimOptions& options,
                                       const base::Clock& clock) {
  Protocol::Settings settings{.rank = rank,
                              .hosts = options.hosts,
                              .eager_bytes = options.eager_bytes,
                              .max_message_bytes = options.max_message_bytes,
                              .heartbeat = options.heartbeat,
                              .heartbeat_misses = options.heartbeat_misses,
                              .on_loss = options.on_loss};
  while (settings.hosts.size() < static_cast<std::size_t>(network.size()))
    settings.hosts.push_back(Str("sim", settings.hosts.size()));
  return std::make_unique<sim::Engine>(network, std::move(settings), clock);
}

}  // namespace

SimFabric::SimFabric(sim::Network& network, int rank, const SimOptions& options, base::Clock& clock)
    : SimFabric(NewEngine(network, rank, options, clock), options, clock) {}

SimFabric::SimFabric(std::unique_ptr<sim::Engine> engine, const SimOptions& options, base::Clock& clock)
    : ProtocolFabric(std::move(engine),
                     {.generation = options.generation, .wait_timeout = options.wait_timeout, .spin = {}}, clock),
      engine_(static_cast<sim::Engine&>(this->engine())) {
  Begin();
}

SimFabric::~SimFabric() { End(); }

void SimFabric::Rest(Duration, Duration longest) {
  if (engine_.Quiet()) engine_.stirred().WaitUntil(mutex(), clock().Now() + longest);
}

void SimFabric::Watch(Duration longest) {
  if (awaited()) return Snooze(longest);  // who waits looks
  if (engine_.Quiet() && !stopping()) engine_.stirred().WaitUntil(mutex(), clock().Now() + longest);
  if (engine_.Turn() && awaited()) TellWaiting();
}

}  // namespace freshet::fabric
