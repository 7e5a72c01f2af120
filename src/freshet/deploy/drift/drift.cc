#include "deploy/drift/drift.h"

#include <algorithm>
#include <cmath>

#include "deploy/drift/adwin.h"
#include "deploy/drift/ddm.h"
#include "deploy/drift/page_hinkley.h"

namespace freshet::deploy {
namespace {

class NoDetector final : public DriftDetector {
 public:
  std::string_view name() const override { return "none"; }
  std::vector<double> Save() const override { return {}; }
  bool Load(std::span<const double> state) override { return state.empty(); }

 private:
  Drift OnError(double) override { return Drift::kNone; }
};

template <class T>
std::unique_ptr<DriftDetector> New() {
  return std::make_unique<T>();
}

// The registry: one line for each kind, which has one file of its own.
struct Entry {
  std::string_view name;
  std::unique_ptr<DriftDetector> (*make)();
};
constexpr Entry kRegistry[] = {
    {"adwin", New<Adwin>}, {"ddm", New<Ddm>}, {"page-hinkley", New<PageHinkley>}, {"none", New<NoDetector>}};

}  // namespace

std::vector<std::string> DriftDetector::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

Result<std::unique_ptr<DriftDetector>> DriftDetector::Make(std::string_view kind) {
  for (const Entry& entry : kRegistry)
    if (entry.name == kind) return entry.make();
  return Error{Code::kInvalid, Str("drift detector ", Quoted(kind), ": expected one of ", Join(Kinds(), ", "))};
}

Drift DriftDetector::Add(double error) {
  constexpr double kMost = 1e100;
  if (!std::isfinite(error)) return Drift::kNone;
  return OnError(std::clamp(error, -kMost, kMost));
}

void ErrorMoments::Merge(const ErrorMoments& other) {
  const double total = count + other.count;
  if (total == 0) return;
  const double difference = other.mean - mean;
  mean += difference * (other.count / total);
  squares += other.squares + difference * difference * (count * other.count / total);
  count = total;
}

bool ErrorMoments::plausible() const {
  return std::isfinite(count) && count >= 0 && std::isfinite(mean) && std::isfinite(squares) && squares >= 0;
}

}  // namespace freshet::deploy
