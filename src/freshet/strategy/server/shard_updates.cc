// How pushes are added up and applied.

#include <algorithm>
#include <cstring>

#include "strategy/packed_rows.h"
#include "strategy/server/shard.h"

namespace freshet::strategy::server {

Result<std::span<const std::uint32_t>> Shard::RowsOf(const Parcel& parcel, Reader& reader, const Lists* asked) const {
  if (parcel.form == Parcel::Form::kRows) return reader.Numbers<std::uint32_t>(parcel.count);
  if (asked == nullptr || (*asked)[parcel.block].size() != parcel.count) return Reader::Damaged();
  return std::span<const std::uint32_t>((*asked)[parcel.block]);
}

Result<Shard::Values> Shard::ValuesOf(const Parcel& parcel, std::uint64_t rows, Reader& reader) {
  const std::uint64_t count = rows * parameters_.width(parcel.block);
  if (parcel.values == Parcel::Values::kFloats) {
    const auto floats = TRY(reader.Numbers<float>(count));
    return Values{floats, floats.size_bytes()};
  }
  if (options_.codec == nullptr) return Reader::Damaged();
  const auto bytes = TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>())));
  decoded_.resize(count);
  TRY(options_.codec->Decode(bytes, decoded_, fabric::Codec::Onto::kReplace));
  return Values{decoded_, bytes.size()};
}

Result<void> Shard::MakeRoom(std::size_t b, std::uint64_t rows) {
  if (rows <= parameters_.rows(b)) return {};
  std::vector<std::uint64_t> wanted(parameters_.blocks(), 0);
  wanted[b] = rows;
  TRY(model_.MakeRoom(parameters_, wanted));
  if (rows > parameters_.rows(b)) return Reader::Damaged();
  return optimizer_->Follow(parameters_);
}

Result<void> Shard::Add(std::size_t share, std::span<const std::byte> letter, const Lists* asked) {
  Reader reader(letter);
  const auto head = TRY(reader.Take<PushHead>());
  if (options_.synchrony.bulk()) {
    if (added_++ == 0) weight_ = 0;
    weight_ += head.weight;
    if (!second_came_) progress_ = head.progress;
  }
  const auto digest = TRY(DigestOf(letter, head));
  if (!digest.empty()) digests_[{share, head.part}].assign(digest.begin(), digest.end());
  for (std::uint32_t i = 0; i < head.parcels; ++i) TRY(AddParcel(reader, asked));
  return {};
}

Result<void> Shard::AddParcel(Reader& reader, const Lists* asked) {
  const auto parcel = TRY(reader.Take<Parcel>());
  if (parcel.block >= parameters_.blocks()) return Reader::Damaged();
  if (Dense()) return AddStretch(parcel, reader);
  if (parcel.form == Parcel::Form::kStretch) return Reader::Damaged();
  const auto rows = TRY(RowsOf(parcel, reader, asked));
  if (rows.empty()) return {};
  const auto places = TRY(Places(parcel.block, rows));
  const auto [values, bytes] = TRY(ValuesOf(parcel, rows.size(), reader));
  heat_.Rows(Heat::Way::kPushed, parcel.block, rows, bytes);
  effort_.rows += BytesOf(parcel.block, rows.size());
  optimize::BlockGradient& block = gradient_.blocks[parcel.block];
  const std::uint64_t width = block.width();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* const sum = block.Touch(places[i]);
    for (std::uint64_t k = 0; k < width; ++k) sum[k] += values[i * width + k];
  }
  return {};
}

// The first one of an update overwrites what is left of the one before. All that come later are of the same rows, or of
// none of them.
Result<void> Shard::AddStretch(const Parcel& parcel, Reader& reader) {
  TRY(CheckStretch(parcel));
  if (parcel.count == 0) return {};
  const std::size_t b = parcel.block;
  const std::uint64_t width = parameters_.width(b), last = parcel.first + parcel.count;
  const auto [here, first] = added_to_.try_emplace({b, parcel.first}, last);
  const auto after = std::next(here);
  const bool overlaps = after != added_to_.end() && after->first < std::pair{b, last};
  const bool overlapped =
      here != added_to_.begin() && std::prev(here)->first.first == b && std::prev(here)->second > parcel.first;
  if (here->second != last || overlaps || overlapped) return Reader::Damaged();
  if (!Hollow()) {
    const auto [values, bytes] = TRY(ValuesOf(parcel, parcel.count, reader));
    heat_.Stretch(Heat::Way::kPushed, b, parcel.first, parcel.count, bytes);
    float* const sum = gradient_.blocks[b].memory().data() + parcel.first * width;
    if (first)
      std::copy(values.begin(), values.end(), sum);
    else
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  }
  (first ? effort_.copied : effort_.added) += parcel.count * width * sizeof(float);
  return {};
}

Result<void> Shard::CheckStretch(const Parcel& parcel) const {
  const std::uint64_t rows = parameters_.rows(parcel.block);
  const bool there =
      parcel.form == Parcel::Form::kStretch && Dense() && parcel.first <= rows && parcel.count <= rows - parcel.first;
  return there ? Result<void>() : Reader::Damaged();
}

// It stands at the end of the letter.
Result<std::span<const std::byte>> Shard::DigestOf(std::span<const std::byte> letter, const PushHead& head) {
  const std::size_t room = (letter.size() - sizeof head) / 8 * 8;
  if (head.digest > room) return Reader::Damaged();
  return letter.last((head.digest + 7) / 8 * 8).first(head.digest);
}

// What only servers do, before gradients of these rows are applied: the size of features for the rule, the mean of ratings,
// clusters that have no place yet.
Result<void> Shard::Look(std::span<const std::byte> digest) {
  if (digest.empty()) return {};
  TRY(UnpackRows(digest, seen_));
  if (seen_.size() == 0) return {};
  if (own_rows_) {
    if (model_.observes(parameters_, *optimizer_) == model::Model::Observes::kSizes) NameByPlace(seen_);
  } else {
    TRY(model_.Prepare(parameters_, seen_.batch()));
    TRY(optimizer_->Follow(parameters_));
  }
  model_.Observe(parameters_, seen_.batch(), *optimizer_);
  return {};
}

Result<void> Shard::ApplyAtOnce(std::span<const std::byte> letter, const Lists* asked) {
  Reader reader(letter);
  const auto head = TRY(reader.Take<PushHead>());
  TRY(Look(TRY(DigestOf(letter, head))));
  if (head.parcels > 0) {
    BeginUpdate();
    optimizer_->BeginStep();
  }
  const float factor = weight_ > 0 ? static_cast<float>(1 / weight_) : 1.0f;
  for (std::uint32_t i = 0; i < head.parcels; ++i) {
    const auto parcel = TRY(reader.Take<Parcel>());
    if (parcel.block >= parameters_.blocks()) return Reader::Damaged();
    if (parcel.form == Parcel::Form::kStretch) {
      TRY(ApplyStretch(parcel, reader, factor));
      continue;
    }
    const auto rows = TRY(RowsOf(parcel, reader, asked));
    if (rows.empty()) continue;
    const auto [values, bytes] = TRY(ValuesOf(parcel, rows.size(), reader));
    heat_.Rows(Heat::Way::kPushed, parcel.block, rows, bytes);
    effort_.rows += BytesOf(parcel.block, rows.size());
    ApplyRows(parcel.block, TRY(Places(parcel.block, rows)), values, factor);
  }
  if (head.parcels > 0) EndUpdate();
  return {};
}

Result<void> Shard::ApplyStretch(const Parcel& parcel, Reader& reader, float factor) {
  TRY(CheckStretch(parcel));
  effort_.applied += parcel.count * parameters_.width(parcel.block) * sizeof(float);
  if (Hollow()) return {};
  const auto [values, bytes] = TRY(ValuesOf(parcel, parcel.count, reader));
  heat_.Stretch(Heat::Way::kPushed, parcel.block, parcel.first, parcel.count, bytes);
  optimizer_->ApplyDense(parameters_, parcel.block, parcel.first, parcel.first + parcel.count, values.data(), factor);
  return {};
}

void Shard::ApplyRows(std::size_t b, std::span<const std::uint32_t> rows, std::span<const float> values, float factor) {
  const std::uint64_t width = parameters_.width(b);
  if (Dense()) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      optimizer_->ApplyDense(parameters_, b, rows[i], rows[i] + 1, values.data() + i * width, factor);
    return;
  }
  // To a scale-aware rule, what stands beside a delta is a feature.
  if (width == 1 && optimizer_->name() != "adaptive")
    return optimizer_->UpdateRows(parameters_, b, rows, values, std::span(&factor, 1),
                                  optimize::Optimizer::Sharing::kAlone);
  scaled_.resize(values.size());
  std::transform(values.begin(), values.end(), scaled_.begin(), [factor](float value) { return value * factor; });
  for (std::size_t i = 0; i < rows.size(); ++i)
    optimizer_->UpdateRow(parameters_, b, rows[i], std::span<const float>(scaled_).subspan(i * width, width));
}

void Shard::BeginUpdate() {
  optimizer_->SetProgress(progress_);
  if (options_.slower_when_stale) optimizer_->SetScale(1 / (1 + static_cast<double>(stale_)));
}

void Shard::EndUpdate() {
  ++staleness_[std::min<std::uint64_t>(stale_, staleness_.size() - 1)];
  ++version_;
}

// Looks at what was pushed only now, since parameters may change by that and others read them until then. Of dense blocks
// only what there is a gradient of: all other rows are somebody else's.
Result<void> Shard::Apply() {
  for (const auto& [place, digest] : digests_) TRY(Look(digest));
  digests_.clear();
  BeginUpdate();
  if (!Dense()) {
    for (std::size_t b = 0; b < gradient_.blocks.size(); ++b)
      effort_.rows += BytesOf(b, gradient_.blocks[b].touched().size());
    model_.Apply(parameters_, gradient_, weight_, *optimizer_, workspace_);
  } else {
    const float factor = weight_ > 0 ? static_cast<float>(1 / weight_) : 1.0f;
    optimizer_->BeginStep();
    for (const auto& [begin, last] : added_to_) {
      const auto [b, first] = begin;
      const std::uint64_t width = parameters_.width(b);
      effort_.applied += (last - first) * width * sizeof(float);
      if (Hollow()) continue;
      const float* const sum = gradient_.blocks[b].memory().data() + first * width;
      optimizer_->ApplyDense(parameters_, b, first, last, sum, factor);
    }
    added_to_.clear();
  }
  gradient_.Clear();
  EndUpdate();
  return {};
}

}  // namespace freshet::strategy::server
