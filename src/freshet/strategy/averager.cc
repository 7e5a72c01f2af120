#include "strategy/averager.h"

#include <algorithm>
#include <cstring>

#include "base/hollow.h"

namespace freshet::strategy {
namespace {

bool IsHollow(const optimize::Parameters& parameters) {
  return parameters.blocks() > 0 && base::IsHollow(parameters.Row(0, 0));
}

}  // namespace

void Averager::Pack(const optimize::Parameters& parameters) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    packed_.insert(packed_.end(), values.begin(), values.end());
  }
}

void Averager::Unpack(optimize::Parameters& parameters, std::size_t& at) const {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    std::copy_n(packed_.data() + at, values.size(), values.data());
    at += values.size();
  }
}

// Workers that read rows of their own may know of features that others have not met: all get as many rows as the one
// that has most.
Result<void> Averager::MatchRows() {
  optimize::Parameters& parameters = world_.parameters;
  std::vector<std::uint64_t> mine(parameters.blocks());
  for (std::size_t b = 0; b < mine.size(); ++b) mine[b] = parameters.rows(b);
  const auto all = TRY(world_.collectives.Gather(std::as_bytes(std::span<const std::uint64_t>(mine))));
  std::vector<std::uint64_t> most = mine, theirs(mine.size());
  for (const auto& bytes : all) {
    CHECK(bytes.size() == theirs.size() * sizeof(std::uint64_t));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (std::size_t b = 0; b < most.size(); ++b) most[b] = std::max(most[b], theirs[b]);
  }
  for (std::size_t b = 0; b < most.size(); ++b) TRY(parameters.Grow(b, most[b]));
  return world_.optimizer.Follow(parameters);
}

void Averager::Begin() {
  if (momentum_ == 0 || !before_.empty()) return;  // it goes on where an earlier run was
  if (IsHollow(world_.parameters)) return;
  packed_.clear();
  Pack(world_.parameters);
  before_ = packed_;
  velocity_.assign(before_.size(), 0.0f);
}

Result<void> Averager::Run() {
  TRY(MatchRows());
  if (IsHollow(world_.parameters)) return RunHollow();
  packed_.clear();
  Pack(world_.parameters);
  const std::size_t weights = packed_.size();
  if (with_state_) Pack(world_.optimizer.state());
  floats_ = packed_.size();
  world_.collectives.fabric().Spend("copy", floats_ * sizeof(float));
  TRY(world_.collectives.AllReduce(packed_));
  world_.collectives.fabric().Spend("copy", (momentum_ > 0 ? 4 : 2) * floats_ * sizeof(float));
  const float share = 1.0f / static_cast<float>(world_.collectives.fabric().size());
  for (float& value : packed_) value *= share;
  if (momentum_ > 0) {
    before_.resize(weights, 0.0f);  // rows that came meanwhile begin at nothing
    velocity_.resize(weights, 0.0f);
    for (std::size_t i = 0; i < weights; ++i) {
      velocity_[i] = static_cast<float>(momentum_) * velocity_[i] + (packed_[i] - before_[i]);
      packed_[i] = before_[i] = before_[i] + velocity_[i];
    }
  }
  std::size_t at = 0;
  Unpack(world_.parameters, at);
  if (with_state_) Unpack(world_.optimizer.state(), at);
  return {};
}

// The same of parameters of which only the size is of interest.
Result<void> Averager::RunHollow() {
  floats_ = world_.parameters.size() + (with_state_ ? world_.optimizer.state().size() : 0);
  fabric::Fabric& fabric = world_.collectives.fabric();
  fabric.Spend("copy", floats_ * sizeof(float));
  TRY(world_.collectives.AllReduce(base::HollowFloats(floats_)));
  fabric.Spend("copy", (momentum_ > 0 ? 4 : 2) * floats_ * sizeof(float));
  return {};
}

void Averager::Save(std::vector<data::Tensor>& tensors) const {
  if (momentum_ == 0) return;
  const auto add = [&](std::string name, std::span<const float> values) {
    tensors.push_back({std::move(name), data::DType::kF32, {values.size()}, std::as_bytes(values)});
  };
  add("average.before", before_);
  add("average.velocity", velocity_);
}

Result<void> Averager::Load(const data::TensorFile& file) {
  if (momentum_ == 0) return {};
  before_ = TRY(file.Values<float>("average.before"));
  velocity_ = TRY(file.Values<float>("average.velocity"));
  return {};
}

}  // namespace freshet::strategy
