#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/cache.h"
#include "data/drive.h"
#include "data/open.h"
#include "data_verbs.h"
#include "notes.h"
#include "results.h"

namespace freshet::cli {
namespace {

// Rows as LIBSVM text, features counted from 1. Zeros of dense rows are left out; a missing value has no LIBSVM form.
Result<void> AppendLibsvm(const data::Description& description, const data::Batch& batch, std::string& out) {
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const float label = batch.labels[r];
    const auto k = static_cast<std::size_t>(std::max(0.0f, label));
    if (description.labels.kind == data::Labels::Kind::kBinary)
      out += label > 0 ? "+1" : "-1";
    else if (description.labels.kind == data::Labels::Kind::kClasses)
      out += Str(k);
    else
      out += Str(std::isnan(label) ? 0.0f : label);
    const auto add = [&](std::uint64_t index, float value) {
      if (value != 0 && !std::isnan(value) && index != data::kUnseen) out += Str(" ", index + 1, ":", value);
    };
    if (batch.sparse()) {
      std::vector<std::pair<std::uint32_t, float>> entries;
      for (std::uint32_t e = batch.offsets[r]; e < batch.offsets[r + 1]; ++e)
        entries.emplace_back(batch.indices[e], batch.values[e]);
      std::sort(entries.begin(), entries.end());
      for (std::size_t i = 0; i < entries.size(); ++i) {
        // Hashing may have put two features in one place: they add up, as they do in a linear model.
        while (i + 1 < entries.size() && entries[i + 1].first == entries[i].first) {
          entries[i + 1].second += entries[i].second;
          ++i;
        }
        add(entries[i].first, entries[i].second);
      }
    } else {
      for (std::size_t j = 0; j < batch.width; ++j) add(j, batch.dense[r * batch.width + j]);
    }
    out += "\n";
  }
  return {};
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  std::string to = "cache", out;
  int threads = 0;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("to", &to, "the format to write", {.value = "FORMAT", .choices = {"cache", "libsvm"}});
  settings.Add("out", &out, "where it goes", {.letter = 'o', .value = "FILE"});
  settings.Add("json", &json, "what was written as one JSON object");
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  input.Register(settings, data::Input::Use::kTraining);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (out.empty()) return Error{Code::kInvalid, "no output: name it with -o FILE"};
  TRY(CheckPlaceFor(door.files, out));
  base::ThreadPool pool(Threads(threads));
  const base::Env env = door.env(pool);
  data::Description description;
  input.stop = &door.stop;
  const auto source = TRY(data::Open(env, input, description));
  TRY(data::FindAllClasses(env, input, description));
  ShowNotes(description);
  std::uint64_t count = 0;
  const auto drive = [&](const auto& take) {
    return data::DriveInOrder(pool, *source, [&](data::Rows& rows) -> Result<void> {
      TRY(door.GoOn());
      count += rows.size();
      return take(rows);
    });
  };
  if (to == "cache") {
    const auto writer = TRY(data::CacheWriter::Create(door.files, out));
    TRY(drive([&](data::Rows& rows) { return writer->Append(rows); }));
    TRY(writer->Close(description));
  } else {
    if (description.format == "ratings")
      return Error{Code::kInvalid, "ratings have no LIBSVM form; convert them to a cache"};
    TRY(base::WriteAtomic(door.files, out, [&](base::OutputFile& file) {
      std::string text;
      return drive([&](data::Rows& rows) -> Result<void> {
        text.clear();
        TRY(AppendLibsvm(description, rows.batch(), text));
        return file.Write(text);
      });
    }));
  }
  if (!json) return {};
  nlohmann::ordered_json wrote = {{"schema", 1}, {"out", out}, {"to", to}};
  wrote["rows"] = count;
  wrote["bad_rows"] = source->bad_rows();
  if (!description.notes.empty()) wrote["notes"] = description.notes;
  return Print(door.files, JsonLine(wrote));
}

}  // namespace

extern const Verb kDataConvert = {
    "data convert", "parse once, train many times: write a cache, or LIBSVM text", "-o FILE [FLAGS] DATA…",
    "  freshet data convert clicks.csv.gz -o clicks.cache && freshet train clicks.cache -o clicks.model\n"
    "  freshet data convert table.csv --label y --to libsvm -o table.svm\n",
    Run};

}  // namespace freshet::cli
