#include "replay_view.h"

#include <nlohmann/json.hpp>

#include "progress.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;
using deploy::MethodSummary;

std::string Left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
// ± counts as one column.
std::string Right(const std::string& text, std::size_t width) {
  const auto bytes = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  return Str(std::string(bytes < width ? width - bytes : 0, ' '), text);
}

std::string ErrorText(const deploy::Spread& error, bool several) {
  return several ? Str(Fixed(error.mean, 4), " ± ", Fixed(error.deviation, 4)) : Fixed(error.mean, 4);
}

std::string SecondsText(double seconds) { return Fixed(seconds, seconds < 0.1 ? 4 : (seconds < 10 ? 3 : 1)); }

Json ToJson(const deploy::Spread& spread) { return {{"mean", spread.mean}, {"sd", spread.deviation}}; }

Json ToJson(const MethodSummary& summary) {
  Json json = {{"method", deploy::Name(summary.method)},
               {"error", ToJson(summary.mean_error)},
               {"final_error", ToJson(summary.final_error)},
               {"steps", summary.steps},
               {"seconds", summary.seconds},
               {"iterations", summary.iterations},
               {"longest_iteration_seconds", summary.longest}};
  if (summary.error_to_velox) {
    json["error_to_velox"] = ToJson(*summary.error_to_velox);
    json["steps_to_velox"] = ToJson(*summary.steps_to_velox);
  }
  return json;
}

Json ToJson(const deploy::ReplayRun& run) {
  Json curve = Json::array();
  for (const auto& point : run.curve) curve.push_back({point.arrived, point.error, point.mean});
  Json json = {{"method", deploy::Name(run.method)},
               {"seed", run.seed},
               {"error", run.mean_error},
               {"final_error", run.final_error},
               {"steps", run.steps},
               {"seconds", run.seconds},
               {"iterations", run.iterations},
               {"given_up", run.given_up},
               {"drifts", run.drifts},
               {"longest_iteration_seconds", run.longest},
               {"wall_seconds", run.wall_seconds},
               {"drifts_at", run.drifts_at},
               {"retrained_at", run.retrained_at},
               {"curve", std::move(curve)}};
  if (!run.problem.empty()) json["problem"] = run.problem;
  return json;
}

}  // namespace

ReplayView::ReplayView(bool quiet, base::Clock& clock, std::size_t runs)
    : quiet_(quiet), terminal_(ErrorsAreSeen()), clock_(clock), runs_(runs) {}

void ReplayView::Show(const deploy::ReplayProgress& progress) {
  if (quiet_) return;
  shares_[{progress.seed, progress.method}] =
      static_cast<double>(progress.arrived) / static_cast<double>(progress.rows);
  const double now = base::Seconds(clock_.Now());
  if (next_draw_ == 0 && !terminal_) next_draw_ = now + 5;  // short runs need no words
  if (now < next_draw_) return;
  next_draw_ = now + (terminal_ ? 0.1 : 5);
  double done = 0;
  for (const auto& [run, share] : shares_) done += share / static_cast<double>(runs_);
  const std::string text =
      Str(Fixed(100 * done, 0), " %  ", deploy::Name(progress.method), ", seed ", progress.seed, ": ",
          Grouped(progress.arrived), " of ", Grouped(progress.rows), " rows, mean error ", Fixed(progress.error, 4));
  WriteError(terminal_ ? Str("\r\x1b[K", text) : Str(text, "\n"));
  drawn_ = terminal_;
}

void ReplayView::Done() {
  if (drawn_) WriteError("\r\x1b[K");
}

std::string ReplayText(const deploy::ReplayReport& report, const std::string& error_name) {
  const auto summaries = deploy::Summarise(report);
  const bool several = report.runs.size() > summaries.size(), velox = summaries[0].error_to_velox.has_value();
  const std::size_t wide = several ? 17 : 15;
  std::string out = Str(Left("method", 12), Right(error_name, wide), Right("at the end", wide), Right("steps", 13),
                        Right("seconds", 10), Right("iterations", 12), Right("longest", 10));
  if (velox) out += Str(Right("error/velox", 13), Right("steps/velox", 13));
  out += "\n";
  for (const MethodSummary& summary : summaries) {
    const bool iterates = summary.iterations > 0;
    out +=
        Str(Left(std::string(deploy::Name(summary.method)), 12), Right(ErrorText(summary.mean_error, several), wide),
            Right(ErrorText(summary.final_error, several), wide),
            Right(Grouped(static_cast<unsigned long long>(summary.steps)), 13), Right(SecondsText(summary.seconds), 10),
            Right(iterates ? Fixed(summary.iterations, several ? 1 : 0) : "-", 12),
            Right(iterates ? SecondsText(summary.longest) : "-", 10));
    if (velox)
      out += Str(Right(Fixed(summary.error_to_velox->mean, 4), 13), Right(Fixed(summary.steps_to_velox->mean, 4), 13));
    out += "\n";
  }
  for (const deploy::ReplayRun& run : report.runs)
    if (!run.problem.empty())
      out += Str("problem of ", deploy::Name(run.method), ", seed ", run.seed, ": ", run.problem, "\n");
  return out;
}

std::string ReplayJson(const deploy::ReplayReport& report, const std::string& error_name,
                       const std::vector<std::pair<std::string, std::string>>& settings) {
  Json json;
  json["schema"] = 1;
  json["error"] = error_name;
  json["rows"] = report.rows;
  json["initial_rows"] = report.initial;
  json["test_rows"] = report.test_rows;
  json["retrain_rows"] = report.retrain_rows;
  for (const auto& [name, value] : settings) json["settings"][name] = value;
  json["methods"] = Json::array();
  for (const MethodSummary& summary : deploy::Summarise(report)) json["methods"].push_back(ToJson(summary));
  json["runs"] = Json::array();
  for (const deploy::ReplayRun& run : report.runs) json["runs"].push_back(ToJson(run));
  return json.dump() + "\n";
}

}  // namespace freshet::cli
