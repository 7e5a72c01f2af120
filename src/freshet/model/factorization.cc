#include "model/factorization.h"

#include <algorithm>

#include "model/kinds.h"
#include "model/vector.h"

namespace freshet::model {
namespace {

using data::Batch;
using optimize::Optimizer;
using optimize::Parameters;

constexpr std::uint64_t kMostRows = 1u << 26;  // users, items

std::uint32_t User(const Batch& batch, std::size_t r) { return batch.indices[batch.offsets[r]]; }
std::uint32_t Item(const Batch& batch, std::size_t r) { return batch.indices[batch.offsets[r] + 1]; }

// The mean of all ratings so far; the count stops where a float can no longer count.
void CountRating(float* global, float label) {
  global[1] = std::min(global[1] + 1, 16'000'000.0f);
  global[0] += (label - global[0]) / global[1];
}

// Plain SGD on one rating, in registers: both rows change by what the other was before. Returns the error.
float SgdStep(float mean, float& user_bias, float& item_bias, float* __restrict p, float* __restrict q, std::size_t k,
              float label, float rate, float l2) {
  const float error = label - (mean + user_bias + item_bias + Dot(p, q, k));
  user_bias += rate * (error - l2 * user_bias);
  item_bias += rate * (error - l2 * item_bias);
#pragma omp simd
  for (std::size_t j = 0; j < k; ++j) {
    const float before = p[j];
    p[j] = before + rate * (error * q[j] - l2 * before);
    q[j] += rate * (error * before - l2 * q[j]);
  }
  return error;
}

}  // namespace

std::vector<optimize::Block> Factorization::Blocks() const {
  const std::uint64_t k = config_.factors;
  return {{"global", 1, 2},
          {"user.bias", 0, 1, kMostRows},
          {"item.bias", 0, 1, kMostRows},
          {"user.factors", 0, k, kMostRows},
          {"item.factors", 0, k, kMostRows}};
}

Result<void> Factorization::Prepare(Parameters& parameters, const Batch& batch) const {
  std::uint64_t users = 0, items = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    users = std::max<std::uint64_t>(users, std::uint64_t{User(batch, r)} + 1);
    items = std::max<std::uint64_t>(items, std::uint64_t{Item(batch, r)} + 1);
  }
  return Prepare(parameters, users, items);
}

Result<void> Factorization::Prepare(Parameters& parameters, std::uint64_t users, std::uint64_t items) const {
  const auto grow = [&](std::size_t biases, std::size_t factors, std::uint64_t rows) -> Result<void> {
    const std::uint64_t before = parameters.rows(factors);
    if (rows <= before) return {};
    TRY(parameters.Grow(biases, rows));
    TRY(parameters.Grow(factors, rows));
    StartRows(parameters, factors, before, rows, before);
    return {};
  };
  TRY(grow(kUserBias, kUserFactors, users));
  return grow(kItemBias, kItemFactors, items);
}

void Factorization::StartRows(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                              std::uint64_t as) const {
  if (b == kUserFactors || b == kItemFactors) StartFactors(parameters, b, first, last, as);
}

void Factorization::StartMean(Parameters& parameters, double mean, std::uint64_t count) const {
  float* const global = parameters.Row(kGlobal, 0);
  global[0] = static_cast<float>(mean);
  global[1] = static_cast<float>(count);
}

float Factorization::Score(const Parameters& parameters, std::uint32_t user, std::uint32_t item) const {
  const bool user_known = user < parameters.rows(kUserFactors), item_known = item < parameters.rows(kItemFactors);
  float score = *parameters.Row(kGlobal, 0);
  if (user_known) score += *parameters.Row(kUserBias, user);
  if (item_known) score += *parameters.Row(kItemBias, item);
  if (user_known && item_known)
    score += Dot(parameters.Row(kUserFactors, user), parameters.Row(kItemFactors, item), config_.factors);
  return score;
}

void Factorization::Predict(const Parameters& parameters, const Batch& batch, Workspace&, std::span<float> out) const {
  for (std::size_t r = 0; r < batch.rows; ++r) out[r] = Score(parameters, User(batch, r), Item(batch, r));
}

double Factorization::LossAndGradient(const Parameters& parameters, const Batch& batch, Workspace&,
                                      optimize::Gradient& gradient, std::span<float> out) const {
  double sum = 0;
  const std::size_t k = config_.factors;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const std::uint32_t user = User(batch, r), item = Item(batch, r);
    out[r] = Score(parameters, user, item);
    float delta = 0;
    sum += batch.weight(r) * loss_.Evaluate(out.subspan(r, 1), batch.labels[r], {&delta, 1});
    delta *= batch.weight(r);
    *gradient.blocks[kUserBias].Touch(user) += delta;
    *gradient.blocks[kItemBias].Touch(item) += delta;
    AddScaled(gradient.blocks[kUserFactors].Touch(user), delta, parameters.Row(kItemFactors, item), k);
    AddScaled(gradient.blocks[kItemFactors].Touch(item), delta, parameters.Row(kUserFactors, user), k);
  }
  return sum;
}

double Factorization::Update(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                             std::span<float> out, Optimizer::Sharing sharing) const {
  CHECK(sharing == Optimizer::Sharing::kAlone);  // threads are kept apart by blocks instead, see UpdateRatings
  double sum = 0;
  float* const global = parameters.Row(kGlobal, 0);
  for (std::size_t r = 0; r < batch.rows; ++r) {
    if (global[1] == 0) global[0] = batch.labels[r];
    const Rating rating{User(batch, r), Item(batch, r), batch.labels[r]};
    out[r] = Score(parameters, rating.user, rating.item);
    sum += UpdateOne(parameters, rating, batch.weight(r), optimizer, workspace);
    CountRating(global, rating.label);
  }
  return sum;
}

void Factorization::Touch(const Parameters&, const Batch& batch, optimize::RowSets& touched) const {
  touched[kGlobal].Add(0);
  for (std::size_t r = 0; r < batch.rows; ++r) {
    touched[kUserBias].Add(User(batch, r));
    touched[kUserFactors].Add(User(batch, r));
    touched[kItemBias].Add(Item(batch, r));
    touched[kItemFactors].Add(Item(batch, r));
  }
}

void Factorization::Observe(Parameters& parameters, const Batch& batch, Optimizer&) const {
  for (std::size_t r = 0; r < batch.rows; ++r) CountRating(parameters.Row(kGlobal, 0), batch.labels[r]);
}

double Factorization::UpdateOne(Parameters& parameters, const Rating& rating, float weight, Optimizer& optimizer,
                                Workspace& workspace) const {
  const std::size_t k = config_.factors;
  const float score = Score(parameters, rating.user, rating.item);
  float delta = 0;
  const double loss = weight * loss_.Evaluate({&score, 1}, rating.label, {&delta, 1});
  delta *= weight;
  float* const p = parameters.Row(kUserFactors, rating.user);
  workspace.row.assign(p, p + k);
  optimizer.BeginStep();
  optimizer.UpdateRow(parameters, kUserBias, rating.user, {&delta, 1});
  optimizer.UpdateRow(parameters, kItemBias, rating.item, {&delta, 1});
  workspace.sums.resize(k);
  const float* const q = parameters.Row(kItemFactors, rating.item);
  for (std::size_t j = 0; j < k; ++j) workspace.sums[j] = delta * q[j];
  optimizer.UpdateRow(parameters, kUserFactors, rating.user, workspace.sums);
  for (std::size_t j = 0; j < k; ++j) workspace.sums[j] = delta * workspace.row[j];
  optimizer.UpdateRow(parameters, kItemFactors, rating.item, workspace.sums);
  return loss;
}

double Factorization::UpdateRatings(Parameters& parameters, std::span<const Rating> ratings, Optimizer& optimizer,
                                    Workspace& workspace) const {
  double sum = 0;
  const bool fast = optimizer.name() == "sgd" && loss_.name() == "squared" && optimizer.options().l1 == 0;
  if (!fast) {
    for (const Rating& rating : ratings) sum += UpdateOne(parameters, rating, 1, optimizer, workspace);
    return sum;
  }
  const std::size_t k = config_.factors;
  const float mean = *parameters.Row(kGlobal, 0);
  const auto l2 = static_cast<float>(optimizer.options().l2);
  float* const user_bias = parameters.Row(kUserBias, 0);
  float* const item_bias = parameters.Row(kItemBias, 0);
  float* const users = parameters.Row(kUserFactors, 0);
  float* const items = parameters.Row(kItemFactors, 0);
  if (ratings.empty()) return 0;
  optimizer.BeginStep();
  const auto rate = static_cast<float>(optimizer.rate());
  for (const Rating& rating : ratings) {
    const float error =
        SgdStep(mean, user_bias[rating.user], item_bias[rating.item], users + std::size_t{rating.user} * k,
                items + std::size_t{rating.item} * k, k, rating.label, rate, l2);
    sum += 0.5 * error * error;
  }
  optimizer.SetStep(optimizer.step() + ratings.size() - 1);
  return sum;
}

std::vector<std::pair<std::uint32_t, float>> Factorization::Recommend(const Parameters& parameters, std::uint32_t user,
                                                                      std::span<const std::uint32_t> seen,
                                                                      std::size_t k) const {
  using Scored = std::pair<std::uint32_t, float>;
  const auto better = [](const Scored& a, const Scored& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  };
  std::vector<Scored> best;  // a heap whose front is the worst of the best
  const auto items = static_cast<std::uint32_t>(parameters.rows(kItemFactors));
  for (std::uint32_t item = 0; item < items && k > 0; ++item) {
    if (std::binary_search(seen.begin(), seen.end(), item)) continue;
    const Scored scored{item, Score(parameters, user, item)};
    if (best.size() == k && !better(scored, best.front())) continue;
    if (best.size() == k) {
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    best.push_back(scored);
    std::push_heap(best.begin(), best.end(), better);
  }
  std::sort_heap(best.begin(), best.end(), better);
  return best;
}

ModelPtr MakeFactorization(const ModelConfig& config, const Loss& loss) {
  return std::make_unique<Factorization>(config, loss);
}

}  // namespace freshet::model
