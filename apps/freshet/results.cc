#include "results.h"

#include <nlohmann/json.hpp>

namespace freshet::cli {
namespace {

// What the mean loss is called.
std::string LossName(const model::Model& model) {
  if (model.traits().answers_clusters) return "half_squared_distance";
  const std::string_view name = model.loss().name();
  if (name == "logistic" || name == "softmax") return "log_loss";
  return Str(name, "_loss");
}

// Four decimals say enough, unless the unit makes numbers very small or large.
std::string Legible(double number) {
  const bool usual = number == 0 || (number >= 1e-3 && number < 1e12);
  return usual ? Fixed(number, 4) : Str(static_cast<float>(number));
}

}  // namespace

std::string JsonLine(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string Printable(std::string_view name) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else if (c == '\n' || c == '\t' || c == '\r')
      (out += '\\') += c == '\n' ? 'n' : (c == '\t' ? 't' : 'r');
    else
      (((out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15]);
  }
  return out;
}

nlohmann::ordered_json ToJson(const train::Evaluation& evaluation, const model::Model& model) {
  nlohmann::ordered_json json;
  json["rows"] = evaluation.rows();
  json[LossName(model)] = evaluation.loss();
  if (const auto error = evaluation.error_rate()) json["error_rate"] = *error;
  if (const auto auc = evaluation.auc()) json["auc"] = *auc;
  if (const auto rmse = evaluation.rmse()) {
    json["rmse"] = *rmse;
    json["mse"] = *rmse * *rmse;
    if (const auto mean = evaluation.rmse_of_mean()) json["rmse_of_mean"] = *mean;
  }
  return json;
}

std::string ToText(const train::Evaluation& evaluation, const model::Model& model) {
  std::string out = Str(Grouped(evaluation.rows()), " rows");
  if (const auto error = evaluation.error_rate()) out += Str("  error ", Fixed(*error * 100, 2), " %");
  if (const auto rmse = evaluation.rmse()) out += Str("  RMSE ", Legible(*rmse));
  if (!evaluation.rmse()) {
    std::string name = LossName(model);
    for (char& c : name) c = c == '_' ? ' ' : c;
    out += Str("  ", name, " ", Fixed(evaluation.loss(), 4));
  }
  if (const auto auc = evaluation.auc()) out += Str("  AUC ", Fixed(*auc, 4));
  return out;
}

}  // namespace freshet::cli
