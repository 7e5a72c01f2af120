#include "inspect_state.h"

#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "data/tensor_file.h"
#include "deploy/log/segment.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const deploy::Record& record) {
  Json json = {{"sequence", record.sequence}, {"kind", deploy::Name(record.kind)}};
  switch (record.kind) {
    case deploy::RecordKind::kObservation:
    case deploy::RecordKind::kPrediction: {
      deploy::Slip slip;
      deploy::PeekSlip(record.payload, slip);
      json["time"] = slip.time;
      if (!slip.id.empty()) json["id"] = slip.id;
      if (!slip.owner.empty()) json["owner"] = slip.owner;
      json["bytes"] = record.payload.size();
      break;
    }
    case deploy::RecordKind::kNames:
      json["bytes"] = record.payload.size();
      break;
    default:
      json["what"] = Json::parse(record.payload, nullptr, false);
  }
  return json;
}

struct Seen {
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t first = 0, last = 0, bytes = 0;
  std::vector<deploy::Damage> damages;
  std::deque<Json> tail;
};

// The records of all segments in a directory; the last of them are kept to be shown.
Result<void> ScanSegments(Door& door, const std::string& directory, std::uint64_t records, Seen& seen) {
  const auto paths = door.files.Glob(directory + "/*.log");
  if (!paths.ok()) return {};
  for (const std::string& path : paths.value()) {
    TRY(door.GoOn());
    auto segment = deploy::Segment::Open(door.files, path);
    if (!segment.ok()) {
      seen.damages.push_back({path, 0, 0, 0, 0});
      continue;
    }
    seen.bytes += TRY(segment.value()->Scan(
        0, 0,
        [&](const deploy::Record& record, std::uint64_t) -> Result<void> {
          if (record.sequence <= seen.last) return {};  // written again after a sync had failed
          if (seen.first == 0) seen.first = record.sequence;
          seen.last = record.sequence;
          ++seen.counts[std::string(deploy::Name(record.kind))];
          if (records > 0) seen.tail.push_back(JsonOf(record));
          if (seen.tail.size() > records) seen.tail.pop_front();
          return {};
        },
        &seen.damages));
  }
  return {};
}

Json VersionsIn(Door& door, const std::string& directory) {
  Json versions = Json::array();
  const auto paths = door.files.Glob(directory + "/versions/*.model.vitals");
  if (!paths.ok()) return versions;
  for (const std::string& path : paths.value()) {
    const auto file = data::TensorFile::Read(door.files, path);
    const auto version = file.ok() ? file.value().Meta("version") : Result<std::string>(file.error());
    Json json = version.ok() ? Json::parse(version.value(), nullptr, false) : Json();
    versions.push_back(json.is_object() ? json : Json{{"file", path}, {"damaged", true}});
  }
  return versions;
}

}  // namespace

Result<void> InspectState(Door& door, const std::string& directory, std::uint64_t records, bool json) {
  if (!door.files.Exists(directory + "/journal"))
    return Error{Code::kNotFound, Str(directory,
                                      ": is a directory, but not of a deployment (it has no journal); "
                                      "name STATE/MODEL or a model file")};
  Seen seen, pending;
  TRY(ScanSegments(door, directory + "/journal", records, seen));
  TRY(ScanSegments(door, directory + "/pending", 0, pending));
  seen.damages.insert(seen.damages.end(), pending.damages.begin(), pending.damages.end());
  const Json versions = VersionsIn(door, directory);
  if (json) {
    Json out = {{"schema", 1},
                {"records", seen.counts},
                {"first", seen.first},
                {"last", seen.last},
                {"bytes", seen.bytes},
                {"pending", pending.counts},
                {"damaged_places", seen.damages.size()},
                {"versions", versions},
                {"tail", seen.tail}};
    return Print(door.files, out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  std::string text =
      Str("journal  records ", seen.first, " to ", seen.last, ", ", HumanBytes(static_cast<double>(seen.bytes)), "\n");
  for (const auto& [kind, count] : seen.counts) text += Str("records  ", Grouped(count), " ", kind, "\n");
  for (const auto& [kind, count] : pending.counts)
    text += Str("pending  ", Grouped(count), " ", kind, ", ", HumanBytes(static_cast<double>(pending.bytes)), "\n");
  for (const deploy::Damage& damage : seen.damages)
    text += Str("damaged  ", damage.path, ": ", damage.bytes, " bytes at ", damage.offset, ", ", damage.lost,
                " records from ", damage.first_lost, " on\n");
  for (const Json& version : versions) {
    if (version.contains("damaged")) {
      text += Str("version  damaged: ", version["file"].get<std::string>(), "\n");
      continue;
    }
    text += Str("version  ", version.value("version", "?"), "  ", version.value("origin", "?"), ", ",
                Grouped(version.value("learned", std::uint64_t{0})), " observations learned, recent error ",
                Fixed(version.value("recent_error", 0.0), 4), version.value("pinned", false) ? ", pinned" : "", "\n");
  }
  for (const Json& record : seen.tail) text += record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return Print(door.files, text);
}

}  // namespace freshet::cli
