// freshet ps: who works on a running job, and how fast.

#include <nlohmann/json.hpp>

#include "ask.h"
#include "base/metrics.h"
#include "table.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

// As a value of a label may be written.
std::string Label(const char* name, const std::string& value) {
  std::string text;
  for (const char c : value) text += c == '\n' ? std::string("\\n") : (c == '"' || c == '\\') ? Str('\\', c) : Str(c);
  return Str(name, "=\"", text, "\"");
}

std::string MetricsOf(const Json& found) {
  base::Metrics metrics;
  const std::string job = Label("job", found.value("job", ""));
  metrics.gauge("freshet_train_generation", job, "Number of the group, counted from 1.")
      .Set(found.value("generation", 0));
  metrics.gauge("freshet_train_workers", job, "Workers in it.").Set(static_cast<double>(found["workers"].size()));
  for (const Json& one : found["workers"]) {
    const std::string labels =
        Str(job, ",", Label("worker", one.value("name", "")), ",", Label("pid", Str(one.value("pid", 0))));
    const auto total = [&](const char* name, const char* key, const char* help) {
      metrics.total(name, labels, help).Set(one.value(key, 0.0));
    };
    metrics.gauge("freshet_train_up", labels, "Whether it answered.").Set(one.contains("pid") ? 1 : 0);
    if (!one.contains("pid")) continue;
    metrics.gauge("freshet_train_rows_per_second", labels, "Of all workers, as this one sees it.")
        .Set(one.value("rows_per_second", 0.0));
    total("freshet_train_steps_total", "step", "Updates of the model.");
    total("freshet_train_rows_total", "rows", "Rows learned from by all workers.");
    total("freshet_train_membership_changes_total", "changes", "Changes of the group that this worker saw.");
    total("freshet_train_lost_total", "lost", "Workers that were lost meanwhile.");
    total("freshet_train_came_total", "came", "Workers that came.");
    total("freshet_train_repeated_steps_total", "repeated", "Steps that this worker made again.");
    total("freshet_train_refused_letters_total", "refused", "Letters of strangers, of other jobs, or replayed.");
  }
  return metrics.Text();
}

// "ssp:3 since clock 512, bap is wished"
std::string SynchronyOf(const Json& answer) {
  const Json& synchrony = answer.at("synchrony");
  std::string text = synchrony.value("now", "");
  if (synchrony.value("changes", 0) > 0) text += Str(" since clock ", synchrony.value("since", 0));
  if (synchrony.contains("wished")) text += Str(", ", synchrony.value("wished", ""), " is wished");
  return text;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  AskFlags flags;
  bool json = false, metrics = false;
  base::Settings settings;
  flags.Register(settings);
  settings.Add("json", &json, "as one JSON object");
  settings.Add("metrics", &metrics, "as metrics for Prometheus (its node exporter's textfile collector)");
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
  if (metrics) return Print(door.files, MetricsOf(found));
  const bool served = first.contains("synchrony");  // by a parameter server
  std::vector<std::vector<std::string>> rows = {{"worker", "address", "pid", "step", "rows", "rows/s"}};
  if (served) rows[0].insert(rows[0].end(), {"clock", "updates served"});
  for (const Json& one : all) {
    const bool there = one.contains("pid");
    rows.push_back({one.value("name", ""), one.value("address", ""), there ? Str(one.value("pid", 0)) : "no answer",
                    there ? Grouped(one.value("step", std::uint64_t{0})) : "",
                    there ? Grouped(one.value("rows", std::uint64_t{0})) : "",
                    there ? Grouped(static_cast<std::uint64_t>(one.value("rows_per_second", 0.0))) : ""});
    if (!served) continue;
    for (const char* const count : {"clock", "updates_served"})
      rows.back().push_back(one.contains(count) ? Grouped(one.value(count, std::uint64_t{0})) : "");
  }
  const int least = first.value("least", 1), most = first.value("most", 1);
  std::string head =
      Str("job ", flags.job, ", generation ", first.value("generation", 0), ", ", all.size(), " workers");
  if (least != most) head += Str(" of ", least, " to ", most);
  if (served) head += Str(", synchrony ", SynchronyOf(first));
  return Print(door.files, Str(head, "\n", Table(rows, 2)));
}

}  // namespace

const Verb kPs = {"ps", "show the workers of a running job", "HOST:PORT --job NAME [--token-file FILE]",
                  "  freshet ps 127.0.0.1:41513 --job 5f2c… --token-file job.token\n"
                  "  freshet ps node1:41513 --job nightly --json\n",
                  Run};

}  // namespace freshet::cli
