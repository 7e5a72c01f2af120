#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "deploy/log/record.h"

// What the records of a log hold that are no observations: JSON objects.
namespace freshet::deploy {

using Json = nlohmann::ordered_json;

// How much of the optimizer's sums a drift record leaves.
inline double KeepOf(const Record& record) {
  const Json json = Json::parse(record.payload, nullptr, false);
  return json.contains("keep") && json["keep"].is_number() ? json["keep"].get<double>() : 1;
}

// The version that a record of a roll-back or a pin is about.
inline Result<std::uint64_t> TargetOf(const Record& record) {
  const Json json = Json::parse(record.payload, nullptr, false);
  if (json.is_object() && json.contains("version") && json["version"].is_number_unsigned())
    return json["version"].get<std::uint64_t>();
  return Error{Code::kCorrupt, Str("record ", record.sequence, " (", Name(record.kind), ") names no version")};
}

}  // namespace freshet::deploy
