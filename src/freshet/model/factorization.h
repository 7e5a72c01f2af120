#pragma once

#include <utility>

#include "model/model.h"

namespace freshet::model {

// One rating as the stratified trainer holds it.
struct Rating {
  std::uint32_t user, item;
  float label;
};

// Biased matrix factorization (Koren, Bell, Volinsky 2009): mean + user bias + item bias + p_user · q_item.
// A user or item that was never seen is predicted by what is known of the other, both unseen by the mean; training on
// one gives it a row. Blocks: global (mean, ratings behind it), user.bias, item.bias, user.factors, item.factors.
class Factorization final : public Model {
 public:
  using Model::Model;
  enum : std::size_t { kGlobal, kUserBias, kItemBias, kUserFactors, kItemFactors };

  std::vector<optimize::Block> Blocks() const override;
  bool WantsScaledLabels() const override { return false; }  // it learns the mean, and ratings have a size of their own
  Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const override;
  // Makes room for so many users and items.
  Result<void> Prepare(optimize::Parameters& parameters, std::uint64_t users, std::uint64_t items) const;
  void Predict(const optimize::Parameters& parameters, const data::Batch& batch, Workspace& workspace,
               std::span<float> out) const override;
  double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, Workspace& workspace,
                         optimize::Gradient& gradient, std::span<float> out) const override;
  double Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                Workspace& workspace, std::span<float> out, optimize::Optimizer::Sharing sharing) const override;

  void Touch(const optimize::Parameters& parameters, const data::Batch& batch,
             optimize::RowSets& touched) const override;
  void Observe(optimize::Parameters& parameters, const data::Batch& batch,
               optimize::Optimizer& optimizer) const override;

  // One update for each rating, in order; returns the summed loss before each. Touches only the rows of the users and
  // items named: threads whose ratings share none may run at once, each with an optimizer sibling. The mean and the
  // rate stay the same throughout.
  double UpdateRatings(optimize::Parameters& parameters, std::span<const Rating> ratings,
                       optimize::Optimizer& optimizer, Workspace& workspace) const;

  float Score(const optimize::Parameters& parameters, std::uint32_t user, std::uint32_t item) const;
  // The k items a user would rate highest, best first, leaving out `seen` (sorted). Looks at every item.
  std::vector<std::pair<std::uint32_t, float>> Recommend(const optimize::Parameters& parameters, std::uint32_t user,
                                                         std::span<const std::uint32_t> seen, std::size_t k) const;

 private:
  double UpdateOne(optimize::Parameters& parameters, const Rating& rating, float weight, optimize::Optimizer& optimizer,
                   Workspace& workspace) const;
};

}  // namespace freshet::model
