#include "serve/quality_report.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/str.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::ordered_json;
using deploy::ClassFigures;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
double OrNan(const std::optional<double>& value) { return value.value_or(std::numeric_limits<double>::quiet_NaN()); }

// The classes that come most often, in the order of classes.
std::vector<std::size_t> MostFrequent(const std::vector<ClassFigures::OfClass>& classes) {
  std::vector<std::size_t> order(classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= kMostClasses) return order;
  const auto more = [&](std::size_t a, std::size_t b) { return classes[a].share > classes[b].share; };
  std::stable_sort(order.begin(), order.end(), more);
  order.resize(kMostClasses);
  std::sort(order.begin(), order.end());
  return order;
}

// As Prometheus wants the value of a label.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

std::string WindowName(double rows) { return rows < 10'000 ? "last_thousand" : "last_hundred_thousand"; }

}  // namespace

std::string FiguresJson(const std::vector<ClassFigures>& all) {
  Json json = Json::array();
  for (const ClassFigures& figures : all) {
    Json one = {{"window", figures.window},
                {"rows", figures.rows},
                {"log_loss", OrNull(figures.log_loss)},
                {"auc", OrNull(figures.auc)},
                {"calibration_error", OrNull(figures.calibration_error)},
                {"calibration", Json::array()},
                {"classes", Json::array()}};
    for (const auto& bin : figures.calibration)
      one["calibration"].push_back({{"predicted", bin.predicted}, {"observed", bin.observed}, {"share", bin.share}});
    for (const std::size_t k : MostFrequent(figures.classes)) {
      const ClassFigures::OfClass& of = figures.classes[k];
      one["classes"].push_back({{"class", of.name},
                                {"share", of.share},
                                {"precision", OrNull(of.precision)},
                                {"recall", OrNull(of.recall)},
                                {"auc", OrNull(of.auc)}});
    }
    json.push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // names may not be UTF-8
}

QualityGauges::QualityGauges(base::Metrics& metrics, const std::string& model)
    : metrics_(metrics), label_(Str("model=\"", model, "\"")) {}

void QualityGauges::Set(const std::vector<ClassFigures>& all) {
  for (const ClassFigures& figures : all) {
    const std::string window = Str(",window=\"", WindowName(figures.window), "\"");
    const auto set = [&](std::string_view metric, const std::optional<double>& value) {
      metrics_
          .gauge("freshet_quality", Str(label_, window, ",metric=\"", metric, "\""),
                 "How good the probabilities of a classifier are, before labels are learned.")
          .Set(OrNan(value));
    };
    set("log_loss", figures.log_loss);
    set("auc", figures.auc);
    set("calibration_error", figures.calibration_error);
    if (figures.classes.size() > deploy::ClassQuality::kMostRanked) continue;
    for (const ClassFigures::OfClass& of : figures.classes) {
      const std::string labels = Str(label_, window, ",class=\"", Escaped(of.name), "\"");
      const auto set_class = [&](std::string_view metric, const std::optional<double>& value) {
        metrics_
            .gauge("freshet_class_quality", Str(labels, ",metric=\"", metric, "\""),
                   "How good a classifier is at one class, where there are sixteen or fewer.")
            .Set(OrNan(value));
      };
      set_class("share", of.share);
      set_class("precision", of.precision);
      set_class("recall", of.recall);
      set_class("auc", of.auc);
    }
  }
}

}  // namespace freshet::serve
