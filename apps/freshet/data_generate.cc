#include "data/generate.h"

#include <nlohmann/json.hpp>
#include <numbers>

#include "data/grammar.h"
#include "data_verbs.h"
#include "results.h"

namespace freshet::cli {
namespace {

// Passes on what is written until somebody asks to stop.
class Interruptible final : public base::OutputFile {
 public:
  Interruptible(const Door& door, base::OutputFile& file) : door_(door), file_(file) {}
  Result<void> Write(std::span<const std::byte> bytes) override {
    TRY(door_.GoOn());
    return file_.Write(bytes);
  }
  Result<void> Sync() override { return file_.Sync(); }

 private:
  const Door& door_;
  base::OutputFile& file_;
};

// What the best model of a text could reach.
std::string Entropy() {
  const double bits = data::Grammar().EntropyRate();
  return Str("entropy  ", Fixed(bits, 4), " bits a symbol (a log loss of ", Fixed(bits * std::numbers::ln2, 4), ")\n");
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::GenerateOptions options;
  options.rows = 10'000;
  std::string out = "-";
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("kind", &options.kind, "what to make up", {.value = "KIND", .choices = data::GeneratorKinds()});
  settings.Add("rows", &options.rows, "how many rows", {.letter = 'n', .value = "N"});
  settings.Add("out", &out, "where they go", {.letter = 'o', .value = "FILE"});
  settings.Add("json", &json, "what was written as one JSON object");
  settings.Add("seed", &options.seed, "the same seed gives the same rows", {.value = "N"});
  settings.Add("first-row", &options.first_row, "go on after so many rows", {.value = "N"});
  settings.Add("drift-rows", &options.drift_rows, "sea: rows of a concept; hyperplane: of a quarter turn (0: rows / 4)",
               {.value = "N"});
  settings.Add("features", &options.features, "of hyperplane", {.value = "N", .least = 1, .most = 10000});
  settings.Add("users", &options.users, "of ratings", {.value = "N", .least = 1, .most = 1e9});
  settings.Add("items", &options.items, "of ratings", {.value = "N", .least = 1, .most = 1e9});
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (options.kind.empty())
    return Error{Code::kInvalid, Str("--kind: expected one of ", Join(data::GeneratorKinds(), ", "))};
  const auto write = [&](base::OutputFile& file) {
    Interruptible rows(door, file);
    return data::Generate(options, rows);
  };
  if (json && out == "-")
    return Error{Code::kInvalid, "--json: the rows go to standard output already; name a file with -o FILE"};
  TRY(CheckPlaceFor(door.files, out));
  if (out == "-") {
    const auto file = TRY(door.files.Create("-"));
    return write(*file);
  }
  TRY(base::WriteAtomic(door.files, out, write));
  if (json) {
    nlohmann::ordered_json wrote = {{"schema", 1}, {"out", out}, {"kind", options.kind}, {"rows", options.rows}};
    if (options.kind == "grammar") wrote["bits_per_symbol"] = data::Grammar().EntropyRate();
    return Print(door.files, JsonLine(wrote));
  }
  return options.kind == "grammar" ? Print(door.files, Entropy()) : Result<void>();
}

}  // namespace

extern const Verb kDataGenerate = {
    "data generate", "make up data of known difficulty", "--kind KIND [FLAGS]",
    "  freshet data generate --kind sea --rows 60000 -o sea.csv          four concepts, 10 % noise\n"
    "  freshet data generate --kind url-like --rows 200000 -o url.svm    sparse, 3.2 million features\n"
    "  freshet data generate --kind url-like --rows 20000 --first-row 200000 -o url.t.svm\n"
    "  freshet data generate --kind ratings --rows 1000000 -o ratings.dat\n"
    "  freshet data generate --kind grammar --rows 40000 -o grammar.txt  nested brackets of known entropy\n",
    Run};

}  // namespace freshet::cli
