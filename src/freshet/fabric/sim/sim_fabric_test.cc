#include "fabric/sim/sim_fabric.h"

#include "fabric/fabric_suite_testing.h"
#include "fabric/sim/network.h"

namespace freshet::fabric {
namespace {

FabricFactory SimFactory(std::uint64_t seed) {
  FabricFactory factory;
  factory.name = Str("Seed", seed);
  factory.simulated = false;  // by any clock but its own
  factory.seeds = 20;
  factory.run = [seed](const GroupSpec& spec, const MemberBody& body) {
    base::Fibers fibers(seed);
    sim::Network network(fibers, spec.size, {}, seed);
    const SimOptions options{
        .generation = spec.generation, .hosts = spec.hosts, .on_loss = spec.on_loss, .wait_timeout = spec.timeout};
    std::vector<std::unique_ptr<Fabric>> members(static_cast<std::size_t>(spec.size));
    fibers.StartIn(0, [&] {
      for (int rank = 0; rank < spec.size; ++rank)
        members[static_cast<std::size_t>(rank)] = std::make_unique<SimFabric>(network, rank, options, fibers);
      RunAll(members, fibers, body);
      members.clear();
    });
    fibers.Run();
  };
  return factory;
}

INSTANTIATE_TEST_SUITE_P(Sim, FabricSuite, ::testing::Values(SimFactory(1)), NameOfFactory);

}  // namespace
}  // namespace freshet::fabric
