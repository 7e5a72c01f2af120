#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace freshet::base {

// Numbers that change all the time, for dashboards. Updating one is a relaxed atomic operation; names follow Prometheus
// (freshet_samples_total{model="a"}), and Text() is its text format 0.0.4.

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // upper bounds, ascending; one more bucket holds the rest
  void Observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  std::uint64_t bucket(std::size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> buckets_;
  std::atomic<double> sum_{0};
};

// Threads: any. References stay valid as long as the registry lives; asking twice gives the same object.
class Metrics {
 public:
  Counter& counter(const std::string& name, const std::string& labels, const std::string& help);
  Gauge& gauge(const std::string& name, const std::string& labels, const std::string& help);
  // A counter that somebody else keeps, or that is no whole number: it is set to what has come together so far.
  Gauge& total(const std::string& name, const std::string& labels, const std::string& help);
  Histogram& histogram(const std::string& name, const std::string& labels, const std::string& help,
                       std::vector<double> bounds);
  std::string Text() const;

 private:
  template <class T>
  struct Family {
    std::string help;
    std::map<std::string, std::unique_ptr<T>> members;  // by labels, e.g. model="a"
  };
  mutable Mutex mutex_;  // of the maps, not of the numbers
  std::map<std::string, Family<Counter>> counters_ GUARDED_BY(mutex_);
  std::map<std::string, Family<Gauge>> gauges_ GUARDED_BY(mutex_);
  std::map<std::string, Family<Gauge>> totals_ GUARDED_BY(mutex_);
  std::map<std::string, Family<Histogram>> histograms_ GUARDED_BY(mutex_);
};

}  // namespace freshet::base
