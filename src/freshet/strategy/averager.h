#pragma once

#include <vector>

#include "fabric/collectives/collectives.h"
#include "optimize/parameters.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// What is told of an exchange of so many bytes.
inline base::Trace::Details HowSent(const Strategy::World& world, std::uint64_t bytes) {
  return {.bytes = bytes, .algorithm = std::string(NameOf(world.collectives.AlgorithmFor(bytes)))};
}

// Brings the parameters of all workers to their mean, perhaps with a momentum of its own: the mean's movement since the
// last time carries on (Chen and Huo, "Scalable Training of Deep Learning Machines by Incremental Block Training").
class Averager {
 public:
  Averager(const Strategy::World& world, double momentum, bool with_state)
      : world_(world), momentum_(momentum), with_state_(with_state) {}

  Result<void> Run();
  // Starts a movement from the parameters as they are.
  void Begin();
  std::uint64_t floats() const { return floats_; }  // that were averaged the last time

  void Save(std::vector<data::Tensor>& tensors) const;
  Result<void> Load(const data::TensorFile& file);

 private:
  Result<void> MatchRows();
  Result<void> RunHollow();
  void Pack(const optimize::Parameters& parameters);
  void Unpack(optimize::Parameters& parameters, std::size_t& at) const;

  const Strategy::World world_;
  const double momentum_;
  const bool with_state_;
  std::uint64_t floats_ = 0;
  std::vector<float> packed_;             // all blocks, one after another
  std::vector<float> before_, velocity_;  // with momentum
};

}  // namespace freshet::strategy
