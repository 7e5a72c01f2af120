#include "fabric/sim/sim_fabric.h"

#include <utility>

namespace freshet::fabric {
namespace {

std::unique_ptr<sim::Engine> NewEngine(sim::Wires& wires, int rank, const SimOptions& options, sim::Charges charges,
                                       const base::Clock& clock) {
  Protocol::Settings settings{.rank = rank,
                              .hosts = options.hosts,
                              .eager_bytes = options.eager_bytes,
                              .max_message_bytes = options.max_message_bytes,
                              .heartbeat = options.heartbeat,
                              .heartbeat_misses = options.heartbeat_misses,
                              .on_loss = options.on_loss};
  while (settings.hosts.size() < static_cast<std::size_t>(wires.size()))
    settings.hosts.push_back(Str("sim", settings.hosts.size()));
  return std::make_unique<sim::Engine>(wires, std::move(settings), std::move(charges), clock);
}

}  // namespace

SimFabric::SimFabric(sim::Wires& wires, int rank, const SimOptions& options, base::Clock& clock, sim::Charges charges)
    : SimFabric(NewEngine(wires, rank, options, std::move(charges), clock), options, clock) {}

SimFabric::SimFabric(std::unique_ptr<sim::Engine> engine, const SimOptions& options, base::Clock& clock)
    : ProtocolFabric(std::move(engine),
                     {.generation = options.generation, .wait_timeout = options.wait_timeout, .spin = {}}, clock),
      engine_(static_cast<sim::Engine&>(this->engine())) {
  Begin();
}

SimFabric::~SimFabric() { End(); }

void SimFabric::Spend(std::string_view work, std::size_t bytes) {
  const sim::Charges& charges = engine_.charges();
  if (!charges.spend) return;
  const auto found = charges.work.find(work);
  const double each = work == "add"     ? charges.add_byte
                      : work == "copy"  ? charges.copy_byte
                      : work == "apply" ? charges.apply_byte
                                        : charges.codec_byte;
  charges.spend(static_cast<double>(bytes) * (found != charges.work.end() ? found->second : each));
}

void SimFabric::NobodyWaits() {
  if (!engine_.Quiet()) engine_.WakeKeeper();
}

void SimFabric::Rest(Duration, Duration longest) {
  if (engine_.Quiet()) engine_.Rest(mutex(), clock().Now() + longest);
}

void SimFabric::Watch(Duration longest) {
  if ((awaited() || engine_.Quiet()) && !stopping()) engine_.Watch(mutex(), clock().Now() + longest);
  if (!awaited()) engine_.Turn();  // else who waits looks, and would not be woken for what was taken from under it
}

}  // namespace freshet::fabric
