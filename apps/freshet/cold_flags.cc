#include "cold_flags.h"

#include <algorithm>

#include "data/formats/ratings_columns.h"
#include "train/learning.h"

namespace freshet::cli {
namespace {

using Kind = data::Column::Kind;

constexpr Kind kColumnKinds[] = {Kind::kNumber, Kind::kCategory, Kind::kDate,    Kind::kDateTime,
                                 Kind::kWeight, Kind::kTime,     Kind::kIgnored, Kind::kLabel};

// NAME or NAME:KIND, separated by commas. A label that nobody names stands last and is called so.
Result<std::vector<data::Column>> ParseColumns(const std::string& text) {
  std::vector<data::Column> columns;
  std::vector<std::string> kinds;
  for (const Kind kind : kColumnKinds) kinds.emplace_back(data::Name(kind));
  bool labelled = false;
  for (const std::string_view part : Split(text, ',')) {
    const std::string_view whole = Trim(part);
    const auto colon = whole.rfind(':');
    const std::string_view name = whole.substr(0, colon);
    const std::string_view kind = colon == std::string_view::npos ? "number" : whole.substr(colon + 1);
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    if (name.empty() || found == kinds.end())
      return Error{Code::kInvalid, Str("--columns ", Quoted(whole), ": expected NAME or NAME:KIND, with a kind of ",
                                       Join(kinds, ", "))};
    const auto same = [&](const data::Column& column) { return column.name == name; };
    if (std::any_of(columns.begin(), columns.end(), same))
      return Error{Code::kInvalid, Str("--columns: two are called ", Quoted(name))};
    columns.push_back({std::string(name), kColumnKinds[found - kinds.begin()]});
    if (columns.back().kind != Kind::kLabel) continue;
    if (labelled) return Error{Code::kInvalid, "--columns: there is one label, of several that are named"};
    labelled = true;
  }
  if (!labelled) columns.push_back({"label", Kind::kLabel});
  return columns;
}

std::vector<data::Column> NumberedColumns(std::uint64_t count) {
  std::vector<data::Column> columns;
  for (std::uint64_t f = 0; f < count; ++f) columns.push_back({Str("x", f + 1), Kind::kNumber});
  columns.push_back({"label", Kind::kLabel});
  return columns;
}

Result<void> DescribeTable(std::vector<data::Column> columns, data::Description& description) {
  const bool categories =
      std::any_of(columns.begin(), columns.end(), [](const auto& column) { return column.kind == Kind::kCategory; });
  description.format = "csv";
  description.delimiter = ",";
  description.columns = std::move(columns);
  for (const data::Column& column : description.columns) description.features += column.numbers();
  if (description.features == 0 && !categories)
    return Error{Code::kInvalid, "--columns: there is none to learn from beside the label"};
  description.dense = !categories;
  description.standardise = description.features > 0;
  if (description.standardise) description.moments = data::Moments(description.features);
  if (categories) description.dictionaries.resize(1);
  return {};
}

Result<void> DescribeLabels(const ColdFlags& flags, data::Labels& labels) {
  if (labels.kind == data::Labels::Kind::kReal) {
    if (!flags.classes.empty()) return Error{Code::kInvalid, "--classes: squared loss predicts numbers, not classes"};
    return {};
  }
  const std::string names = flags.classes.empty() ? "0,1" : flags.classes;
  for (const std::string_view name : Split(names, ',')) labels.names.emplace_back(data::CanonicalLabel(Trim(name)));
  if (labels.kind == data::Labels::Kind::kBinary && labels.names.size() != 2)
    return Error{Code::kInvalid, "--classes: a loss of two classes wants two labels"};
  labels.Index();
  return {};
}

}  // namespace

void ColdFlags::Register(base::Settings& settings) {
  settings.Add("cold", &name, "also serve a model of this name that starts with no data", {.value = "NAME"});
  settings.Add("kind", &kind, "of the cold model; a network by its description",
               {.value = "KIND", .choices = {"linear", "factorization", "fm", "mlp"}, .or_file = ".toml"});
  auto losses = model::LossNames();
  losses.insert(losses.begin(), "auto");
  settings.Add("loss", &loss, "of a cold model (auto: logistic; softmax for more than two classes)",
               {.value = "NAME", .choices = losses});
  settings.Add("features", &features, "numbers a row of a cold model (0: sparse rows, or as --columns says)",
               {.value = "N"});
  settings.Add("columns", &columns,
               "table of a cold model: NAME or NAME:KIND, with a kind of number, category, date, label, …",
               {.value = "A,B:KIND"});
  settings.Add("classes", &classes, "labels of a cold model, comma-separated (default 0,1)", {.value = "A,B"});
  settings.Add("scale-target", &scale_target,
               "a cold model learns numbers centred and scaled, as the first thousand show them");
  settings.Add("factors", &factors, "of a cold factorization or fm",
               {.letter = 'k', .value = "N", .least = 1, .most = 4096});
  settings.Add("hidden", &hidden, "hidden units of a cold mlp (0: its own)",
               {.value = "N", .least = 0, .most = 1 << 20});
}

Result<model::TrainedModel> ColdFlags::Make(base::Files& files, base::Log& log, optimize::Memory& memory,
                                            std::uint64_t seed) const {
  train::Learning learning{.use = train::Learning::Use::kReplay};
  learning.model = kind;
  learning.factors = factors;
  learning.hidden = hidden;
  learning.features = features;
  learning.seed = seed;
  learning.loss = loss;
  if (loss == "auto" && kind != "factorization")
    learning.loss = std::count(classes.begin(), classes.end(), ',') > 1 ? "softmax" : "logistic";
  data::Input input;
  TRY(learning.ChooseTask(files, input));
  data::Description description;
  description.labels.kind = input.options.task;
  if (kind == "factorization") {
    description.format = "ratings";
    description.delimiter = "::";
    description.columns = data::RatingsColumns();
    description.dictionaries.resize(2);
  } else if (!columns.empty()) {
    TRY(DescribeTable(TRY(ParseColumns(columns)), description));
    if (features > 0 && (description.dense || !learning.IsNetwork()))
      return Error{Code::kInvalid, "--features: the columns that --columns names say how many there are"};
  } else if (features > 0) {
    TRY(DescribeTable(NumberedColumns(features), description));
  } else {
    description.format = "libsvm";
  }
  TRY(DescribeLabels(*this, description.labels));
  learning.SettleDefaults(description);
  auto model = TRY(model::Model::Make(TRY(learning.Config(description, log).While(Str("--cold ", name)))));
  if (scale_target && model->WantsScaledLabels()) description.target = data::Target::Moving();
  auto parameters = TRY(model->NewParameters(memory));
  return model::TrainedModel{std::move(model), std::move(parameters), std::move(description), {}};
}

}  // namespace freshet::cli
