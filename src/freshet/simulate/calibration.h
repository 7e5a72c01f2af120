#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/platform.h"
#include "simulate/costs.h"

namespace freshet::simulate {

// What a batch costs, as it was measured for some numbers of rows and cores: in between in proportion, beyond as at the
// end (an update as it grew up to there). With other numbers of cores than were measured, by the nearest, as if all cores helped alike.
class MeasuredCosts final : public Costs {
 public:
  struct Point {
    std::size_t rows = 1;
    int cores = 1;
    StepCost cost;
  };
  explicit MeasuredCosts(std::vector<Point> points);  // one or more, of the same blocks
  StepCost Of(std::size_t rows, int cores) const override;

 private:
  std::map<int, std::vector<Point>> points_;  // by cores; rows ascending
};

// This machine as a platform of one node, and what computing and exchanging cost on it. A file of JSON.
struct Calibration {
  fabric::sim::Platform platform;
  std::map<std::string, double, std::less<>> work;  // seconds for a byte, by what Fabric::Spend calls it
  struct Measured {
    std::string model, input;  // as a Subject is named
    std::vector<MeasuredCosts::Point> points;
  };
  std::vector<Measured> models;

  std::string ToJson() const;
  // kCorrupt when the text is none.
  static Result<Calibration> FromJson(std::string_view text, const std::string& name);
  // kInvalid, and what was measured, when this was not.
  Result<MeasuredCosts> CostsOf(const std::string& model, const std::string& input) const;
};

}  // namespace freshet::simulate
