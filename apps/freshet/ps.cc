// freshet ps: who works on a running elastic job, and how fast.

#include <nlohmann/json.hpp>

#include "ask.h"
#include "table.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  AskFlags flags;
  bool json = false;
  base::Settings settings;
  flags.Register(settings);
  settings.Add("json", &json, "as one JSON object");
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  const auto asker = TRY(Asker::Open(flags, door));
  const Json first = Json::parse(TRY(asker->Ask(flags.address)), nullptr, false);
  if (!first.is_object() || !first.contains("members") || !first["members"].is_array())
    return Error{Code::kCorrupt, Str(flags.address, " gave no answer that could be read")};
  Json all = Json::array();
  for (const Json& member : first["members"]) {
    const auto answer = asker->Ask(member.value("address", ""));
    Json one = answer.ok() ? Json::parse(answer.value(), nullptr, false) : Json(member);
    if (!one.is_object()) one = Json(member);
    one.erase("members");
    all.push_back(std::move(one));
  }
  const Json found = {{"schema", 1},
                      {"job", flags.job},
                      {"generation", first.value("generation", 0)},
                      {"least", first.value("least", 1)},
                      {"most", first.value("most", 1)},
                      {"workers", all}};
  if (json) return Print(door.files, found.dump() + "\n");
  std::vector<std::vector<std::string>> rows = {{"worker", "address", "pid", "rows", "rows/s"}};
  for (const Json& one : all) {
    const bool there = one.contains("pid");
    rows.push_back({one.value("name", ""), one.value("address", ""), there ? Str(one.value("pid", 0)) : "no answer",
                    there ? Grouped(one.value("rows", std::uint64_t{0})) : "",
                    there ? Grouped(static_cast<std::uint64_t>(one.value("rows_per_second", 0.0))) : ""});
  }
  return Print(door.files,
               Str("job ", flags.job, ", generation ", first.value("generation", 0), ", ", all.size(), " workers of ",
                   first.value("least", 1), " to ", first.value("most", 1), "\n", Table(rows, 2)));
}

}  // namespace

const Verb kPs = {"ps", "show the workers of a running elastic job", "HOST:PORT --job NAME [--token-file FILE]",
                  "  freshet ps 127.0.0.1:41513 --job 5f2c… --token-file job.token\n"
                  "  freshet ps node1:41513 --job nightly --json\n",
                  Run};

}  // namespace freshet::cli
