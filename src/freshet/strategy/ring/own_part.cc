#include "strategy/ring/own_part.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace freshet::strategy::ring {
namespace {

// In front of the rows of each block, and the values.
struct Head {
  std::uint64_t members = 0, member = 0, step = 0, blocks = 0;
};

}  // namespace

Result<OwnPart> OwnPart::Make(const Learner& learner, int member, int members) {
  Spread spread(learner.model, members);
  Held held = TRY(Hold(learner, spread, member));
  return OwnPart(learner, member, members, std::move(spread), std::move(held));
}

Result<OwnPart::Held> OwnPart::Hold(const Learner& learner, const Spread& spread, int member) {
  auto parameters = TRY(optimize::Parameters::Create(spread.BlocksOf(member), learner.memory));
  auto optimizer = TRY(optimize::Optimizer::Make(learner.optimizer.options(), learner.memory));
  TRY(optimizer->Follow(parameters));
  auto gradient = TRY(learner.model.NewGradient(learner.memory, spread.PortionOf(member)));
  return Held{std::move(parameters), std::move(optimizer), std::move(gradient)};
}

OwnPart::OwnPart(const Learner& learner, int member, int members, Spread spread, Held held)
    : learner_(learner),
      member_(member),
      members_(members),
      spread_(std::move(spread)),
      held_(std::move(held)),
      taken_(held_.parameters.blocks(), 0) {}

Result<void> OwnPart::Take() {
  const auto slots = static_cast<std::uint64_t>(held_.optimizer->slots());
  bool taken = false;
  for (std::size_t b = 0; b < taken_.size(); ++b) {
    const std::uint64_t rows = learner_.parameters.rows(b), from = taken_[b];
    if (rows <= from) continue;
    TRY(held_.parameters.Grow(b, spread_.CountRows(b, member_, rows)));
    TRY(held_.optimizer->Follow(held_.parameters));
    spread_.Take(learner_.parameters, b, member_, 1, from, held_.parameters.Row(b, 0));
    if (slots > 0)
      spread_.Take(learner_.optimizer.state(), b, member_, slots, from, held_.optimizer->state().Row(b, 0));
    taken_[b] = rows;
    taken = true;
  }
  if (!taken) return {};
  if (spread_.by_features()) FindPlaces();
  held_.optimizer->SetStep(learner_.optimizer.step());
  return {};
}

void OwnPart::GiveBack() {
  const auto slots = static_cast<std::uint64_t>(held_.optimizer->slots());
  for (std::size_t b = 0; b < taken_.size(); ++b) {
    spread_.Give(held_.parameters.Values(b), b, member_, 1, 0, learner_.parameters);
    if (slots > 0) spread_.Give(held_.optimizer->state().Values(b), b, member_, slots, 0, learner_.optimizer.state());
  }
}

Result<void> OwnPart::Recut() {
  held_ = TRY(Hold(learner_, spread_, member_));
  Forget();
  places_.clear();
  placed_ = 0;
  return {};
}

void OwnPart::VisitColumns(std::span<const std::uint32_t> columns, const Visit& visit) {
  using Cut = model::Partials::Cut;
  const auto slots = static_cast<std::uint64_t>(held_.optimizer->slots());
  for (std::size_t b = 0; b < taken_.size(); ++b) {
    const Cut cut = learner_.model.partials()->cut(b);
    for (const bool state : {false, true}) {
      optimize::Parameters& whole = state ? learner_.optimizer.state() : learner_.parameters;
      const std::uint64_t times = state ? slots : 1, width = learner_.parameters.width(b), rows = whole.rows(b);
      if (times == 0) continue;
      const auto visit_rows = [&](std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t row = first; row < std::min(last, rows); ++row) visit({whole.Row(b, row), times * width});
      };
      if (cut == Cut::kFeatures)
        for (const std::uint64_t range : columns)
          visit_rows(range * Spread::kRangeRows, (range + 1) * Spread::kRangeRows);
      if (cut == Cut::kRows) visit_rows(columns[0], columns[1]);
      if (cut != Cut::kNumbers) continue;
      for (std::uint64_t row = 0; row < rows; ++row)
        for (std::uint64_t slot = 0; slot < times; ++slot)
          visit({whole.Row(b, row) + slot * width + columns[0], columns[1] - columns[0]});
    }
  }
}

std::vector<float> OwnPart::Gather(std::span<const std::uint32_t> columns) {
  std::vector<float> all;
  VisitColumns(columns, [&](std::span<float> values) { all.insert(all.end(), values.begin(), values.end()); });
  return all;
}

bool OwnPart::Scatter(std::span<const std::uint32_t> columns, std::span<const float> values) {
  std::size_t wanted = 0;
  VisitColumns(columns, [&](std::span<float> to) { wanted += to.size(); });
  if (wanted != values.size()) return false;
  VisitColumns(columns, [&](std::span<float> to) {
    std::copy_n(values.begin(), to.size(), to.begin());
    values = values.subspan(to.size());
  });
  return true;
}

void OwnPart::FindPlaces() {
  const std::uint64_t rows = *std::max_element(taken_.begin(), taken_.end());
  const std::uint64_t ranges = (rows + Spread::kRangeRows - 1) / Spread::kRangeRows;
  while (places_.size() < ranges) places_.push_back(spread_.OwnerOfRange(places_.size()) == member_ ? placed_++ : -1);
}

// The same number for all, who each have about as much.
std::uint64_t OwnPart::Pieces(std::size_t b, bool state) {
  const optimize::Parameters& whole = state ? learner_.optimizer.state() : learner_.parameters;
  constexpr std::uint64_t kSmall = 1 << 18, kMost = 16;  // floats of what is not worth cutting
  const std::uint64_t floats = whole.Values(b).size() / static_cast<std::uint64_t>(spread_.members());
  return std::clamp<std::uint64_t>(floats / kSmall, 1, kMost);
}

Spread::Range OwnPart::PieceOf(std::size_t b, bool state, std::uint64_t piece, int member) {
  const auto slots = state ? static_cast<std::uint64_t>(held_.optimizer->slots()) : 1;
  const std::uint64_t rows = spread_.CountRows(b, member, learner_.parameters.rows(b));
  const std::uint64_t width = slots * spread_.ColumnsOf(b, member).size(), pieces = Pieces(b, state);
  return {piece * rows / pieces * width, (piece + 1) * rows / pieces * width};
}

std::span<const float> OwnPart::Values(std::size_t b, bool state, std::uint64_t piece) {
  const optimize::Parameters& table = state ? held_.optimizer->state() : held_.parameters;
  const Spread::Range floats = PieceOf(b, state, piece, member_);
  CHECK(floats.last <= table.Values(b).size());  // Take comes before
  return table.Values(b).subspan(floats.first, floats.size());
}

bool OwnPart::AllHave(std::size_t b) const { return learner_.model.partials()->cut(b) == model::Partials::Cut::kAll; }

Result<void> OwnPart::Put(std::size_t b, bool state, std::uint64_t piece, int member, std::span<const float> values) {
  optimize::Parameters& whole = state ? learner_.optimizer.state() : learner_.parameters;
  const auto slots = state ? static_cast<std::uint64_t>(held_.optimizer->slots()) : 1;
  const Spread::Range wanted = PieceOf(b, state, piece, member);
  if (values.size() != wanted.size())
    return Error{Code::kCorrupt, Str("rank ", member, " gave ", values.size(), " numbers of block '",
                                     whole.block(b).name, "', of which it has ", wanted.size())};
  spread_.Give(values, b, member, slots, wanted.first, whole);
  return {};
}

std::string OwnPart::Encode() const {
  std::string bytes;
  const auto put = [&](const void* values, std::size_t size) { bytes.append(static_cast<const char*>(values), size); };
  const Head head{static_cast<std::uint64_t>(members_), static_cast<std::uint64_t>(member_), held_.optimizer->step(),
                  taken_.size()};
  put(&head, sizeof head);
  put(taken_.data(), taken_.size() * sizeof taken_[0]);
  for (std::size_t b = 0; b < taken_.size(); ++b)
    for (const optimize::Parameters* const table : {&held_.parameters, &std::as_const(*held_.optimizer).state()})
      put(table->Values(b).data(), table->Values(b).size_bytes());
  return bytes;
}

Result<void> OwnPart::Decode(const Learner& learner, std::string_view bytes) {
  const Error damaged{Code::kCorrupt, "what another worker had of the model is damaged; do all run the same program?"};
  const auto take = [&](void* to, std::size_t size) {
    if (bytes.size() < size) return false;
    bytes.copy(static_cast<char*>(to), size);  // which may be nothing, to nowhere
    bytes.remove_prefix(size);
    return true;
  };
  Head head;
  // Who has read further has met features that nobody has learned from yet.
  optimize::Parameters& whole = learner.parameters;
  std::vector<std::uint64_t> rows(whole.blocks());
  if (!take(&head, sizeof head) || head.blocks != rows.size() || head.member >= head.members ||
      head.members > std::numeric_limits<int>::max() || !take(rows.data(), rows.size() * sizeof rows[0]))
    return damaged;
  Spread spread(learner.model, static_cast<int>(head.members));
  const auto member = static_cast<int>(head.member);
  std::vector<float> values;
  for (std::size_t b = 0; b < rows.size(); ++b)
    for (const bool state : {false, true}) {
      const auto slots = state ? static_cast<std::uint64_t>(learner.optimizer.slots()) : 1;
      values.resize(spread.CountRows(b, member, rows[b]) * slots * spread.ColumnsOf(b, member).size());
      if (!take(values.data(), values.size() * sizeof(float))) return damaged;
      if (slots > 0) spread.Give(values, b, member, slots, 0, state ? learner.optimizer.state() : whole);
    }
  if (!bytes.empty()) return damaged;
  learner.optimizer.SetStep(head.step);
  return {};
}

data::Batch OwnPart::Of(const data::Batch& rows) {
  if (spread_.by_features()) return FeaturesOf(rows);
  if (rows.sparse()) return rows;
  for (std::size_t b = 0; b < taken_.size(); ++b)
    if (learner_.model.partials()->cut(b) == model::Partials::Cut::kNumbers)
      return NumbersOf(rows, spread_.ColumnsOf(b, member_));
  return rows;
}

data::Batch OwnPart::FeaturesOf(const data::Batch& rows) {
  entries_.ClearRows();
  entries_.offsets.Resize(rows.rows + 1);
  std::uint32_t* index = entries_.indices.Room(rows.entries());
  float* value = entries_.values.Room(rows.entries());
  const std::uint32_t* const first = index;
  for (std::size_t r = 0; r < rows.rows; ++r) {
    for (std::uint32_t e = rows.offsets[r]; e < rows.offsets[r + 1]; ++e) {
      const std::uint64_t range = rows.indices[e] / Spread::kRangeRows;  // of what nobody has seen: beyond all
      if (range >= places_.size() || places_[range] < 0) continue;
      *index++ = static_cast<std::uint32_t>(static_cast<std::uint64_t>(places_[range]) * Spread::kRangeRows +
                                            rows.indices[e] % Spread::kRangeRows);
      *value++ = rows.values[e];
    }
    entries_.offsets[r + 1] = static_cast<std::uint32_t>(index - first);
  }
  data::Batch own = rows;
  own.offsets = entries_.offsets.data();
  own.indices = entries_.indices.data();
  own.values = entries_.values.data();
  return own;
}

data::Batch OwnPart::NumbersOf(const data::Batch& rows, const Spread::Range& columns) {
  numbers_.resize(std::max<std::size_t>(rows.rows * columns.size(), 1));
  for (std::size_t r = 0; r < rows.rows; ++r)
    std::copy_n(rows.dense + r * rows.width + columns.first, columns.size(), numbers_.data() + r * columns.size());
  data::Batch own = rows;
  own.dense = numbers_.data();
  own.width = columns.size();
  return own;
}

}  // namespace freshet::strategy::ring
