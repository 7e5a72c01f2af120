#include "train/strata.h"

#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace freshet::train {
namespace {

constexpr std::size_t kSides = strategy::Grid::kSides;

}  // namespace

void Strata::Add(const model::Rating& rating) {
  ++added_;
  sum_ += rating.label;
  if (users_.Has(grid_.UserSide(rating.user))) waiting_.push_back(rating);
}

void Strata::Clear() {
  added_ = 0;
  sum_ = 0;
  waiting_.clear();
  arranged_.clear();
  starts_.clear();
}

// The order within a cell depends on that cell alone, whoever has the others.
void Strata::Arrange() {
  const auto cell = [this](const model::Rating& rating) {
    return grid_.UserSide(rating.user) * kSides + grid_.ItemSide(rating.item);
  };
  starts_.assign(kSides * kSides + 1, 0);
  for (const model::Rating& rating : waiting_) ++starts_[cell(rating) + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
  arranged_.resize(waiting_.size());
  for (const model::Rating& rating : waiting_) arranged_[next[cell(rating)]++] = rating;
  waiting_ = {};
  for (std::size_t at = 0; at < kSides * kSides; ++at) {
    base::Random random(grid_.seed + base::Hash64(at), "order of ratings");
    model::Rating* const ratings = arranged_.data() + starts_[at];
    for (std::size_t i = starts_[at + 1] - starts_[at]; i > 1; --i) std::swap(ratings[i - 1], ratings[random.Below(i)]);
  }
}

Result<double> Strata::Train(base::Executor& executor, const model::Ratings& model, optimize::Parameters& parameters,
                             optimize::Optimizer& optimizer, double progress, double progress_end,
                             const Rounds& rounds) {
  if (!waiting_.empty() || starts_.empty()) {
    waiting_.insert(waiting_.begin(), arranged_.begin(), arranged_.end());
    Arrange();
  }
  std::array<std::unique_ptr<optimize::Optimizer>, kSides> siblings;
  std::array<model::Workspace, kSides> workspaces;
  std::array<double, kSides> sums{};
  for (auto& sibling : siblings) sibling = optimizer.Sibling();
  TRY(rounds([&](std::size_t round) {
    const double now = progress + (progress_end - progress) * static_cast<double>(round) / kSides;
    executor.Run(static_cast<int>(users_.last - users_.first), [&](int side) {
      const std::size_t mine = users_.first + static_cast<std::size_t>(side);
      const std::size_t at = mine * kSides + strategy::Grid::MetBy(mine, round);
      siblings[mine]->SetProgress(now);
      sums[mine] += model.UpdateRatings(parameters, {arranged_.data() + starts_[at], starts_[at + 1] - starts_[at]},
                                        *siblings[mine], workspaces[mine]);
    });
  }));
  optimizer.SetStep(optimizer.step() + added_);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace freshet::train
