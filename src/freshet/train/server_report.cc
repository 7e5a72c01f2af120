#include "train/server_report.h"

namespace freshet::train {
namespace {

using Json = nlohmann::ordered_json;
using strategy::server::Report;

Json ToJson(const Report::Block& block) {
  Json json = {{"name", block.name},           {"rows", block.rows},           {"rows_held", block.held},
               {"bytes_pulled", block.pulled}, {"bytes_pushed", block.pushed}, {"range_rows", block.range_rows}};
  json["hottest_rows"] = json["busiest_ranges"] = Json::array();
  for (const Report::Row& row : block.hottest) json["hottest_rows"].push_back({{"row", row.row}, {"bytes", row.bytes}});
  for (const Report::Range& range : block.busiest)
    json["busiest_ranges"].push_back({{"first", range.first}, {"last", range.last}, {"bytes", range.bytes}});
  return json;
}

Report::Block BlockFrom(const Json& json) {
  Report::Block block{.name = json.at("name"),
                      .rows = json.at("rows"),
                      .held = json.at("rows_held"),
                      .pulled = json.at("bytes_pulled"),
                      .pushed = json.at("bytes_pushed"),
                      .range_rows = json.at("range_rows")};
  for (const Json& row : json.at("hottest_rows")) block.hottest.push_back({row.at("row"), row.at("bytes")});
  for (const Json& range : json.at("busiest_ranges"))
    block.busiest.push_back({range.at("first"), range.at("last"), range.at("bytes")});
  return block;
}

}  // namespace

Json ToJson(const Report& report) {
  Json json = {{"waited_for", report.waited_for},
               {"updates", report.updates},
               {"moved", report.moved},
               {"blocks", Json::array()}};
  for (const Report::Block& block : report.blocks) json["blocks"].push_back(ToJson(block));
  return json;
}

Result<Report> ServerReportFrom(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Report report{.waited_for = json.at("waited_for"), .updates = json.at("updates"), .moved = json.at("moved")};
    for (const Json& block : json.at("blocks")) report.blocks.push_back(BlockFrom(block));
    return report;
  } catch (const Json::exception& problem) {
    return Error{Code::kCorrupt, problem.what()};
  }
}

}  // namespace freshet::train
