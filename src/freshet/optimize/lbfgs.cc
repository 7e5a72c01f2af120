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

Lbfgs::Lbfgs(std::vector<float> start, Options options, Objective objective, Sum sum)
    : options_(options),
      objective_(std::move(objective)),
      sum_(std::move(sum)),
      x_(std::move(start)),
      gradient_(x_.size()) {}

Result<double> Lbfgs::Total(double part) const {
  TRY(Total({&part, 1}));
  return part;
}

// The two-loop recursion: the quasi-Newton direction from the remembered pairs.
Result<std::vector<double>> Lbfgs::Direction() const {
  std::vector<double> q(gradient_.begin(), gradient_.end());
  std::vector<double> alpha(pairs_.size());
  for (std::size_t i = pairs_.size(); i-- > 0;) {
    alpha[i] = TRY(Total(Dot(pairs_[i].step, q))) / pairs_[i].product;
    for (std::size_t j = 0; j < q.size(); ++j) q[j] -= alpha[i] * pairs_[i].change[j];
  }
  if (!pairs_.empty()) {
    const double scale = pairs_.back().product / pairs_.back().change_square;
    for (double& value : q) value *= scale;
  }
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const double beta = TRY(Total(Dot(pairs_[i].change, q))) / pairs_[i].product;
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
  double squares[] = {Dot(gradient_, gradient_), Dot(x_, x_)};
  TRY(Total(squares));
  const double norm = std::sqrt(squares[0]);
  if (norm <= options_.tolerance * std::max(1.0, std::sqrt(squares[1]))) return false;
  std::vector<double> direction = TRY(Direction());
  double slope = TRY(Total(Dot(gradient_, direction)));
  if (!(slope < 0)) {  // rounding spoiled the memory: fall back to steepest descent
    pairs_.clear();
    direction = TRY(Direction());
    slope = -norm * norm;
  }
  double length = pairs_.empty() ? std::min(1.0, 1 / norm) : 1.0;
  std::vector<float> x(x_.size()), gradient(x_.size());
  for (int trial = 0; trial < options_.most_trials; ++trial, length /= 2) {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<float>(x_[j] + length * direction[j]);
    const double value = TRY(objective_(x, gradient));
    if (!(value <= value_ + 1e-4 * length * slope)) continue;
    Pair pair{.step = x, .change = gradient};
    for (std::size_t j = 0; j < x.size(); ++j) {
      pair.step[j] -= x_[j];
      pair.change[j] -= gradient_[j];
    }
    double products[] = {Dot(pair.step, pair.change), Dot(pair.change, pair.change), Dot(pair.step, pair.step)};
    TRY(Total(products));
    pair.product = products[0];
    pair.change_square = products[1];
    if (pair.product > 1e-12 * products[2]) {
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
