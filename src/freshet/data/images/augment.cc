#include "data/images/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/option.h"
#include "base/random.h"
#include "data/drive.h"
#include "data/go_on.h"

namespace freshet::data {
namespace {

Result<void> CheckImages(const Description& description) {
  if (description.dense && description.shape.size() == 3) return {};
  return Error{Code::kInvalid, Str("rows of format ", description.format, " are no images, which ", Option("crop"),
                                   ", ", Option("mirror"), " and ", Option("subtract-mean"), " need; leave these out")};
}

// Uniform in 0 … count-1 but for 2^-32 parts, from 32 random bits.
std::size_t Scaled(std::uint32_t bits, std::size_t count) {
  return static_cast<std::size_t>((static_cast<std::uint64_t>(bits) * count) >> 32);
}

}  // namespace

Result<Augment> Augment::Make(const Description& description, const Options& options) {
  Augment augment;
  augment.options_ = options;
  augment.shape_ = description.shape;
  augment.width_ = augment.whole_width_ = augment.shown_width_ = description.features;
  augment.inverses_ = {1};
  const View& view = description.view;
  if (!view.any() && !options.mirror) return augment;
  TRY(CheckImages(description));
  const std::uint64_t side = std::min(description.shape[1], description.shape[2]);
  if (view.crop > side)
    return Error{Code::kInvalid, Str(Option("crop"), " ", view.crop, ": images of ", description.shape[1], "x",
                                     description.shape[2], ", expected at most ", side)};
  augment.channels_ = description.shape[0];
  augment.height_ = augment.shown_height_ = description.shape[1];
  augment.whole_width_ = augment.shown_width_ = description.shape[2];
  if (view.crop > 0) augment.shown_height_ = augment.shown_width_ = view.crop;
  augment.shape_ = {augment.channels_, augment.shown_height_, augment.shown_width_};
  augment.width_ = augment.channels_ * augment.shown_height_ * augment.shown_width_;
  augment.means_ = view.means;
  augment.inverses_.assign(augment.channels_, 1);
  for (std::size_t c = 0; c < view.deviations.size(); ++c) augment.inverses_[c] = 1 / view.deviations[c];
  return augment;
}

void Augment::ForTraining(const Batch& batch, std::uint64_t epoch, float* out) const {
  const std::uint64_t key = base::Hash64("augment", options_.seed);
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const auto bits = base::Philox(key, epoch, batch.samples == nullptr ? r : batch.samples[r]);
    Show(batch.dense + r * batch.width, Scaled(bits[0], height_ - shown_height_ + 1),
         Scaled(bits[1], whole_width_ - shown_width_ + 1), options_.mirror && (bits[2] & 1) != 0, out + r * width_);
  }
}

void Augment::ForPrediction(const Batch& batch, float* out) const {
  for (std::size_t r = 0; r < batch.rows; ++r)
    Show(batch.dense + r * batch.width, (height_ - shown_height_) / 2, (whole_width_ - shown_width_) / 2, false,
         out + r * width_);
}

void Augment::ForPrediction(Rows& rows) const {
  // What is shown is never longer than the whole: writing does not overtake reading.
  ForPrediction(rows.batch(), rows.dense.data());
  rows.width = width_;
  rows.dense.Resize(rows.size() * width_);
}

// Unless it mirrors it goes strictly forward, so that `out` may be the beginning of what is read.
void Augment::Show(const float* image, std::size_t top, std::size_t left, bool mirrored, float* out) const {
  for (std::size_t c = 0; c < channels_; ++c) {
    const float inverse = inverses_[c];
    const bool by_place = means_.size() > channels_;
    const float mean = means_.empty() || by_place ? 0 : means_[c];
    for (std::size_t y = 0; y < shown_height_; ++y, out += shown_width_) {
      const std::size_t begin = (c * height_ + top + y) * whole_width_ + left;
      const float* const line = image + begin;
      const float* const means = by_place ? means_.data() + begin : nullptr;
      if (mirrored) {
        const std::size_t last = shown_width_ - 1;
        for (std::size_t x = 0; x < shown_width_; ++x)
          out[x] = (line[last - x] - (by_place ? means[last - x] : mean)) * inverse;
      } else if (by_place) {
#pragma omp simd
        for (std::size_t x = 0; x < shown_width_; ++x) out[x] = (line[x] - means[x]) * inverse;
      } else {
#pragma omp simd
        for (std::size_t x = 0; x < shown_width_; ++x) out[x] = (line[x] - mean) * inverse;
      }
    }
  }
}

namespace {

// Sums over rows, from which means and deviations follow.
struct Sums {
  std::uint64_t rows = 0;
  std::vector<double> places;   // of each place's values
  std::vector<double> squares;  // of each channel's, squared

  void Add(const Batch& batch, std::size_t count) {
    const std::size_t plane = batch.width / squares.size();
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t c = 0; c < squares.size(); ++c) {
        const float* const values = batch.dense + r * batch.width + c * plane;
        double* const sums = places.data() + c * plane;
        double square = 0;
#pragma omp simd reduction(+ : square)
        for (std::size_t i = 0; i < plane; ++i) {
          sums[i] += values[i];
          square += static_cast<double>(values[i]) * values[i];
        }
        squares[c] += square;
      }
    rows += count;
  }
};

void SetMeans(const Sums& sums, Means which, View& view) {
  const std::size_t channels = sums.squares.size(), plane = sums.places.size() / channels;
  const auto rows = static_cast<double>(sums.rows);
  view.means.clear();
  view.deviations.clear();
  for (std::size_t c = 0; c < channels; ++c) {
    double total = 0, squared_means = 0;  // over the places of this channel
    for (std::size_t i = 0; i < plane; ++i) {
      const double mean = sums.places[c * plane + i] / rows;
      total += mean;
      squared_means += mean * mean;
      if (which == Means::kPixel) view.means.push_back(static_cast<float>(mean));
    }
    const double mean = total / static_cast<double>(plane);
    if (which == Means::kChannel) view.means.push_back(static_cast<float>(mean));
    const double around = which == Means::kChannel ? mean * mean : squared_means / static_cast<double>(plane);
    const double square = sums.squares[c] / (rows * static_cast<double>(plane));
    const double variance = square - around;
    view.deviations.push_back(variance > 1e-9 * square ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
}

}  // namespace

Result<void> EstimateMeans(base::Executor& executor, RowSource& source, Means which, std::uint64_t most_rows,
                           Description& description, const std::atomic<bool>* stop) {
  TRY(CheckImages(description));
  description.view.means.clear();
  description.view.deviations.clear();
  if (which == Means::kNone) return {};
  Sums sums;
  sums.places.resize(description.features);
  sums.squares.resize(description.shape[0]);
  const auto result = DriveInOrder(executor, source, [&](Rows& rows) -> Result<void> {
    TRY(GoOn(stop));
    const Batch batch = rows.batch();
    sums.Add(batch, std::min<std::uint64_t>(batch.rows, most_rows - sums.rows));
    if (sums.rows == most_rows) return Error{Code::kStopped, "seen enough"};
    return {};
  });
  if (!result.ok() && sums.rows < most_rows) return result;
  if (sums.rows == 0) return Error{Code::kBadInput, "the data has no rows to estimate means from"};
  SetMeans(sums, which, description.view);
  return source.Seek({});
}

}  // namespace freshet::data
