// Matrix factorization of MovieLens 1M as `freshet train ratings.dat -k 40 --holdout 0.1` does it: seconds and RMSE.

#include "data/reader.h"
#include "inputs.h"
#include "train/trainer.h"

namespace freshet::bench {
namespace {

Result<train::Report> Train(Context& context, const std::string& path, int epochs) {
  data::ReaderOptions reading;
  reading.paths = {path};
  data::InputOptions input;
  input.format = "ratings";
  data::Description description;
  const auto reader = TRY(data::Reader::Open(context.env, reading, input, description));

  model::ModelConfig config;
  config.kind = "factorization";
  config.loss = "squared";
  optimize::OptimizerOptions learning;
  learning.kind = "sgd";
  learning.schedule.kind = "linear";
  learning.schedule.rate = 0.04;
  learning.l2 = 0.05;
  train::TrainOptions options;
  options.epochs = epochs;
  options.hold_out.fraction = 0.1;
  options.scratch_directory = context.scratch;

  optimize::HeapMemory memory;
  const auto model = TRY(model::Model::Make(config));
  const auto optimizer = TRY(optimize::Optimizer::Make(learning, memory));
  auto parameters = TRY(model->NewParameters(memory, optimizer->slots()));
  return train::Trainer(context.env, options, *model, parameters, *optimizer, description).Run(*reader);
}

}  // namespace

Result<void> BenchFactorization(Context& context) {
  constexpr double kTargetRmse = 0.843;  // on MovieLens
  Report& report = context.report;
  const int epochs = context.tiny ? 5 : 20;
  const auto real = FindData(context, "ml-1m/ratings-all-no-timestamp.dat.xz");
  std::string path;
  if (real) {
    // Unpacked beforehand, so that reading is what it would be for a plain file.
    path = context.scratch + "/ratings.dat";
    TRY(TRY(context.env.files.Create(path))->Write(TRY(ReadText(context.env.files, *real))));
  } else {
    data::GenerateOptions generate;
    generate.kind = "ratings";
    generate.rows = context.tiny ? 20'000 : 1'000'000;
    path = TRY(GenerateFile(context, generate));
    if (!context.tiny)
      report.Note(
          "MovieLens 1M was NOT found (ml-1m/ratings-all-no-timestamp.dat.xz): generated ratings stand in, and "
          "their RMSE has no target");
  }

  train::Report last;
  std::vector<double> whole;
  const auto training = TRY(Seconds(context, [&]() -> Result<double> {
    last = TRY(Train(context, path, epochs));
    whole.push_back(last.seconds);
    return last.update_seconds;
  }));
  whole.erase(whole.begin());  // the warm-up
  const int threads = context.env.executor.width();
  const std::string what = Str(epochs, " epochs, k = 40, ", threads, threads == 1 ? " thread" : " threads");
  report.Add({Str(what, ", training"), SpreadOf(training), "s", 3, AtMost(0.8)});
  report.Add({Str(what, ", with reading the text"), SpreadOf(whole), "s", 3});
  const double rmse = last.held_out->rmse().value_or(99);
  Figure figure{"RMSE on a random 10 %", {rmse, rmse, rmse}, "", 4};
  if (real) figure.target = AtMost(kTargetRmse);
  report.Add(figure);
  report.Check("it learned", rmse < (context.tiny ? 1.0 : 0.9),
               Str(Grouped(last.rows / static_cast<std::uint64_t>(epochs)), " ratings, RMSE ", Fixed(rmse, 4), " on ",
                   Grouped(last.held_out->rows()), " others"));
  return {};
}

}  // namespace freshet::bench
