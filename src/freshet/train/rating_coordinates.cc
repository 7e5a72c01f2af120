#include "train/rating_coordinates.h"

#include "data/drive.h"
#include "strategy/scheduled/scheduled_factors.h"
#include "train/descend.h"
#include "train/early_stopping.h"
#include "train/held_out.h"
#include "train/strata.h"

namespace freshet::train {
namespace {

using strategy::scheduled::OwnRatings;
using strategy::scheduled::ScheduledFactors;
using strategy::scheduled::Share;

// One run: its ratings, its descent, and how it does.
class RatingCoordinates {
 public:
  RatingCoordinates(const base::Env& env, const TrainOptions& options, const model::Model& model,
                    optimize::Parameters& parameters, const data::Description& description,
                    const Coordinates& coordinates)
      : env_(env),
        options_(options),
        model_(model),
        parameters_(parameters),
        description_(description),
        coordinates_(coordinates),
        watch_(env.clock, options.stop, options.progress, 0),
        held_out_(env, options.hold_out, model, parameters, description),
        early_(options.patience, model, memory_) {}

  Result<Report> Run(data::RowSource& source) {
    const auto begun = env_.clock.Now();
    watch_.Start();
    OwnRatings ratings = TRY(Keep(source));
    const bool trained = model_.ratings()->KnowsMean(parameters_);
    if (!trained) model_.ratings()->StartMean(parameters_, ratings.mean(), ratings.size());
    const std::uint64_t rows = ratings.size();
    const ScheduledFactors::Options options{
        .order = coordinates_.how.order == "random" ? Share::Order::kRandom : Share::Order::kRecent,
        .rows = coordinates_.how.coordinates,
        .l2 = coordinates_.l2,
        .seed = options_.seed,
        .trained = trained};
    ScheduledFactors scheduled(options, {coordinates_.collectives, env_.clock, options_.trace}, env_.executor,
                               std::move(ratings), parameters_);
    Report report;
    report.progressive = TRY(Evaluate(scheduled));
    const Following how{.options = options_,
                        .watch = watch_,
                        .rows = rows,
                        .against = "; check the ratings for huge values",
                        .epoch_ended = [&] { return EvaluateHeldOut(source, report); }};
    const auto descended = Descend(scheduled, how, report, coordinates_.descent);
    coordinates_.times.Add(scheduled.times());
    TRY(descended);
    coordinates_.descent.nonzero = scheduled.nonzero();
    report.last_epoch = TRY(Evaluate(scheduled));
    if (early_.best() != nullptr) {
      parameters_.CopyFrom(*early_.best());
      TRY(PredictHeldOut(source, report));
    }
    report.held_out_losses = early_.record().losses;
    report.rows = report.epochs * rows;
    report.seconds = base::Seconds(env_.clock.Now() - begun);
    coordinates_.times.rows += report.rows;
    return report;
  }

 private:
  // Reads all ratings.
  Result<OwnRatings> Keep(data::RowSource& source) {
    using strategy::Grid;
    const fabric::Collectives* const others = coordinates_.collectives;
    const int rank = others == nullptr ? 0 : others->fabric().rank(),
              size = others == nullptr ? 1 : others->fabric().size();
    OwnRatings ratings(options_.seed, {.first = fabric::ChunkBegin(Grid::kSides, rank, size),
                                       .last = fabric::ChunkBegin(Grid::kSides, rank + 1, size)});
    const auto begun = env_.clock.Now();
    held_out_.BeginRatings(true);
    const auto kept = data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) -> Result<void> {
      if (watch_.stopping()) return Error{Code::kStopped, "stopped"};
      const data::Batch batch = rows.batch();
      if (options_.rated != nullptr) options_.rated->Add(batch);
      for (std::size_t r = 0; r < batch.rows; ++r)
        if (!held_out_.KeepRating(batch, r)) ratings.Add(RatingOf(batch, r));
      return model_.Prepare(parameters_, batch);
    });
    coordinates_.times.read += base::Seconds(env_.clock.Now() - begun);
    TRY(EndOfReading(coordinates_.collectives, kept));
    if (ratings.size() == 0) return Error{Code::kBadInput, "no rows to learn from"};
    ratings.Arrange();
    return ratings;
  }

  Result<Evaluation> Evaluate(ScheduledFactors& scheduled) const {
    const double squares = TRY(scheduled.Sum()).squares;
    Evaluation sums = SumsFor(model_, description_);
    sums.AddLoss(scheduled.ratings(), 0.5 * squares, squares);
    return sums;
  }

  // Every member has the whole model, and finds the same.
  Result<void> PredictHeldOut(data::RowSource& source, Report& report) {
    const base::Span span(options_.trace, "evaluate", base::Trace::kTraining);
    Evaluation held = SumsFor(model_, description_, Evaluation::Extent::kWithAuc);
    TRY(held_out_.PredictRatings(
        source, [] { return true; }, held));
    if (held.rows() == 0) return Error{Code::kInvalid, "no rows are held out; choose another fraction or time"};
    report.held_out = std::move(held);
    return {};
  }

  Result<bool> EvaluateHeldOut(data::RowSource& source, Report& report) {
    if (!options_.hold_out.any()) return false;
    TRY(PredictHeldOut(source, report));
    TRY(early_.Add(report.held_out->loss(), parameters_));
    return early_.stops();
  }

  const base::Env& env_;
  const TrainOptions& options_;
  const model::Model& model_;
  optimize::Parameters& parameters_;
  const data::Description& description_;
  const Coordinates& coordinates_;
  Watch watch_;
  HeldOut held_out_;
  optimize::HeapMemory memory_;  // of `early_`
  EarlyStopping early_;
};

}  // namespace

Result<Report> TrainRatingsByCoordinates(const base::Env& env, const TrainOptions& options, const model::Model& model,
                                         optimize::Parameters& parameters, const data::Description& description,
                                         data::RowSource& source, const Coordinates& coordinates) {
  return RatingCoordinates(env, options, model, parameters, description, coordinates).Run(source);
}

}  // namespace freshet::train
