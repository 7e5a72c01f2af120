// SEA concepts: how well the default linear model follows a stream whose rule changes abruptly. Counted is the
// prequential error (every row predicted before it is learned) from the 2,000th row of each concept on, and beside it
// the noise floor: the error of somebody who knows the rule.

#include <array>
#include <cstdlib>

#include "data/reader.h"
#include "inputs.h"
#include "train/trainer.h"

namespace freshet::bench {
namespace {

constexpr std::size_t kConcepts = 4, kConceptRows = 15'000, kSettlingRows = 2'000;

// A stream of the SEA family: label 1 when two of the columns add up to more than the concept's threshold.
struct Sea {
  std::string name, path;
  std::size_t first_column;
  std::array<double, kConcepts> thetas;
};

bool Counts(std::size_t row) { return row % kConceptRows >= kSettlingRows; }

// The error of the rule itself, over the rows that count.
Result<double> NoiseFloor(base::Files& files, const Sea& sea) {
  const std::string text = TRY(ReadText(files, sea.path));
  std::size_t row = 0, counted = 0, wrong = 0;
  for (const std::string_view line : Split(text, '\n')) {
    const auto cells = Split(line, ',');
    if (cells.size() != 4 || line.starts_with('x')) continue;
    const double sum =
        std::strtod(cells[sea.first_column].data(), nullptr) + std::strtod(cells[sea.first_column + 1].data(), nullptr);
    const bool above = sum > sea.thetas[row / kConceptRows % kConcepts];
    const bool label = Trim(cells[3]) == "1";
    if (Counts(row++)) {
      ++counted;
      wrong += above != label;
    }
  }
  return static_cast<double>(wrong) / static_cast<double>(counted);
}

// The prequential error over the rows that count, and over all.
struct Prequential {
  double settled = 0, all = 0;
};

Result<Prequential> Learn(Context& context, const Sea& sea) {
  data::ReaderOptions reading;
  reading.paths = {sea.path};
  reading.chunk_bytes = 32;  // a row or two a block, so that progress is told row by row
  data::Description description;
  const auto reader = TRY(data::Reader::Open(context.env, reading, {}, description));

  // What the command line takes for standardised tables when nothing is said.
  model::ModelConfig config;
  config.dense = true;
  config.features = description.features;
  optimize::OptimizerOptions learning;
  learning.kind = "adagrad";
  learning.schedule.rate = 0.15;

  optimize::HeapMemory memory;
  const auto model = TRY(model::Model::Make(config));
  const auto optimizer = TRY(optimize::Optimizer::Make(learning, memory));
  auto parameters = TRY(model->NewParameters(memory, optimizer->slots()));
  double rows_before = 0, wrong_before = 0, counted = 0, wrong_counted = 0;
  train::TrainOptions options;
  options.progress = [&](const train::Progress& progress) {
    const auto rows = static_cast<double>(progress.rows);
    const double wrong = progress.error_rate.value_or(1) * rows;
    if (Counts(progress.rows - 1)) {
      counted += rows - rows_before;
      wrong_counted += wrong - wrong_before;
    }
    rows_before = rows;
    wrong_before = wrong;
  };
  const auto report =
      TRY(train::Trainer(context.env, options, *model, parameters, *optimizer, description).Run(*reader));
  return Prequential{wrong_counted / counted, report.progressive.error_rate().value_or(1)};
}

}  // namespace

Result<void> BenchSea(Context& context) {
  data::GenerateOptions generate;
  generate.kind = "sea";
  generate.rows = kConcepts * kConceptRows;
  generate.drift_rows = kConceptRows;
  std::vector<Sea> seas = {{"generated", TRY(GenerateFile(context, generate)), 0, {8, 9, 7, 9.5}}};
  if (const auto real = FindData(context, "sea/sea.data.xz"))
    seas.push_back({"published", *real, 1, {8, 9, 7, 9}});
  else if (!context.tiny)
    context.report.Note("the published SEA stream was NOT found (sea/sea.data.xz): only the generated one was run");

  for (const Sea& sea : seas) {
    const double floor = TRY(NoiseFloor(context.env.files, sea));
    const Prequential error = TRY(Learn(context, sea));
    const auto percent = [](double share) { return Spread{100 * share, 100 * share, 100 * share}; };
    context.report.Add({Str(sea.name, ", noise floor"), percent(floor), "%", 2});
    context.report.Add({Str(sea.name, ", error from row 2,000 of each concept on"), percent(error.settled), "%", 2,
                        AtMost(100 * floor + 2)});
    context.report.Add({Str(sea.name, ", error over all rows"), percent(error.all), "%", 2});
    context.report.Check(Str(sea.name, ", it learned"), error.settled < floor + 0.05,
                         Str(Fixed(100 * (error.settled - floor), 2), " points above the floor"));
  }
  return {};
}

}  // namespace freshet::bench
