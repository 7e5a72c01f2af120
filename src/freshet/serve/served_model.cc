#include "serve/served_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/option.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> DurationBounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 3, 10};
}

// JSON has null for what is not known.
Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json JsonOf(const Moment& m) {
  return {{"t", m.time},
          {"version", Str(m.version)},
          {"kept", Str(m.kept)},
          {"recent_error", m.recent_error},
          {"mean_error", m.mean_error},
          {"rows", m.rows},
          {"observations", m.observations},
          {"buffered", m.buffered},
          {"iterations", m.iterations},
          {"drifts", m.drifts},
          {"roll_backs", m.roll_backs},
          {"log_loss", OrNull(m.log_loss)},
          {"auc", OrNull(m.auc)},
          {"predictions_per_second", OrNull(m.predictions_per_second)},
          {"p99_seconds", OrNull(m.p99_seconds)},
          {"training", m.training}};
}

Moment MomentOf(const deploy::Chronicle::Point& point) {
  const auto known = [](double value) { return value < 0 ? std::optional<double>() : std::optional(value); };
  Moment moment;
  moment.time = static_cast<double>(point.time);
  moment.kept = point.kept;
  moment.recent_error = point.recent;
  moment.mean_error = point.rows > 0 ? point.errors / point.rows : 0;
  moment.rows = point.rows;
  moment.observations = point.observations;
  moment.iterations = point.iterations;
  moment.drifts = point.drifts;
  moment.roll_backs = point.roll_backs;
  moment.log_loss = known(point.log_loss);
  moment.auc = known(point.auc);
  return moment;
}

}  // namespace

std::string Moment::ToJson() const { return JsonOf(*this).dump(); }

ServedModel::ServedModel(std::string name, std::unique_ptr<deploy::Deployment> deployment, base::Clock& clock,
                         base::Metrics& metrics)
    : name_(std::move(name)),
      deployment_(std::move(deployment)),
      clock_(clock),
      started_(clock.Now()),
      predictions_(metrics.counter("freshet_predictions_total", Str("model=\"", name_, "\""), "Rows predicted.")),
      learned_rows_(metrics.counter("freshet_learn_rows_total", Str("model=\"", name_, "\",result=\"accepted\""),
                                    "Rows sent with their labels, by what became of them.")),
      repeated_rows_(metrics.counter("freshet_learn_rows_total", Str("model=\"", name_, "\",result=\"duplicate\""),
                                     "Rows sent with their labels, by what became of them.")),
      accepted_(metrics.counter("freshet_feedback_total", Str("model=\"", name_, "\",result=\"accepted\""),
                                "Labels sent for rows predicted before, by what became of them.")),
      duplicates_(metrics.counter("freshet_feedback_total", Str("model=\"", name_, "\",result=\"duplicate\""),
                                  "Labels sent for rows predicted before, by what became of them.")),
      expired_(metrics.counter("freshet_feedback_total", Str("model=\"", name_, "\",result=\"expired\""),
                               "Labels sent for rows predicted before, by what became of them.")),
      steps_(
          metrics.counter("freshet_train_steps_total", Str("model=\"", name_, "\""), "Steps of training iterations.")),
      samples_(metrics.counter("freshet_train_samples_total", Str("model=\"", name_, "\""),
                               "Observations learned one by one.")),
      duration_(metrics.histogram("freshet_infer_duration_seconds", Str("model=\"", name_, "\""),
                                  "Time to answer a prediction, without the network.", DurationBounds())),
      version_gauge_(metrics.gauge("freshet_model_version", Str("model=\"", name_, "\""),
                                   "The version that answers: the last record it has learned from.")),
      published_(metrics.gauge("freshet_model_published_timestamp_seconds", Str("model=\"", name_, "\""),
                               "When the version that answers was published.")),
      recent_(metrics.gauge("freshet_eval_metric", Str("model=\"", name_, "\",metric=\"recent_error\""),
                            "Error of predictions made before their label was learned.")),
      mean_(metrics.gauge("freshet_eval_metric", Str("model=\"", name_, "\",metric=\"mean_error\""),
                          "Error of predictions made before their label was learned.")),
      loss_(metrics.gauge("freshet_train_loss", Str("model=\"", name_, "\",window=\"iteration\""),
                          "Mean loss of the last training iteration.")),
      buffered_(metrics.gauge("freshet_buffered_samples", Str("model=\"", name_, "\""),
                              "Observations since the last iteration.")),
      iterations_(
          metrics.total("freshet_iterations_total", Str("model=\"", name_, "\""), "Iterations published so far.")),
      drifts_(metrics.total("freshet_drifts_total", Str("model=\"", name_, "\""), "Drifts detected so far.")),
      learned_(metrics.gauge("freshet_history_samples", Str("model=\"", name_, "\""),
                             "Observations that iterations can draw from.")),
      quality_gauges_(metrics, name_),
      damaged_(metrics.total("freshet_damaged_places_total", Str("model=\"", name_, "\""),
                             "Places of the journal, data sets and versions that were found damaged.")),
      set_aside_(
          metrics.total("freshet_set_aside_samples_total", Str("model=\"", name_, "\""),
                        "Observations that were not learned since the start: their loss was beyond all bounds.")),
      read_only_(metrics.gauge("freshet_read_only", Str("model=\"", name_, "\""),
                               "1 while no observation is taken, since the disk failed to keep what was written.")),
      last_buckets_(DurationBounds().size() + 1, 0),
      last_tick_(clock.Now()) {}

void ServedModel::ObservePrediction(std::size_t rows, double seconds) {
  predictions_.Add(rows);
  duration_.Observe(seconds);
}

void ServedModel::ObserveLearned(const deploy::LearnReply& reply) {
  learned_rows_.Add(reply.accepted);
  repeated_rows_.Add(reply.duplicates);
}

void ServedModel::ObserveFeedback(const deploy::LearnReply& reply) {
  accepted_.Add(reply.accepted);
  duplicates_.Add(reply.duplicates);
  expired_.Add(reply.expired);
}

// What was asked since the last tick: rows, and how long requests took by what the histogram has gained.
ServedModel::Load ServedModel::MeasureLoad() {
  const auto now = clock_.Now();
  const double seconds = std::max(1e-3, base::Seconds(now - last_tick_));
  last_tick_ = now;
  std::vector<std::uint64_t> gained(last_buckets_.size());
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < gained.size(); ++i) {
    const std::uint64_t bucket = duration_.bucket(i);
    gained[i] = bucket - last_buckets_[i];
    last_buckets_[i] = bucket;
    count += gained[i];
  }
  const auto quantile = [&](double share) {
    if (count == 0) return 0.0;
    double below = 0;
    for (std::size_t i = 0; i < gained.size(); ++i) {
      below += static_cast<double>(gained[i]);
      if (below >= share * static_cast<double>(count)) return duration_.bounds()[std::min(i, gained.size() - 2)];
    }
    return duration_.bounds().back();
  };
  const std::uint64_t predictions = predictions_.value();
  const double rows = static_cast<double>(predictions - last_predictions_);
  last_predictions_ = predictions;
  return {rows / seconds, quantile(0.5), quantile(0.99)};
}

Moment ServedModel::Tick() {
  const Load load = MeasureLoad();
  deployment_->SetLoad(load.per_second, load.p99_seconds);
  const deploy::Stats stats = deployment_->stats();
  version_gauge_.Set(static_cast<double>(stats.version));
  published_.Set(static_cast<double>(stats.published));
  recent_.Set(stats.quality.recent);
  mean_.Set(stats.quality.mean());
  loss_.Set(stats.last_loss);
  buffered_.Set(static_cast<double>(stats.buffered));
  iterations_.Set(static_cast<double>(stats.iterations));
  drifts_.Set(static_cast<double>(stats.drifts));
  learned_.Set(static_cast<double>(stats.history));
  damaged_.Set(static_cast<double>(stats.damaged_places));
  set_aside_.Set(static_cast<double>(stats.set_aside));
  read_only_.Set(stats.read_only ? 1 : 0);
  steps_.Add(stats.iteration_rows - last_steps_);
  samples_.Add(stats.learned - std::min(stats.learned, last_samples_));
  last_steps_ = stats.iteration_rows;
  last_samples_ = stats.learned;
  const auto figures = deployment_->class_figures();
  quality_gauges_.Set(figures);

  Moment moment;
  moment.time = base::Seconds(clock_.Wall());
  moment.version = stats.version;
  if (deployment_->versions() != nullptr)
    if (const auto kept = deployment_->versions()->list(); !kept.empty()) moment.kept = kept.back().id;
  moment.recent_error = stats.quality.recent;
  moment.mean_error = stats.quality.mean();
  moment.rows = stats.quality.rows;
  moment.observations = stats.observations;
  moment.buffered = stats.buffered;
  moment.iterations = stats.iterations;
  moment.drifts = stats.drifts;
  moment.roll_backs = stats.roll_backs;
  if (!figures.empty()) {
    moment.log_loss = figures[0].log_loss;
    moment.auc = figures[0].auc;
  }
  moment.predictions_per_second = load.per_second;
  moment.p99_seconds = load.p99_seconds;
  moment.training = stats.training;
  const base::Lock lock(mutex_);
  load_ = load;
  moments_.push_back(moment);
  constexpr std::size_t kMoments = 600;
  if (moments_.size() > kMoments) moments_.pop_front();
  return moment;
}

std::string ServedModel::StatsJson() const {
  const deploy::Stats s = deployment_->stats();
  Load load;
  Json newest;  // null before the first tick
  {
    const base::Lock lock(mutex_);
    load = load_;
    if (!moments_.empty()) newest = JsonOf(moments_.back());
  }
  const auto& config = deployment_->model().config();
  const auto& options = deployment_->options();
  Json json;
  json["name"] = name_;
  json["kind"] = config.kind;
  json["loss"] = config.loss;
  json["method"] = deploy::Name(options.method);
  json["version"] = Str(s.version);
  json["published"] = s.published;
  json["uptime_seconds"] = base::Seconds(clock_.Now() - started_);
  json["serving"] = {{"predictions_total", predictions_.value()},
                     {"per_second", load.per_second},
                     {"p50_seconds", load.p50_seconds},
                     {"p99_seconds", load.p99_seconds}};
  json["learning"] = {{"observations", s.observations},
                      {"learned", s.learned},
                      {"model_rows", s.model_rows},
                      {"duplicates", s.duplicates},
                      {"buffered", s.buffered},
                      {"buffer_size", options.schedule.max_buffer_size},
                      {"history", s.history},
                      {"pending", s.pending},
                      {"sequence", s.sequence},
                      {"journal_bytes", s.journal_bytes},
                      {"damaged_places", s.damaged_places},
                      {"set_aside", s.set_aside},
                      {"read_only", s.read_only},
                      {"sampling_rate", s.sampling_rate},
                      {"scheduler", s.scheduler},
                      {"converged", s.converged},
                      {"diverged", s.diverged},
                      {"problem", ShowOptions(s.problem, "--")}};
  json["training"] = {{"iterations", s.iterations},
                      {"running", s.training},
                      {"given_up", s.given_up},
                      {"steps", s.iteration_rows},
                      {"seconds", s.iteration_seconds},
                      {"longest_seconds", s.longest_iteration},
                      {"last_loss", s.last_loss},
                      {"drifts", s.drifts},
                      {"roll_backs", s.roll_backs},
                      {"longest_copy_seconds", s.copy_seconds},
                      {"longest_publication_seconds", s.publish_seconds_max}};
  json["quality"] = {{"measure", config.loss == "squared" ? "squared error" : "error rate"},
                     {"rows", s.quality.rows},
                     {"mean", s.quality.mean()},
                     {"last_thousand", s.quality.recent},
                     {"last_hundred_thousand", s.quality.longer}};
  if (const auto figures = deployment_->class_figures(); !figures.empty())
    json["quality"]["figures"] = Json::parse(FiguresJson(figures));
  json["moment"] = std::move(newest);
  // The problem may quote names that are not UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ServedModel::VersionsJson() const {
  Json json;
  json["current"] = Str(deployment_->stats().version);
  json["versions"] = Json::array();
  if (deployment_->versions() != nullptr)
    for (const auto& info : deployment_->versions()->list()) json["versions"].push_back(Json::parse(info.ToJson()));
  return json.dump();
}

std::string ServedModel::HistoryJson() const {
  Json json = Json::array();
  const auto chronicle = deployment_->chronicle();
  const base::Lock lock(mutex_);
  for (const auto& point : chronicle)
    if (moments_.empty() || static_cast<double>(point.time) < moments_.front().time - 1)
      json.push_back(JsonOf(MomentOf(point)));
  for (const Moment& moment : moments_) json.push_back(JsonOf(moment));
  return json.dump();
}

}  // namespace freshet::serve
