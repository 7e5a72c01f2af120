#include "simulate/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/str.h"

namespace freshet::simulate {
namespace {

using Json = nlohmann::ordered_json;
using Point = MeasuredCosts::Point;

// Of the way from a to b; beyond either, as at that end for each row.
StepCost Between(const Point& a, const Point& b, double rows) {
  const double x = static_cast<double>(a.rows), y = static_cast<double>(b.rows);
  const double share = y > x ? (rows - x) / (y - x) : 0;
  const auto mix = [&](double from, double to) { return std::max(from + share * (to - from), 0.0); };
  StepCost cost;
  cost.compute = mix(a.cost.compute, b.cost.compute);
  cost.apply = mix(a.cost.apply, b.cost.apply);
  for (std::size_t i = 0; i < a.cost.finished.size(); ++i)
    cost.finished.push_back(std::min(mix(a.cost.finished[i], b.cost.finished[i]), cost.compute));
  return cost;
}

StepCost Times(StepCost cost, double factor, bool apply) {
  cost.compute *= factor;
  for (double& moment : cost.finished) moment *= factor;
  if (apply) cost.apply *= factor;
  return cost;
}

}  // namespace

MeasuredCosts::MeasuredCosts(std::vector<Point> points) {
  CHECK(!points.empty());
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.rows < b.rows; });
  for (Point& point : points) points_[point.cores].push_back(std::move(point));
}

StepCost MeasuredCosts::Of(std::size_t rows, int cores) const {
  auto nearest = points_.begin();
  for (auto it = points_.begin(); it != points_.end(); ++it)
    if (std::abs(it->first - cores) < std::abs(nearest->first - cores)) nearest = it;
  const std::vector<Point>& points = nearest->second;
  const double scale = static_cast<double>(nearest->first) / cores;
  const auto r = static_cast<double>(rows);
  if (rows <= points.front().rows || points.size() == 1)
    return Times(points.front().cost, scale * r / static_cast<double>(points.front().rows), false);
  for (std::size_t i = 1; i < points.size(); ++i)
    if (rows <= points[i].rows) return Times(Between(points[i - 1], points[i], r), scale, true);
  StepCost cost = Times(points.back().cost, scale * r / static_cast<double>(points.back().rows), false);
  cost.apply = Between(points[points.size() - 2], points.back(), r).apply;
  return cost;
}

std::string Calibration::ToJson() const {
  Json json = {{"schema", 1}, {"name", platform.name}, {"platform", platform.ToToml()}, {"work", work}};
  json["models"] = Json::array();
  for (const Measured& one : models) {
    Json points = Json::array();
    for (const Point& point : one.points)
      points.push_back({{"rows", point.rows},
                        {"cores", point.cores},
                        {"compute", point.cost.compute},
                        {"apply", point.cost.apply},
                        {"finished", point.cost.finished}});
    json["models"].push_back({{"model", one.model}, {"input", one.input}, {"points", points}});
  }
  return json.dump() + "\n";
}

Result<Calibration> Calibration::FromJson(std::string_view text, const std::string& name) {
  Calibration calibration;
  try {  // the parser's own errors end here
    const Json json = Json::parse(text);
    calibration.platform = TRY(fabric::sim::Platform::Read(json.at("platform").get<std::string>(), name));
    calibration.platform.name = json.at("name").get<std::string>();
    for (const auto& [work, seconds] : json.at("work").items()) calibration.work[work] = seconds.get<double>();
    for (const Json& one : json.at("models")) {
      Measured measured{one.at("model").get<std::string>(), one.at("input").get<std::string>(), {}};
      for (const Json& point : one.at("points")) {
        StepCost cost{point.at("finished").get<std::vector<double>>(), point.at("compute").get<double>(),
                      point.at("apply").get<double>()};
        measured.points.push_back({point.at("rows").get<std::size_t>(), point.at("cores").get<int>(), cost});
        if (measured.points.back().rows < 1 || measured.points.back().cores < 1 ||
            cost.finished.size() != measured.points.front().cost.finished.size())
          return Error{Code::kCorrupt, Str(name, ": what was measured of ", measured.model, " does not fit together")};
      }
      if (measured.points.empty())
        return Error{Code::kCorrupt, Str(name, ": nothing was measured of ", measured.model)};
      calibration.models.push_back(std::move(measured));
    }
  } catch (const Json::exception&) {
    return Error{Code::kCorrupt, Str(name, ": is no calibration; freshet bench --calibrate ", name, " writes one")};
  }
  return calibration;
}

Result<MeasuredCosts> Calibration::CostsOf(const std::string& model, const std::string& input) const {
  std::vector<std::string> names;
  for (const Measured& one : models) {
    if (one.model == model && one.input == input) return MeasuredCosts(one.points);
    names.push_back(one.input.empty() ? one.model : Str(one.model, " of ", one.input));
  }
  return Error{Code::kInvalid, Str("model ", model, input.empty() ? "" : Str(" of ", input),
                                   " was not measured; measured were: ", Join(names, ", "))};
}

}  // namespace freshet::simulate
