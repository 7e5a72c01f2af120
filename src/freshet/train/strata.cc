#include "train/strata.h"

#include <array>
#include <numeric>

#include "base/random.h"

namespace freshet::train {

std::size_t Strata::Side(std::uint32_t id, std::uint64_t salt) const {
  return base::Hash64(id ^ base::Hash64(seed_ + salt)) % kSides;
}

double Strata::mean() const {
  double sum = 0;
  for (const auto* part : {&waiting_, &arranged_})
    for (const model::Rating& rating : *part) sum += rating.label;
  return size() == 0 ? 0 : sum / static_cast<double>(size());
}

void Strata::Clear() {
  waiting_.clear();
  arranged_.clear();
}

void Strata::Arrange() {
  base::Random random(seed_, "order of ratings");
  for (std::size_t i = waiting_.size(); i > 1; --i) std::swap(waiting_[i - 1], waiting_[random.Below(i)]);
  const auto cell = [this](const model::Rating& rating) {
    return Side(rating.user, 1) * kSides + Side(rating.item, 2);
  };
  starts_.assign(kSides * kSides + 1, 0);
  for (const model::Rating& rating : waiting_) ++starts_[cell(rating) + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
  arranged_.resize(waiting_.size());
  for (const model::Rating& rating : waiting_) arranged_[next[cell(rating)]++] = rating;
  waiting_ = {};
}

std::optional<double> Strata::Train(base::Executor& executor, const model::Ratings& model,
                                    optimize::Parameters& parameters, optimize::Optimizer& optimizer, int epoch,
                                    double progress, double progress_end, const std::function<bool()>& goes_on) {
  if (!waiting_.empty()) {
    waiting_.insert(waiting_.end(), arranged_.begin(), arranged_.end());
    Arrange();
  }
  std::array<std::unique_ptr<optimize::Optimizer>, kSides> siblings;
  std::array<model::Workspace, kSides> workspaces;
  std::array<double, kSides> sums{};
  for (auto& sibling : siblings) sibling = optimizer.Sibling();
  std::array<std::size_t, kSides> diagonals;
  std::iota(diagonals.begin(), diagonals.end(), 0);
  base::Random random(seed_ + static_cast<std::uint64_t>(epoch), "order of diagonals");
  for (std::size_t i = kSides; i > 1; --i) std::swap(diagonals[i - 1], diagonals[random.Below(i)]);
  for (std::size_t round = 0; round < kSides; ++round) {
    if (goes_on && !goes_on()) return std::nullopt;
    const double now = progress + (progress_end - progress) * static_cast<double>(round) / kSides;
    executor.Run(static_cast<int>(kSides), [&](int side) {
      const auto mine = static_cast<std::size_t>(side);
      const std::size_t at = mine * kSides + (mine + diagonals[round]) % kSides;
      siblings[mine]->SetProgress(now);
      sums[mine] += model.UpdateRatings(parameters, {arranged_.data() + starts_[at], starts_[at + 1] - starts_[at]},
                                        *siblings[mine], workspaces[mine]);
    });
  }
  optimizer.SetStep(optimizer.step() + arranged_.size());
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace freshet::train
