#pragma once

#include <memory>
#include <vector>

#include "strategy/strategy.h"

namespace freshet::strategy {

// Sums a gradient over all workers, in whatever form its blocks are: dense blocks in buckets, of neighbours in the
// order in which backward finishes them, so that a bucket travels while the rest is computed; touched rows as rows;
// factors as factors. Compression is a matter of what travels, not of who asks.
//
// All workers make the same calls. Begin, then Finished for blocks as they are finished (none if a worker has no rows),
// then Finish.
class GradientSum {
 public:
  // Blocks that are `left_out` are not summed: each worker has a part of them that is nobody else's, or another sum does it.
  static Result<GradientSum> Make(const StrategyOptions& options, fabric::Collectives& collectives,
                                  const model::Model& model, base::Trace* trace = nullptr,
                                  const std::vector<bool>& left_out = {});
  GradientSum(GradientSum&&) noexcept;
  ~GradientSum();

  // Updates before step `warm_start` travel uncompressed.
  void Begin(optimize::Gradient& gradient, std::uint64_t step);
  void Finished(optimize::Gradient& gradient, std::size_t block);
  Result<void> Finish(optimize::Gradient& gradient, const optimize::Parameters& parameters);

  // What dense buffers would have sent so far, by a ring.
  std::uint64_t bytes_dense() const;
  // What compression remembers: residuals, which are each worker's own, and what is the same for all (shared). Load and
  // Merge come after the first Begin.
  enum class Whose { kOwn, kShared };
  void Save(std::vector<data::Tensor>& tensors, Whose whose = Whose::kOwn) const;
  Result<void> Load(const data::TensorFile& file, Whose whose = Whose::kOwn);
  // Adds the residuals of another worker to this one's: nothing that was not delivered yet is lost.
  Result<void> Merge(const data::TensorFile& file);

 private:
  struct Inside;
  explicit GradientSum(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace freshet::strategy
