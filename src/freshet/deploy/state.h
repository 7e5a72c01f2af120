#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/images/augment.h"
#include "data/moments.h"
#include "data/rows.h"
#include "data/target.h"
#include "model/model.h"

namespace freshet::deploy {

// Everything that learning changes: weights, what the optimizer remembers, and how raw numbers are standardised,
// columns as well as labels. Copies of it are trained apart and take each other's place. Scores and losses that leave
// it are in the units of the labels.
//
// Threads: one at a time.
class State {
 public:
  // At its starting values. `moments` has no columns where rows are not standardised.
  static Result<std::unique_ptr<State>> Make(const model::Model& model, const optimize::OptimizerOptions& options,
                                             optimize::Memory& memory, const data::Moments& moments);

  // Takes everything of another state of the same model. Cheaper the second time, when the memory is there. Rows are
  // never given back, so that this state must not have more of them: CanTake says so.
  bool CanTake(const State& other) const;
  Result<void> CopyFrom(const State& other);
  // The same in pieces: rows first … last-1 of a block, and at the end what belongs to no block.
  Result<void> CopyRows(const State& other, std::size_t b, std::uint64_t first, std::uint64_t last);
  void CopyRest(const State& other);

  // Takes everything of a state of the same model with fewer classes (model::WithClasses). This state is new; what
  // belongs to the classes that the other lacks stays as it is in a new one.
  Result<void> TakeFewerClasses(const State& other);

  // Learns from raw rows that are new, one by one in order: each counts in the moments, then changes the weights. The
  // rows are standardised in place, all but their labels; `scores` gets what was predicted before each; returns the
  // summed loss of that. A row whose loss is beyond all bounds is set aside: it is predicted, and changes no weight.
  Result<double> Learn(const model::Model& model, data::Rows& rows, std::vector<float>& scores);
  // Learns again from raw rows that counted in the moments before, at `scale` times the rate.
  Result<double> Repeat(const model::Model& model, data::Rows& rows, double scale, std::vector<float>& scores);

  // What is said of rows that are standardised.
  void Predict(const model::Model& model, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> scores) const;

  // What the optimizer has summed up counts `keep` times from here on (Optimizer::Fade).
  void Fade(double keep) {
    if (keep != 1) optimizer->Fade(parameters, keep);
  }

  optimize::Parameters parameters;
  std::unique_ptr<optimize::Optimizer> optimizer;
  data::Moments moments;
  data::Target target;
  std::uint64_t set_aside = 0;          // rows so far, of this object alone
  const data::Augment* view = nullptr;  // what the model is shown of images, if not all as it is; outlives this

 private:
  State(optimize::Parameters p, std::unique_ptr<optimize::Optimizer> o, data::Moments m)
      : parameters(std::move(p)), optimizer(std::move(o)), moments(std::move(m)) {}
  enum class Met { kFirst, kAgain };
  Result<double> Update(const model::Model& model, const data::Rows& rows, Met met, std::vector<float>& scores);
  double UpdateAll(const model::Model& model, const data::Batch& batch, Met met, std::span<float> scores);
  bool IsBeyond(const model::Model& model, const data::Batch& row, std::span<float> scores);
  model::Workspace workspace_;
  std::vector<float> labels_;  // as the model learns them
};

}  // namespace freshet::deploy
