#include "optimize/lbfgs.h"

#include <algorithm>
#include <cmath>

namespace freshet::optimize {
namespace {

template <class A, class B>
double Dot(const A& a, const B& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

Lbfgs::Lbfgs(std::vector<float> start, Options options, Objective objective)
    : options_(options), objective_(std::move(objective)), x_(std::move(start)), gradient_(x_.size()) {}

double Lbfgs::gradient_norm() const { return std::sqrt(Dot(gradient_, gradient_)); }

// The two-loop recursion: the quasi-Newton direction from the remembered pairs.
std::vector<double> Lbfgs::Direction() const {
  std::vector<double> q(gradient_.begin(), gradient_.end());
  std::vector<double> alpha(pairs_.size());
  for (std::size_t i = pairs_.size(); i-- > 0;) {
    alpha[i] = Dot(pairs_[i].step, q) / pairs_[i].product;
    for (std::size_t j = 0; j < q.size(); ++j) q[j] -= alpha[i] * pairs_[i].change[j];
  }
  if (!pairs_.empty()) {
    const double scale = pairs_.back().product / Dot(pairs_.back().change, pairs_.back().change);
    for (double& value : q) value *= scale;
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const double beta = Dot(pairs_[i].change, q) / pairs_[i].product;
    for (std::size_t j = 0; j < q.size(); ++j) q[j] += (alpha[i] - beta) * pairs_[i].step[j];
  }
  for (double& value : q) value = -value;
  return q;
}

Result<bool> Lbfgs::Step() {
  if (!started_) {
    value_ = TRY(objective_(x_, gradient_));
    started_ = true;
  }
  const double norm = gradient_norm();
  if (norm <= options_.tolerance * std::max(1.0, std::sqrt(Dot(x_, x_)))) return false;
  std::vector<double> direction = Direction();
  double slope = Dot(gradient_, direction);
  if (!(slope < 0)) {  // rounding spoiled the memory: fall back to steepest descent
    pairs_.clear();
    direction = Direction();
    slope = -norm * norm;
  }
  double length = pairs_.empty() ? std::min(1.0, 1 / norm) : 1.0;
  std::vector<float> x(x_.size()), gradient(x_.size());
  for (int trial = 0; trial < options_.most_trials; ++trial, length /= 2) {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<float>(x_[j] + length * direction[j]);
    const double value = TRY(objective_(x, gradient));
    if (!(value <= value_ + 1e-4 * length * slope)) continue;
    Pair pair{x, gradient, 0};
    for (std::size_t j = 0; j < x.size(); ++j) {
      pair.step[j] -= x_[j];
      pair.change[j] -= gradient_[j];
    }
    pair.product = Dot(pair.step, pair.change);
    if (pair.product > 1e-12 * Dot(pair.step, pair.step)) {
      pairs_.push_back(std::move(pair));
      if (pairs_.size() > static_cast<std::size_t>(options_.memory)) pairs_.pop_front();
    }
    const double gained = value_ - value;
    x_ = x;
    gradient_ = gradient;
    value_ = value;
    return gained > 1e-9 * std::max(1.0, std::abs(value));
  }
  return false;
}

}  // namespace freshet::optimize
