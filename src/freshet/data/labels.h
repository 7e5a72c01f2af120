#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::data {

// What the label of a row means, as learned from the head of the data or told by the user, and saved with the model.
//   real     the number itself
//   binary   0 for names[0], 1 for names[1]; with `positive`, 1 for that label and 0 for every other
//   classes  k for names[k]
// Labels that are numbers are compared as numbers, so that +1, 1 and 1.0 are one label.
class Labels {
 public:
  enum class Kind { kAuto, kReal, kBinary, kClasses };
  static constexpr float kUnknown = -std::numeric_limits<float>::infinity();

  Kind kind = Kind::kAuto;
  std::string positive;            // one class against the rest
  std::vector<std::string> names;  // in canonical form

  // The label as the model sees it; kUnknown for a label that is none of the names.
  float Map(double number) const {
    if (kind == Kind::kReal) return static_cast<float>(number);
    if (!positive.empty()) return number == positive_value_ ? 1.0f : 0.0f;
    for (std::size_t k = 0; k < values_.size(); ++k)
      if (values_[k] == number) return static_cast<float>(k);
    return kUnknown;
  }
  float Map(std::string_view text) const;

  // Settles what is still open from the labels seen in the head (and adds to names). kBadInput when they do not fit.
  Result<void> Settle(const std::vector<std::string>& seen);
  // To be called after names or positive were changed.
  void Index();
  // How an error names the labels that are known.
  std::string Expected() const;

  std::size_t classes() const { return kind == Kind::kClasses ? names.size() : (kind == Kind::kBinary ? 2 : 1); }

 private:
  std::vector<double> values_;  // names as numbers; NaN for those that are none
  double positive_value_ = std::numeric_limits<double>::quiet_NaN();
};

// The canonical form of a label: a number (by `mark`, see ParseMarked, where that is a comma) in its shortest form,
// other text as it is.
std::string CanonicalLabel(std::string_view text, char mark = '.');

}  // namespace freshet::data
