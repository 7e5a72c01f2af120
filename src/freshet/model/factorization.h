#pragma once

#include <algorithm>

#include "model/ratings.h"

namespace freshet::model {

// Biased matrix factorization (Koren, Bell, Volinsky 2009): mean + user bias + item bias + p_user · q_item.
// A user or item that was never seen is predicted by what is known of the other, both unseen by the mean; training on
// one gives it a row. Blocks: global (mean, ratings behind it), user.bias, item.bias, user.factors, item.factors.
class Factorization final : public Model, public Ratings {
 public:
  using Model::Model;
  enum : std::size_t { kGlobal, kUserBias, kItemBias, kUserFactors, kItemFactors };

  Traits traits() const override {
    return {.met_by_entry = config_.factors + 1, .learns_slowly = true, .in_sessions = true};
  }
  const Ratings* ratings() const override { return this; }
  std::vector<optimize::Block> Blocks() const override;
  bool WantsScaledLabels() const override { return false; }  // it learns the mean, and ratings have a size of their own
  Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const override;
  // Makes room for so many users and items.
  Result<void> Prepare(optimize::Parameters& parameters, std::uint64_t users, std::uint64_t items) const;
  void StartRows(optimize::Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                 std::uint64_t as) const override;
  Result<void> MakeRoom(optimize::Parameters& parameters, std::span<const std::uint64_t> rows) const override {
    return Prepare(parameters, std::max(rows[kUserBias], rows[kUserFactors]),
                   std::max(rows[kItemBias], rows[kItemFactors]));
  }
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
  Observes observes(const optimize::Parameters&, const optimize::Optimizer&) const override {
    return Observes::kRows;  // for their mean
  }

  bool KnowsMean(const optimize::Parameters& parameters) const override { return parameters.Row(kGlobal, 0)[1] != 0; }
  void StartMean(optimize::Parameters& parameters, double mean, std::uint64_t count) const override;
  double UpdateRatings(optimize::Parameters& parameters, std::span<const Rating> ratings,
                       optimize::Optimizer& optimizer, Workspace& workspace) const override;

  std::vector<std::size_t> UserBlocks() const override { return {kUserBias, kUserFactors}; }
  std::vector<std::size_t> ItemBlocks() const override { return {kItemBias, kItemFactors}; }

  float Score(const optimize::Parameters& parameters, std::uint32_t user, std::uint32_t item) const;
  std::vector<std::pair<std::uint32_t, float>> Recommend(const optimize::Parameters& parameters, std::uint32_t user,
                                                         std::span<const std::uint32_t> seen,
                                                         std::size_t k) const override;

 private:
  double UpdateOne(optimize::Parameters& parameters, const Rating& rating, float weight, optimize::Optimizer& optimizer,
                   Workspace& workspace) const;
};

}  // namespace freshet::model
