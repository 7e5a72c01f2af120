#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/ring/cut.h"
#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// What one member of a ring has of a network: parameters of the layers that it holds, their gradient, and what the
// optimizer remembers of them. The learner's, which are the whole, are as they were when all last met.
//
// Threads: one. Ownership: borrows the learner. Failure: kInvalid when there is no memory;
// Give fails as the fabric does.
class OwnLayers {
 public:
  static Result<OwnLayers> Make(const Learner& learner, const std::vector<model::network::Facts>& facts,
                                const std::vector<LayerRange>& held);

  optimize::Parameters& parameters() { return *parameters_; }
  optimize::Gradient& gradient() { return gradient_; }
  optimize::Optimizer& optimizer() { return *optimizer_; }
  // The parameters as they were when they were last kept. Makes room for them the first time.
  Result<void> Keep();
  const optimize::Parameters& kept() const { return *kept_; }

  // Holds other layers from now on. What was held and still is stays as it is, the rest is zero. For a moment there is
  // memory for both.
  Result<void> Hold(const std::vector<LayerRange>& held);
  // Parameters of layers that are held, and what the optimizer remembers of them: block by block.
  std::vector<std::span<float>> Of(const LayerRange& layers);

  // Takes everything from the whole, when that is newer: at first, and after all have met.
  void Take();
  // The whole is newer.
  void Forget() {
    behind_ = true;
    ahead_ = false;
  }
  bool newer() const { return ahead_; }  // than the whole
  // An update was made: the whole is behind.
  void Changed();
  // Gives everything to the whole: what each member holds goes round the ring, until all have all. All call it together.
  Result<void> Give(fabric::Collectives& collectives);

  // All that is held, with which layers those are, as bytes; and what any member held, to the whole. kCorrupt for bytes that
  // are of no layers of this network.
  std::string Encode();
  Result<void> Decode(std::string_view bytes);

 private:
  OwnLayers(const Learner& learner, const std::vector<model::network::Facts>& facts);
  std::vector<std::size_t> BlocksOf(const LayerRange& layers) const;
  bool IsOfNetwork(const LayerRange& layers) const;
  std::vector<std::span<float>> OfWhole(const LayerRange& layers);

  Learner learner_;
  std::vector<std::size_t> first_block_;  // by layer, and behind the last
  std::vector<LayerRange> held_;
  std::optional<optimize::Parameters> parameters_, kept_;
  optimize::Gradient gradient_;
  std::unique_ptr<optimize::Optimizer> optimizer_;
  bool behind_ = true, ahead_ = false;  // of the whole
};

}  // namespace freshet::strategy::ring
