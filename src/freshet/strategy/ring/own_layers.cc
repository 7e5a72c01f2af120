#include "strategy/ring/own_layers.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/hollow.h"
#include "fabric/collectives/transfers.h"

namespace freshet::strategy::ring {
namespace {

using Values = std::vector<std::span<float>>;

void Copy(const Values& from, const Values& to) {
  CHECK(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    CHECK(from[i].size() == to[i].size());
    if (!base::IsHollow(to[i].data())) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  }
}

Values ValuesOf(optimize::Parameters& parameters, optimize::Optimizer& optimizer,
                const std::vector<std::size_t>& blocks) {
  Values values;
  for (const std::size_t b : blocks) {
    values.push_back(parameters.Values(b));
    if (optimizer.slots() > 0) values.push_back(optimizer.state().Values(b));
  }
  return values;
}

}  // namespace

OwnLayers::OwnLayers(const Learner& learner, const std::vector<model::network::Facts>& facts)
    : learner_(learner), first_block_(1, 0) {
  for (const model::network::Facts& layer : facts) first_block_.push_back(first_block_.back() + layer.blocks.size());
}

Result<OwnLayers> OwnLayers::Make(const Learner& learner, const std::vector<model::network::Facts>& facts,
                                  const std::vector<LayerRange>& held) {
  OwnLayers own(learner, facts);
  TRY(own.Hold(held));
  return own;
}

Result<void> OwnLayers::Hold(const std::vector<LayerRange>& held) {
  optimize::Portion portion;
  portion.ranges.emplace();
  for (const LayerRange& layers : held)
    for (const std::size_t b : BlocksOf(layers)) portion.ranges->push_back({.block = b});
  gradient_ = {};  // it is of a step, and between two there is none
  gradient_ = TRY(learner_.model.NewGradient(learner_.memory, portion));
  auto parameters = TRY(optimize::Parameters::Create(portion.Of(learner_.model.Blocks()), learner_.memory));
  auto optimizer = TRY(optimize::Optimizer::Make(learner_.optimizer.options(), learner_.memory));
  TRY(optimizer->Follow(parameters));
  if (parameters_) {
    for (std::size_t b = 0; b < parameters.blocks(); ++b)
      if (parameters.held(b) && parameters_->held(b))
        Copy(ValuesOf(*parameters_, *optimizer_, {b}), ValuesOf(parameters, *optimizer, {b}));
    optimizer->SetStep(optimizer_->step());
  }
  parameters_ = std::move(parameters);
  optimizer_ = std::move(optimizer);
  kept_.reset();
  held_ = held;
  return {};
}

Result<void> OwnLayers::Keep() {
  if (!kept_) {
    std::vector<optimize::Block> blocks;
    for (std::size_t b = 0; b < parameters_->blocks(); ++b) blocks.push_back(parameters_->block(b));
    kept_ = TRY(optimize::Parameters::Create(std::move(blocks), learner_.memory));
  }
  for (std::size_t b = 0; b < parameters_->blocks(); ++b) Copy({parameters_->Values(b)}, {kept_->Values(b)});
  return {};
}

std::vector<std::size_t> OwnLayers::BlocksOf(const LayerRange& layers) const {
  const std::size_t first = first_block_[static_cast<std::size_t>(layers.first)];
  std::vector<std::size_t> blocks(first_block_[static_cast<std::size_t>(layers.last)] - first);
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

Values OwnLayers::Of(const LayerRange& layers) { return ValuesOf(*parameters_, *optimizer_, BlocksOf(layers)); }

Values OwnLayers::OfWhole(const LayerRange& layers) {
  return ValuesOf(learner_.parameters, learner_.optimizer, BlocksOf(layers));
}

void OwnLayers::Take() {
  if (!std::exchange(behind_, false)) return;
  for (const LayerRange& layers : held_) Copy(OfWhole(layers), Of(layers));
  optimizer_->SetStep(learner_.optimizer.step());
}

void OwnLayers::Changed() {
  learner_.optimizer.SetStep(optimizer_->step());
  ahead_ = true;
}

bool OwnLayers::IsOfNetwork(const LayerRange& layers) const {
  return layers.first >= 0 && layers.first <= layers.last && layers.last < static_cast<int>(first_block_.size());
}

std::string OwnLayers::Encode() {
  std::string bytes;
  const auto put = [&](const void* values, std::size_t size) { bytes.append(static_cast<const char*>(values), size); };
  const std::uint64_t step = optimizer_->step(), ranges = held_.size();
  put(&step, sizeof step);
  put(&ranges, sizeof ranges);
  put(held_.data(), held_.size() * sizeof held_[0]);
  for (const LayerRange& layers : held_)
    for (const std::span<float> values : ValuesOf(*parameters_, *optimizer_, BlocksOf(layers)))
      put(values.data(), values.size_bytes());
  return bytes;
}

Result<void> OwnLayers::Decode(std::string_view bytes) {
  const Error damaged{Code::kCorrupt,
                      "what another worker held of the network is damaged; do all run the same program?"};
  const auto take = [&](void* to, std::size_t size) {
    if (bytes.size() < size) return false;
    bytes.copy(static_cast<char*>(to), size);  // which may be nothing, to nowhere
    bytes.remove_prefix(size);
    return true;
  };
  std::uint64_t step = 0, ranges = 0;
  if (!take(&step, sizeof step) || !take(&ranges, sizeof ranges) || ranges > bytes.size() / sizeof(LayerRange))
    return damaged;
  std::vector<LayerRange> held(ranges);
  take(held.data(), held.size() * sizeof held[0]);
  for (const LayerRange& layers : held) {
    if (!IsOfNetwork(layers)) return damaged;
    for (const std::span<float> values : OfWhole(layers))
      if (!take(values.data(), values.size_bytes())) return damaged;
  }
  if (!bytes.empty()) return damaged;
  learner_.optimizer.SetStep(step);
  return {};
}

// Who holds what is known to its neighbours alone, so that everything travels with the numbers of its layers.
Result<void> OwnLayers::Give(fabric::Collectives& collectives) {
  if (!std::exchange(ahead_, false)) return {};
  for (const LayerRange& layers : held_) Copy(Of(layers), OfWhole(layers));
  behind_ = true;
  fabric::Fabric& fabric = collectives.fabric();
  const int rank = fabric.rank(), size = fabric.size();
  std::vector<std::vector<LayerRange>> passed(static_cast<std::size_t>(size));  // there while they travel
  passed[0] = held_;
  fabric::Transfers transfers(fabric, collectives.NextTag(), "bringing all parts of the model to all");
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (std::size_t round = 0; round + 1 < passed.size(); ++round) {
    TRY(transfers.SendAny(next, std::as_bytes(std::span(passed[round]))));
    for (const LayerRange& layers : passed[round])
      for (const std::span<float> values : OfWhole(layers)) TRY(transfers.Send(next, fabric::AsBytes(values)));
    const auto lent = TRY(transfers.Borrow(before));
    const fabric::Arrived told = TRY(transfers.Wait(lent));
    std::vector<LayerRange>& theirs = passed[round + 1];
    theirs.resize(told.view.size() / sizeof(LayerRange));
    if (!theirs.empty()) std::memcpy(theirs.data(), told.view.data(), theirs.size() * sizeof(LayerRange));
    transfers.Release(lent);
    for (const LayerRange& layers : theirs) {
      if (!IsOfNetwork(layers))
        return Error{Code::kCorrupt, Str("rank ", before, " gave layers ", layers.first, " … ", layers.last,
                                         " of a network of ", first_block_.size() - 1)};
      for (const std::span<float> values : OfWhole(layers))
        TRY(transfers.Wait(TRY(transfers.Receive(before, fabric::AsBytes(values)))));
    }
  }
  return transfers.WaitAll();
}

}  // namespace freshet::strategy::ring
