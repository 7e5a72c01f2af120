#include "base/metrics.h"

#include <algorithm>

#include "base/check.h"
#include "base/str.h"

namespace freshet::base {
namespace {

std::string Braced(const std::string& labels, const std::string& more = "") {
  if (labels.empty() && more.empty()) return "";
  return Str("{", labels, labels.empty() || more.empty() ? "" : ",", more, "}");
}

void AppendHead(std::string& out, const std::string& name, const std::string& help, std::string_view type) {
  out += Str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  double seen = sum_.load(std::memory_order_relaxed);
  while (!sum_.compare_exchange_weak(seen, seen + value, std::memory_order_relaxed)) {
  }
}

Counter& Metrics::counter(const std::string& name, const std::string& labels, const std::string& help) {
  const Lock lock(mutex_);
  auto& family = counters_[name];
  family.help = help;
  auto& member = family.members[labels];
  if (!member) member = std::make_unique<Counter>();
  return *member;
}

Gauge& Metrics::gauge(const std::string& name, const std::string& labels, const std::string& help) {
  const Lock lock(mutex_);
  auto& family = gauges_[name];
  family.help = help;
  auto& member = family.members[labels];
  if (!member) member = std::make_unique<Gauge>();
  return *member;
}

Gauge& Metrics::total(const std::string& name, const std::string& labels, const std::string& help) {
  const Lock lock(mutex_);
  auto& family = totals_[name];
  family.help = help;
  auto& member = family.members[labels];
  if (!member) member = std::make_unique<Gauge>();
  return *member;
}

Histogram& Metrics::histogram(const std::string& name, const std::string& labels, const std::string& help,
                              std::vector<double> bounds) {
  const Lock lock(mutex_);
  auto& family = histograms_[name];
  family.help = help;
  auto& member = family.members[labels];
  if (!member) member = std::make_unique<Histogram>(std::move(bounds));
  return *member;
}

std::string Metrics::Text() const {
  const Lock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : counters_) {
    AppendHead(out, name, family.help, "counter");
    for (const auto& [labels, one] : family.members) out += Str(name, Braced(labels), " ", one->value(), "\n");
  }
  for (const auto& [name, family] : totals_) {
    AppendHead(out, name, family.help, "counter");
    for (const auto& [labels, one] : family.members) out += Str(name, Braced(labels), " ", one->value(), "\n");
  }
  for (const auto& [name, family] : gauges_) {
    AppendHead(out, name, family.help, "gauge");
    for (const auto& [labels, one] : family.members) out += Str(name, Braced(labels), " ", one->value(), "\n");
  }
  for (const auto& [name, family] : histograms_) {
    AppendHead(out, name, family.help, "histogram");
    for (const auto& [labels, one] : family.members) {
      std::uint64_t below = 0;
      for (std::size_t i = 0; i <= one->bounds().size(); ++i) {
        below += one->bucket(i);
        const std::string bound = i < one->bounds().size() ? Str(one->bounds()[i]) : "+Inf";
        out += Str(name, "_bucket", Braced(labels, Str("le=\"", bound, "\"")), " ", below, "\n");
      }
      out += Str(name, "_sum", Braced(labels), " ", one->sum(), "\n");
      out += Str(name, "_count", Braced(labels), " ", below, "\n");
    }
  }
  return out;
}

}  // namespace freshet::base
