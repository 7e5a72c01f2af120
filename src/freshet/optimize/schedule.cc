#include "optimize/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace freshet::optimize {
namespace {

struct Entry {
  std::string_view name;
  Schedule::Factor factor;
};
constexpr Entry kKinds[] = {
    {"constant", [](double, double, double) { return 1.0; }},
    {"inverse", [](double step, double, double decay) { return 1 / (1 + decay * step); }},
    {"sqrt", [](double step, double, double decay) { return 1 / std::sqrt(1 + decay * step); }},
    {"cosine", [](double, double progress, double) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); }},
    {"linear", [](double, double progress, double) { return 1 - progress; }},
};

}  // namespace

Schedule::Factor Schedule::FactorOf(const std::string& kind) {
  const auto* const at =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Entry& e) { return e.name == kind; });
  return at == std::end(kKinds) ? nullptr : at->factor;
}

std::vector<std::string> Schedule::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kKinds) names.emplace_back(entry.name);
  return names;
}

double Schedule::At(Factor factor, std::uint64_t step, double progress) const {
  const auto at = static_cast<double>(step);
  const double warm = step < warmup_steps ? (at + 1) / static_cast<double>(warmup_steps) : 1.0;
  return rate * warm * factor(at, std::clamp(progress, 0.0, 1.0), decay);
}

Result<void> Schedule::Validate() const {
  if (FactorOf(kind) == nullptr)
    return Error{Code::kInvalid, Str("schedule ", Quoted(kind), ": expected one of ", Join(Kinds(), ", "))};
  if (!(rate > 0) || !(decay >= 0))
    return Error{Code::kInvalid,
                 Str("rate ", rate, " and decay ", decay, ": expected a rate above 0 and a decay of 0 or more")};
  return {};
}

}  // namespace freshet::optimize
