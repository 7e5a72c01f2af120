#include "fabric/sim/cluster.h"

#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::fabric::sim {
namespace {

constexpr double kPasses = 5;  // over parameters, of an update by one core

std::vector<int> Places(const ClusterOptions& options) {
  std::vector<int> node_of;
  for (int node = 0; node < options.nodes; ++node) node_of.insert(node_of.end(), options.workers_per_node, node);
  for (int node = 0; node < options.more_nodes; ++node) node_of.push_back(options.nodes + node);
  return node_of;
}

}  // namespace

Cluster::Cluster(ClusterOptions options, Flows& flows)
    : options_(std::move(options)),
      fibers_(options_.seed),
      flows_(flows),
      node_of_(Places(options_)),
      network_(fibers_, flows, options_.platform, node_of_),
      on_messages_(node_of_.size(), 0.0) {
  const int nodes = options_.nodes + options_.more_nodes;
  CHECK(options_.nodes >= 1 && nodes <= options_.platform.nodes && options_.workers_per_node >= 1);
  for (int node = 0; node < nodes; ++node) {
    cores_.push_back(std::make_unique<Cores>(fibers_, options_.platform.cores));
    if (node == options_.slow_node) cores_.back()->Slow(options_.slow_times);
  }
}

Cluster::~Cluster() = default;

void Cluster::Run(const Body& body) {
  for (int rank = 0; rank < size(); ++rank)
    fibers_.StartIn(rank, [this, rank, &body] {
      Member member(*this, rank);
      body(member);
    });
  fibers_.Run(&flows_);
}

std::unique_ptr<Fabric> Cluster::Member::Connect() {
  const Platform& platform = cluster_.options_.platform;
  SimOptions options = cluster_.options_.fabric;
  for (const int node : cluster_.node_of_) options.hosts.push_back(Str("node", node));
  Cores& cores = this->cores();
  const bool crowded = node() < cluster_.options_.nodes && cluster_.options_.workers_per_node > platform.cores;
  Charges charges{.message = (platform.message_us + (crowded ? platform.crowded_us : 0)) * 1e-6,
                  .copy_byte = 1e-9 / platform.copy_gb_s,
                  .add_byte = 1e-9 / platform.add_gb_s,
                  .short_byte = 1e-9 / (platform.short_gb_s > 0 ? platform.short_gb_s : platform.copy_gb_s),
                  .apply_byte = kPasses * 1e-9 * platform.cores / platform.memory_gb_s,
                  .codec_byte = 1e-9 / platform.codec_gb_s,
                  .work = cluster_.options_.work,
                  .spend = [&cores, &spent = cluster_.on_messages_[static_cast<std::size_t>(rank_)]](double seconds) {
                    spent += seconds;
                    cores.Work(seconds);
                  }};
  return std::make_unique<SimFabric>(cluster_.network_, rank_, options, cluster_.fibers_, std::move(charges));
}

}  // namespace freshet::fabric::sim
