#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "deploy/deployment.h"
#include "serve/quality_report.h"
#include "serve/tensors.h"

namespace freshet::serve {

// How a model did at one moment, for charts: one a second, and older ones as its chronicle has them, without what
// nobody wrote down.
struct Moment {
  double time = 0;                      // seconds since 1970
  std::uint64_t version = 0, kept = 0;  // what answers; the newest kept version
  double recent_error = 0, mean_error = 0;
  double rows = 0;  // that mean_error is the mean of: what lies between two moments can be told from both
  std::uint64_t observations = 0, buffered = 0, iterations = 0, drifts = 0, roll_backs = 0;
  std::optional<double> log_loss, auc;  // of a classifier's last thousand rows
  std::optional<double> predictions_per_second, p99_seconds;
  bool training = false;
  std::string ToJson() const;
};

// A model behind the server: its deployment, its numbers, and the last minutes of both.
//
// Threads: Observe… from any; Tick from one; the rest any.
class ServedModel {
 public:
  ServedModel(std::string name, std::unique_ptr<deploy::Deployment> deployment, base::Clock& clock,
              base::Metrics& metrics);

  const std::string& name() const { return name_; }
  deploy::Deployment& deployment() { return *deployment_; }
  const deploy::Deployment& deployment() const { return *deployment_; }

  void ObservePrediction(std::size_t rows, double seconds);
  void ObserveLearned(const deploy::LearnReply& reply);   // rows that came with their labels
  void ObserveFeedback(const deploy::LearnReply& reply);  // labels of what was predicted before

  // Once a second: measures the load, tells the deployment, remembers the moment, renews the gauges. Returns the
  // moment.
  Moment Tick();

  std::string StatsJson() const;     // what GET …/stats answers
  std::string VersionsJson() const;  // what GET …/versions answers
  // What GET …/history answers: the moments of the last ten minutes, and before them the deployment's chronicle.
  std::string HistoryJson() const;

 private:
  struct Load {
    double per_second = 0;                    // rows predicted
    double p50_seconds = 0, p99_seconds = 0;  // of requests; the upper end of a bucket
  };
  Load MeasureLoad();

  const std::string name_;
  const std::unique_ptr<deploy::Deployment> deployment_;
  base::Clock& clock_;
  const base::Clock::Duration started_;

  base::Counter& predictions_;
  base::Counter &learned_rows_, &repeated_rows_;
  base::Counter &accepted_, &duplicates_, &expired_, &steps_, &samples_;
  base::Histogram& duration_;
  base::Gauge &version_gauge_, &published_, &recent_, &mean_, &loss_, &buffered_, &iterations_, &drifts_, &learned_;
  QualityGauges quality_gauges_;
  base::Gauge &damaged_, &set_aside_, &read_only_;

  // Tick's.
  std::vector<std::uint64_t> last_buckets_;
  base::Clock::Duration last_tick_;
  std::uint64_t last_predictions_ = 0, last_steps_ = 0, last_samples_ = 0;

  mutable base::Mutex mutex_;
  Load load_ GUARDED_BY(mutex_);
  std::deque<Moment> moments_ GUARDED_BY(mutex_);
};

}  // namespace freshet::serve
