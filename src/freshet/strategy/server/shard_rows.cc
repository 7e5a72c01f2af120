// What a shard has: given to others and taken, followed from the whole, and where its rows lie.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "strategy/server/shard.h"

namespace freshet::strategy::server {
namespace {

template <class Visit>
void EachOwnStretch(const optimize::Parameters& parameters, Placement& placement, int shard, const Visit& visit) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    for (std::uint64_t first = 0; first < parameters.rows(b) && parameters.width(b) > 0;) {
      const Placement::Stretch stretch = placement.StretchFrom(b, first, parameters.rows(b));
      if (stretch.server == shard) visit(b, first, stretch.last);
      first = stretch.last;
    }
}

struct GivenHead {
  std::uint64_t clock = 0, version = 0, step = 0;
};

}  // namespace

std::string Shard::Give(Placement& placement, int shard) const {
  std::string given;
  const auto put = [&](const void* from, std::size_t bytes) { given.append(static_cast<const char*>(from), bytes); };
  const GivenHead head{clock_, version_, optimizer_->step()};
  put(&head, sizeof head);
  for (const Standing& each : workers_) put(&each.clock, sizeof each.clock);
  for (std::size_t b = 0; b < parameters_.blocks(); ++b) {
    const std::uint64_t rows = parameters_.rows(b);
    put(&rows, sizeof rows);
  }
  for (const optimize::Parameters* all : {&parameters_, &std::as_const(*optimizer_).state()})
    EachOwnStretch(*all, placement, shard, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t row = first; row < last; ++row) put(all->Row(b, row), all->width(b) * sizeof(float));
    });
  return given;
}

Result<void> Shard::Take(std::string_view given, Placement& placement, int shard) {
  const auto take = [&](void* to, std::size_t bytes) {
    if (given.size() < bytes) return false;
    given.copy(static_cast<char*>(to), bytes);  // which may be nothing, to nowhere
    given.remove_prefix(bytes);
    return true;
  };
  GivenHead head;
  if (!take(&head, sizeof head)) return Reader::Damaged();
  Retreat();
  clock_ = head.clock;
  version_ = head.version;
  for (Standing& each : workers_)
    if (!take(&each.clock, sizeof each.clock)) return Reader::Damaged();
  std::vector<std::uint64_t> rows(parameters_.blocks());
  if (!take(rows.data(), rows.size() * sizeof rows[0])) return Reader::Damaged();
  TRY(model_.MakeRoom(parameters_, rows));
  TRY(optimizer_->Follow(parameters_));
  optimizer_->SetStep(head.step);
  bool whole = true;
  for (optimize::Parameters* all : {&parameters_, &optimizer_->state()})
    EachOwnStretch(*all, placement, shard, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t row = first; row < last && row < rows[b]; ++row)
        whole = whole && take(all->Row(b, row), all->width(b) * sizeof(float));
    });
  if (!whole || !given.empty()) return Reader::Damaged();
  return {};
}

Result<void> Shard::Follow(const optimize::Parameters& start, const optimize::Parameters& state, Placement& placement) {
  CHECK(idle());
  if (options_.large == nullptr) {
    parameters_.CopyFrom(start);
    TRY(optimizer_->Follow(parameters_));
    optimizer_->state().CopyFrom(state);
    return {};
  }
  if (!own_rows_) {
    std::vector<optimize::Block> blocks;
    for (std::size_t b = 0; b < start.blocks(); ++b) blocks.push_back(parameters_.block(b));
    own_rows_.emplace(blocks, options_.heat.range_rows);
  }
  Result<void> taken;
  EachOwnStretch(start, placement, options_.number, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t row = first; row < last && taken.ok(); ++row) {
      std::optional<std::uint64_t> place = own_rows_->Find(b, row);
      if (!place) {
        const auto added = AddPlaces(b, row);
        if (!added.ok()) taken = added.error();
        if (!added.ok()) return;
        place = own_rows_->Find(b, row);
      }
      std::copy_n(start.Row(b, row), start.width(b), parameters_.Row(b, *place));
      if (state.width(b) > 0) std::copy_n(state.Row(b, row), state.width(b), optimizer_->state().Row(b, *place));
    }
  });
  for (std::size_t b = 0; b < start.blocks(); ++b) own_rows_->Name(b, start.rows(b));
  return taken;
}

Result<std::uint64_t> Shard::AddPlaces(std::size_t b, std::uint64_t row) {
  if (!own_rows_->MayHave(b, row)) return Reader::Damaged();
  const std::uint64_t ranges = own_rows_->RangeRows(b), first = own_rows_->Add(b, row);
  TRY(parameters_.Grow(b, first + ranges));
  TRY(optimizer_->Follow(parameters_));
  model_.StartRows(parameters_, b, first, first + ranges, row / ranges * ranges);
  return first + row % ranges;
}

Result<std::span<const std::uint32_t>> Shard::Places(std::size_t b, std::span<const std::uint32_t> rows) {
  const std::uint64_t end = std::uint64_t{*std::max_element(rows.begin(), rows.end())} + 1;
  if (!own_rows_ || !own_rows_->packs(b)) {
    TRY(MakeRoom(b, end));
    return rows;
  }
  own_rows_->Name(b, end);
  places_.clear();
  for (const std::uint32_t row : rows) {
    const std::optional<std::uint64_t> place = own_rows_->Find(b, row);
    places_.push_back(static_cast<std::uint32_t>(place ? *place : TRY(AddPlaces(b, row))));
  }
  return std::span<const std::uint32_t>(places_);
}

void Shard::NameByPlace(data::Rows& sizes) const {
  constexpr std::size_t kFeatures = 0;  // the block that has a row for each
  std::size_t kept = 0;
  for (std::size_t e = 0; e < sizes.indices.size(); ++e)
    if (const auto place = own_rows_->Find(kFeatures, sizes.indices[e])) {
      sizes.indices[kept] = static_cast<std::uint32_t>(*place);
      sizes.values[kept++] = sizes.values[e];
    }
  sizes.offsets[1] = static_cast<std::uint32_t>(kept);
}

void Shard::CopyRows(What what, std::size_t b, std::uint64_t first, std::uint64_t last, float* to) const {
  const optimize::Parameters& all = what == What::kState ? std::as_const(*optimizer_).state() : parameters_;
  const std::uint64_t width = all.width(b);
  for (std::uint64_t row = first; row < last; ++row, to += width) {
    const std::optional<std::uint64_t> place = own_rows_ ? own_rows_->Find(b, row) : row;
    if (place && *place < all.rows(b)) std::copy_n(all.Row(b, *place), width, to);
  }
}

}  // namespace freshet::strategy::server
