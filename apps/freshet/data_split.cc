#include "data/split.h"

#include <nlohmann/json.hpp>

#include "data/open.h"
#include "data_verbs.h"
#include "results.h"

namespace freshet::cli {
namespace {

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  data::SplitOptions options;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("train", &options.train_path, "where the training rows go", {.value = "FILE"});
  settings.Add("test", &options.test_path, "where the test rows go", {.value = "FILE"});
  settings.Add("share", &options.test_share, "share of rows for testing",
               {.value = "X", .least = 0.000001, .most = 0.999999});
  settings.Add("by-time", &options.by_time, "the latest rows are for testing");
  settings.Add("shuffle", &options.shuffle, "mix the order of the rows");
  settings.Add("json", &json, "what was written as one JSON object");
  settings.Add("seed", &options.seed, "of the random choice", {.value = "N"});
  input.Register(settings, data::Input::Use::kTraining);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (options.train_path.empty() || options.test_path.empty())
    return Error{Code::kInvalid, "name both outputs: --train FILE --test FILE"};
  TRY(CheckPlaceFor(door.files, options.train_path));
  TRY(CheckPlaceFor(door.files, options.test_path));
  options.paths = input.paths;
  options.stop = &door.stop;
  base::ThreadPool pool(Threads(0));
  const auto counts = TRY(data::SplitFiles(door.env(pool), options, input.options));
  if (json)
    return Print(door.files, JsonLine({{"schema", 1},
                                       {"train", {{"out", options.train_path}, {"rows", counts.train}}},
                                       {"test", {{"out", options.test_path}, {"rows", counts.test}}}}));
  return Print(door.files, Str(Grouped(counts.train), " rows to ", options.train_path, ", ", Grouped(counts.test),
                               " to ", options.test_path, "\n"));
}

}  // namespace

extern const Verb kDataSplit = {
    "data split", "part data into training and test rows", "--train FILE --test FILE [FLAGS] DATA…",
    "  freshet data split covtype.data --train c.train --test c.test --share 0.1 --shuffle\n"
    "  freshet data split u.data --train u.train --test u.test --by-time\n",
    Run};

}  // namespace freshet::cli
