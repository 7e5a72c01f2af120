#include "train/standing.h"

#include <nlohmann/json.hpp>

namespace freshet::train {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const data::Position& p) { return {p.file, p.offset, p.line, p.sample, p.block}; }
data::Position PositionFrom(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)}; }

}  // namespace

double Lot::progress() const {
  const double share = due == 0 ? 1 : static_cast<double>(done) / static_cast<double>(due);
  return from + share * (to - from);
}

data::Batch Standing::Waiting() const {
  return lot.due == 0 ? window.batch() : lot.rows.Slice(lot.done - lot.before, lot.rows.rows);
}

std::string Standing::Place() const {
  Json json;
  json["position"] = ToJson(position);
  json["windows"] = windows;
  json["window_begin"] = window_begin;
  json["progress"] = progress;
  if (lot.due > 0) json["lot"] = {lot.due, lot.done, lot.from, lot.to};
  return json.dump();
}

void Standing::LoadPlace(const std::string& text) {
  const Json json = Json::parse(text);
  position = PositionFrom(json.at("position"));
  windows = json.at("windows");
  window_begin = json.at("window_begin");
  progress = json.at("progress");
  lot = {};
  if (!json.contains("lot")) return;
  const Json& left = json.at("lot");
  lot = {.due = left.at(0), .done = left.at(1), .from = left.at(2), .to = left.at(3)};
}

std::string Standing::Counts() const {
  const Json json = {{"seen", seen.Save()}, {"rows", rows}, {"joined_rows", joined_rows}};
  return json.dump();
}

bool Standing::LoadCounts(const std::string& text) {
  const Json json = Json::parse(text);
  rows = json.at("rows");
  joined_rows = json.at("joined_rows");
  return seen.Load(json.at("seen"));
}

}  // namespace freshet::train
