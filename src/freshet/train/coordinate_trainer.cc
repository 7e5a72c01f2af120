#include "train/coordinate_trainer.h"

#include "base/option.h"
#include "data/drive.h"
#include "data/standardise.h"
#include "strategy/scheduled/scheduled.h"
#include "train/descend.h"
#include "train/rating_coordinates.h"

namespace freshet::train {
namespace {

using strategy::scheduled::Scheduled;
using strategy::scheduled::Share;

constexpr int kMostMembers = static_cast<int>(Scheduled::kShares);
constexpr std::uint64_t kCoordinatesOfRound = 16, kMostCoordinatesOfRound = 4096;

// One run: its rows, its descent, and how it does.
class CoordinateTrainer {
 public:
  CoordinateTrainer(const base::Env& env, const TrainOptions& options, const model::Model& model,
                    optimize::Parameters& parameters, data::Description& description, const Coordinates& coordinates)
      : env_(env),
        options_(options),
        model_(model),
        parameters_(parameters),
        description_(description),
        coordinates_(coordinates),
        unit_(description.target.deviation() * description.target.deviation()),
        watch_(env.clock, options.stop, options.progress, 0) {}

  Result<Report> Run(data::RowSource& source) {
    const auto begun = env_.clock.Now();
    watch_.Start();
    TRY(Keep(source));
    const strategy::scheduled::DescentOptions& how = coordinates_.how;
    const bool random = how.order == "random";
    const Scheduled::Options options{.order = random ? Share::Order::kRandom : Share::Order::kRecent,
                                     .coordinates = how.coordinates > 0 ? how.coordinates : kCoordinatesOfRound,
                                     .rho = how.rho,
                                     .l1 = coordinates_.l1,
                                     .l2 = coordinates_.l2,
                                     .seed = options_.seed};
    Scheduled scheduled(options, {coordinates_.collectives, env_.clock, options_.trace}, model_.loss(), rows_.batch(),
                        Weights());
    Report report;
    report.progressive = Evaluate(scheduled);
    const Following following{.options = options_,
                              .watch = watch_,
                              .rows = rows_.size(),
                              .unit = unit_,
                              .ends_early = !random,
                              .against = random ? Str(": coordinates of a round depend on each other; use ",
                                                      Option("order"), " recent, or ", Option("coordinates"), " 1")
                                                : "; check the data for huge values, or standardise it"};
    Descent& descent = coordinates_.descent;
    const auto descended = Descend(scheduled, following, report, descent);
    coordinates_.times.Add(scheduled.times());
    TRY(descended);
    PutWeights(scheduled.weights());
    for (const float weight : scheduled.weights()) descent.nonzero += weight != 0 ? 1 : 0;
    report.last_epoch = Evaluate(scheduled);
    report.rows = report.epochs * rows_.size();
    report.seconds = base::Seconds(env_.clock.Now() - begun);
    coordinates_.times.rows += report.rows;
    return report;
  }

 private:
  // Reads all rows, which are learned from as they are when moments of all are known.
  Result<void> Keep(data::RowSource& source) {
    const auto begun = env_.clock.Now();
    rows_.ClearRows();
    const auto kept = data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) -> Result<void> {
      if (watch_.stopping()) return Error{Code::kStopped, "stopped"};
      const data::Batch batch = rows.batch();
      rows_.width = rows.width;
      for (std::size_t r = 0; r < batch.rows; ++r) rows_.AppendRow(batch, r);
      if (description_.standardise && options_.learn_moments) data::Standardise(description_.moments, rows);
      return model_.Prepare(parameters_, batch);
    });
    coordinates_.times.read += base::Seconds(env_.clock.Now() - begun);
    TRY(EndOfReading(coordinates_.collectives, kept));
    if (rows_.size() == 0) return Error{Code::kBadInput, "no rows to learn from"};
    data::Standardise(description_, rows_);
    data::ScaleLabels(description_, rows_);
    return {};
  }

  std::vector<float> Weights() const {
    std::vector<float> weights;
    const bool dense = model_.config().dense;
    const std::uint64_t features = dense ? parameters_.width(0) : parameters_.rows(0);
    for (std::uint64_t j = 0; j < features; ++j)
      weights.push_back(dense ? parameters_.Row(0, 0)[j] : *parameters_.Row(0, j));
    weights.push_back(*parameters_.Row(1, 0));
    return weights;
  }

  void PutWeights(std::span<const float> weights) {
    const std::size_t features = weights.size() - 1;
    for (std::size_t j = 0; j < features; ++j)
      (model_.config().dense ? parameters_.Row(0, 0)[j] : *parameters_.Row(0, j)) = weights[j];
    *parameters_.Row(1, 0) = weights.back();
  }

  Evaluation Evaluate(const Scheduled& scheduled) const {
    Evaluation sums = SumsFor(model_, description_);
    sums.Add(rows_.batch(), scheduled.scores(), scheduled.Loss());
    return sums;
  }

  const base::Env& env_;
  const TrainOptions& options_;
  const model::Model& model_;
  optimize::Parameters& parameters_;
  data::Description& description_;
  const Coordinates& coordinates_;
  const double unit_;  // of the objective, in those of the data
  Watch watch_;
  data::Rows rows_;
};

Result<void> Check(const TrainOptions& options, const model::Model& model, const Coordinates& coordinates) {
  const auto refuse = [](std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " scheduled ", why)};
  };
  const bool ratings = model.config().kind == "factorization";
  const std::string_view loss = model.loss().name();
  const bool fits =
      ratings ? loss == "squared" : model.traits().weighs_features && (loss == "squared" || loss == "logistic");
  if (!fits)
    return refuse(
        Str("is for factorization of squared loss and for linear models of squared or logistic loss, not for ",
            Option("model"), " ", model.config().kind, " of ", loss, " loss; use allreduce"));
  if (options.batch > 1 || !options.checkpoint_path.empty())
    return refuse(
        Str("goes with neither ", Option("batch"), " nor ", Option("checkpoint"), ": it takes all rows at once"));
  if (!ratings && options.hold_out.any())
    return refuse(Str("does not go with ", Option("holdout"), " and linear models, where the rows would be in the ",
                      "columns, too; split them off before (freshet data split)"));
  if (!ratings && coordinates.how.coordinates > kMostCoordinatesOfRound)
    return refuse(Str("of linear models goes with at most ", Option("coordinates"), " ", kMostCoordinatesOfRound));
  if (ratings && coordinates.l1 > 0)
    return refuse(Str("does not go with ", Option("l1"), " and ", Option("model"),
                      " factorization, whose factors are held small by ", Option("l2"), " alone; leave it out"));
  if (ratings && coordinates.how.rho != strategy::scheduled::DescentOptions().rho)
    return refuse(Str("does not go with ", Option("rho"), " and ", Option("model"),
                      " factorization, where users do not depend on each other, nor items; leave it out"));
  if (coordinates.collectives != nullptr && coordinates.collectives->fabric().size() > kMostMembers)
    return refuse(Str("goes with at most ", kMostMembers, " workers, each of which has a share of the coordinates"));
  return {};
}

}  // namespace

Result<Report> TrainByCoordinates(const base::Env& env, const TrainOptions& options, const model::Model& model,
                                  optimize::Parameters& parameters, data::Description& description,
                                  data::RowSource& source, const Coordinates& coordinates) {
  TRY(Check(options, model, coordinates));
  if (model.ratings() != nullptr)
    return TrainRatingsByCoordinates(env, options, model, parameters, description, source, coordinates);
  return CoordinateTrainer(env, options, model, parameters, description, coordinates).Run(source);
}

}  // namespace freshet::train
