#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "data/drive.h"
#include "data/open.h"
#include "data_verbs.h"
#include "results.h"

namespace freshet::cli {
namespace {

// The format and, of a table, how it is written.
std::string FormatText(const data::Description& description) {
  if (description.format != "csv") return description.format;
  const std::string& delimiter = description.delimiter;
  return Str("csv, columns by ", delimiter == "\t" ? "tab" : Quoted(delimiter),
             description.decimal == ',' ? ", decimal comma" : "",
             description.header ? ", first line names the columns" : ", no names of columns");
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  bool json = false;
  int threads = 0;
  base::Settings settings;
  input.labelled = false;
  settings.Group("What");
  settings.Add("json", &json, "as one JSON object");
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  input.Register(settings, data::Input::Use::kTraining);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (!settings.Given("max-bad-rows")) input.max_bad_rows = UINT64_MAX;  // looking, not using: count them all
  base::ThreadPool pool(Threads(threads));
  const base::Env env = door.env(pool);
  data::Description description;
  const auto source = TRY(data::Open(env, input, description));
  std::uint64_t rows = 0, entries = 0, features = 0;
  std::map<float, std::uint64_t> labels;
  constexpr std::size_t kMostLabels = 1000;
  const auto started = door.clock.Now();
  TRY(data::DriveInOrder(pool, *source, [&](data::Rows& block) -> Result<void> {
    TRY(door.GoOn());
    rows += block.size();
    entries += block.width > 0 ? block.size() * block.width : block.indices.size();
    features = std::max<std::uint64_t>(features, block.width);
    for (const std::uint32_t index : block.indices.span())
      if (index != data::kUnseen) features = std::max<std::uint64_t>(features, std::uint64_t{index} + 1);
    for (const float label : block.labels.span())
      if (!std::isnan(label) && (labels.size() < kMostLabels || labels.contains(label))) ++labels[label];
    return {};
  }));
  const double seconds = base::Seconds(door.clock.Now() - started);
  const auto name = [&](float label) {
    const auto k = static_cast<std::size_t>(std::max(0.0f, label));
    return description.labels.kind != data::Labels::Kind::kReal && k < description.labels.names.size()
               ? description.labels.names[k]
               : Str(label);
  };
  nlohmann::ordered_json out;
  out["schema"] = 1;
  out["rows"] = rows;
  out["bad_rows"] = source->bad_rows();
  out["features"] = features;
  out["entries_per_row"] = rows == 0 ? 0.0 : static_cast<double>(entries) / static_cast<double>(rows);
  out["input"] = nlohmann::ordered_json::parse(description.ToJson());
  out["labels"] = nlohmann::ordered_json::object();
  for (const auto& [label, count] : labels) out["labels"][name(label)] = count;
  out["dictionaries"] = nlohmann::ordered_json::array();
  for (const auto& dictionary : description.dictionaries) out["dictionaries"].push_back(dictionary.size());
  out["seconds"] = seconds;
  if (!description.columns.empty() && description.format == "csv") out["notes"] = description.notes;
  if (json) return Print(door.files, JsonLine(out));
  std::string text = Str("format    ", FormatText(description), "\n");
  text += Str("rows      ", Grouped(rows),
              source->bad_rows() > 0 ? Str(", and ", Grouped(source->bad_rows()), " that are malformed") : "", "\n");
  text += Str("features  ", Grouped(features), ", ", Fixed(out["entries_per_row"].get<double>(), 1), " a row",
              description.dense ? " (dense)" : "", "\n");
  for (const auto& column : description.columns)
    text += Str("column    ", Printable(column.name), "  ", data::Name(column.kind), "\n");
  for (std::size_t i = 0; i < description.dictionaries.size(); ++i)
    text += Str(description.format == "ratings" ? (i == 0 ? "users     " : "items     ") : "names     ",
                Grouped(description.dictionaries[i].size()), "\n");
  std::size_t shown = 0;
  for (const auto& [label, count] : labels) {
    if (++shown > 12) {
      text += Str("label     … ", labels.size(), labels.size() == kMostLabels ? " or more" : "", " values\n");
      break;
    }
    text += Str("label     ", Printable(name(label)), "  ", Grouped(count), "\n");
  }
  for (const std::string& note : description.notes) text += Str("note      ", note, "\n");
  return Print(door.files, text + Str("read in   ", Fixed(seconds, 3), " s\n"));
}

}  // namespace

extern const Verb kDataInspect = {"data inspect", "what is in data files", "[FLAGS] DATA…",
                                  "  freshet data inspect a9a.xz\n"
                                  "  freshet data inspect --label income adult.csv --bad-rows bad.txt\n",
                                  Run};

}  // namespace freshet::cli
