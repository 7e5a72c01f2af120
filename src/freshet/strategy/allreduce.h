#pragma once

#include <vector>

#include "strategy/gradient_sum.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {

// All-reduce: every update is made from the sum of all workers' gradients, so that all keep the same parameters and N
// workers of batch b are one worker of batch N · b. A variant whose workers meet while they compute, too, overrides
// BeginPart (slices.cc).
class AllReduce : public Synchronous {
 public:
  // Each block of the gradient is summed by one of the sums at most.
  AllReduce(const StrategyOptions& options, const World& world, optimize::Gradient gradient,
            std::vector<GradientSum> sums);

  bool ChangesEarly() const override;
  bool interchangeable() const override { return options_.codec == "none" && options_.whole; }
  bool mergeable() const override { return options_.whole; }
  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;
  void SaveShared(std::vector<data::Tensor>& tensors) const override;
  Result<void> LoadShared(const data::TensorFile& file) override;
  Result<void> Merge(const data::TensorFile& file) override;

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override;
  // A part of an update is about to be computed: false when it is to be left out. All workers come to all parts where
  // they meet in them (`meets_`), though some have no rows.
  virtual bool BeginPart(const data::Batch& piece, std::size_t part, std::size_t parts);

  optimize::Gradient gradient_;
  std::vector<GradientSum> sums_;
  model::Workspace workspace_;
  bool meets_ = false;
  // A model cannot fail: what went wrong first while it computed an update is told when it is done.
  Result<void> met_{};
  base::Clock::Duration waited_{}, exchanged_{};  // while it computed

 private:
  Result<void> MakeRoom();
};

}  // namespace freshet::strategy
