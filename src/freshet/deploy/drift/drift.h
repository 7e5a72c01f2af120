#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::deploy {

enum class Drift { kNone, kWarning, kDrift };

// Says when a model's errors have become larger than they were: the sign that the data has changed. It is told the
// progressive error of one row after the other (0 or 1 for a class, any loss for a number) and knows nothing else.
// Only a rise counts; a model that gets better is no cause for alarm. After kDrift it starts anew, so that one change
// is reported once. No kind depends on the unit of the errors.
//
// Threads:  none of its own; one thread at a time.
// Blocking: never. Add takes constant time on average and the memory is bounded (adwin: by the logarithm of the rows).
// Failure:  an error that is not a finite number is ignored, as if the row had not come. Errors beyond ±1e100 count as
//           ±1e100, so that no sum overflows.
class DriftDetector {
 public:
  // adwin, ddm, page-hinkley, or none, which never finds anything.
  static Result<std::unique_ptr<DriftDetector>> Make(std::string_view kind);
  static std::vector<std::string> Kinds();
  virtual ~DriftDetector() = default;

  virtual std::string_view name() const = 0;
  Drift Add(double error);
  // After kDrift: how many of the last errors came after the change, as far as it can tell.
  std::uint64_t since() const { return since_; }

  // All it remembers, as finite numbers. A detector of the same kind that loads them goes on as this one would.
  virtual std::vector<double> Save() const = 0;
  // False, and nothing has changed, when the numbers cannot come from Save.
  [[nodiscard]] virtual bool Load(std::span<const double> state) = 0;

 protected:
  void SetSince(double errors) { since_ = static_cast<std::uint64_t>(errors); }

 private:
  virtual Drift OnError(double error) = 0;  // finite and not huge

  std::uint64_t since_ = 0;
};

// Count, mean and spread of errors, kept without cancellation (Chan, Golub and LeVeque 1983).
struct ErrorMoments {
  double count = 0, mean = 0;
  double squares = 0;  // the sum of squared distances from the mean

  void Add(double error) { Merge({1, error, 0}); }
  void Merge(const ErrorMoments& other);
  double variance() const { return count > 0 ? squares / count : 0; }
  bool plausible() const;  // could be the moments of errors
};

}  // namespace freshet::deploy
