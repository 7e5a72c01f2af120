#pragma once

#include <atomic>
#include <nlohmann/json.hpp>

#include "deploy/deployment.h"

// Private to deployment*.cc.
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

// A training iteration on its way, or a retraining.
struct Deployment::Job {
  const model::Model* model = nullptr;
  std::uint64_t start = 0;  // sequence of its start record
  bool retrain = false, keep = false;
  bool named = false;  // its end names the version that was made: the work cannot be repeated
  int passes = 1;
  double scale = 1;
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint64_t> unvisited;  // of data sets: learned first, as rows that are new
  std::uint64_t sets_end = 0;            // sets that begin before this number are visited by it
  VersionInfo info;
  data::Description description;  // as of the start
  std::unique_ptr<State> state;
  std::uint64_t applied = 0;  // every observation before this sequence is in the state
  std::vector<std::unique_ptr<Edition>> editions;

  std::atomic<bool> stop{false};
  std::atomic<bool> done{false};  // the fields below, and those above, are the writer's again
  std::optional<Error> error;
  WorkReport report;
  double seconds = 0;
};

}  // namespace freshet::deploy
