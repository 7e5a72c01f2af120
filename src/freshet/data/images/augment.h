#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/executor.h"
#include "data/batch.h"
#include "data/description.h"
#include "data/source.h"

namespace freshet::data {

// Makes what a model is shown (Description::view) from whole rows: while training a random part of each image, perhaps
// mirrored; for predictions always the middle. What a row becomes in training depends on the seed, the epoch and the
// row's sample number alone, so that it is the same whatever batch the row stands in and whoever computes it.
//
// Threads: any number at once. Ownership: copies what it needs of the description.
class Augment {
 public:
  struct Options {
    std::uint64_t seed = 1;
    bool mirror = false;  // while training, half of all rows are shown right to left
  };
  // kInvalid when there is something to do but rows are no images, or the part is larger than they are. With nothing to
  // do rows may have any shape and are copied as they are.
  static Result<Augment> Make(const Description& description, const Options& options);

  const std::vector<std::uint64_t>& shape() const { return shape_; }  // of what is shown
  std::size_t width() const { return width_; }                        // floats of that

  // Both write rows × width() floats to `out`, which does not overlap the batch.
  void ForTraining(const Batch& batch, std::uint64_t epoch, float* out) const;
  void ForPrediction(const Batch& batch, float* out) const;
  // The same in place.
  void ForPrediction(Rows& rows) const;

 private:
  Augment() = default;
  void Show(const float* image, std::size_t top, std::size_t left, bool mirrored, float* out) const;

  Options options_;
  std::vector<std::uint64_t> shape_;
  std::size_t width_ = 0;
  // C channels of H × W places, of which h × w are shown.
  std::size_t channels_ = 1, height_ = 1, whole_width_ = 0, shown_height_ = 1, shown_width_ = 0;
  std::vector<float> means_;     // empty, one a channel, or one a place
  std::vector<float> inverses_;  // of the deviations, one a channel
};

// Which means a view subtracts.
enum class Means { kNone, kChannel, kPixel };

// Sets description.view's means and deviations, per channel or per place, from the first `most_rows` rows of a source
// of images, and takes the source back to its beginning. Deviations are per channel in both cases, around those means;
// a channel that does not vary has 1. kBadInput when there are no rows, kInvalid when rows are no images, kStopped
// after *stop.
Result<void> EstimateMeans(base::Executor& executor, RowSource& source, Means which, std::uint64_t most_rows,
                           Description& description, const std::atomic<bool>* stop = nullptr);

}  // namespace freshet::data
