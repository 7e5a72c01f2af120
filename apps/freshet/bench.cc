#include <nlohmann/json.hpp>
#include <thread>

#include "bench_parts.h"
#include "fabric/collectives/measure.h"
#include "fabric/threads/threads_fabric.h"
#include "launcher_watch.h"
#include "place_flags.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Rows = std::vector<fabric::Measurement>;

Result<Rows> MeasureThreads(Door& door, int workers, const fabric::MeasureOptions& options) {
  fabric::ThreadsGroup group(workers, door.clock);
  std::vector<std::optional<Result<Rows>>> rows(static_cast<std::size_t>(workers));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < workers; ++rank)
      threads.emplace_back([&, rank] {
        fabric::Collectives collectives(group.member(rank));
        rows[static_cast<std::size_t>(rank)] = fabric::Measure(collectives, door.clock, options);
      });
  }
  return std::move(*rows[0]);
}

std::string Right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string ToText(const Rows& rows, std::string_view fabric, int workers) {
  std::string out =
      Str("all-reduce of ", workers, " workers, fabric ", fabric, ": time, and bytes of the buffer over time\n");
  for (const fabric::Measurement& row : rows)
    out += Str(Right(std::string(NameOf(row.algorithm)), 14), Right(HumanBytes(static_cast<double>(row.bytes)), 10),
               Right(Str(Fixed(row.median_seconds * 1e6, 1), " us"), 14),
               Right(Str(HumanBytes(row.BytesPerSecond()), "/s"), 14), "\n");
  return out;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  PlaceFlags flags;
  int workers = 0;
  std::vector<std::string> what;
  fabric::MeasureOptions options;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("what", &what, "what to measure: fabric, or step", {.value = "WHAT", .positional = true});
  settings.Add("workers", &workers, "workers in this process (0: 2)", {.letter = 'w', .value = "N", .least = 0});
  settings.Add("seconds", &options.seconds_each, "spent on each algorithm and size", {.value = "S", .least = 0.001});
  settings.Add("json", &json, "results as one JSON object");
  CalibrateFlags calibrate;
  settings.Add("calibrate", &calibrate.file, "instead, writes what computing and exchanging cost here, for simulate",
               {.value = "FILE"});
  settings.Add("model", &calibrate.models,
               "networks of the zoo (step: one), perhaps with their input (googlenet:3x64x64); or url-like",
               {.letter = 'm', .value = "NAME", .commas = true});
  settings.Add("rows", &calibrate.rows, "calibrate: rows that a worker computes at once",
               {.value = "N", .commas = true});
  settings.Add("at-once", &calibrate.at_once,
               "calibrate: so many compute at once, as workers that share this machine do (0: one for each core)",
               {.value = "N", .least = 0, .most = 1024});
  StepFlags step;
  settings.Add("batch", &step.batch, "step: rows of an update, all workers together", {.value = "N", .least = 1});
  settings.Add("steps", &step.steps, "step: how many are measured, after a first one", {.value = "N", .least = 1});
  settings.Add("threads", &step.threads, "step: cores that all workers share (0: all there are)",
               {.value = "N", .least = 0});
  settings.Group("Exchange");
  step.together.topology = "ring";
  step.together.RegisterExchange(settings);
  step.together.RegisterServers(settings);
  settings.Group("Place");
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  const bool of_step = what == std::vector<std::string>{"step"};
  if (calibrate.file.empty() ? what != std::vector<std::string>{"fabric"} && !of_step : !what.empty())
    return Error{Code::kInvalid,
                 "say what to measure: freshet bench fabric or step, or freshet bench --calibrate FILE"};
  const fabric::Place place = TRY(flags.FindPlace(door, workers));
  const LauncherWatch launcher(place.mark);
  int count = workers == 0 ? 2 : workers;
  std::string name = "threads";
  Rows rows;
  if (!calibrate.file.empty()) {
    const auto fabric = place.size > 1 ? TRY(flags.Connect(place, door)) : nullptr;
    return Calibrate(door, calibrate, options.seconds_each, std::max(count, 2), fabric.get());
  }
  if (of_step) {
    if (!calibrate.models.empty()) step.model = calibrate.models.front();
    const auto fabric = place.size > 1 ? TRY(flags.Connect(place, door)) : nullptr;
    const double seconds = fabric ? TRY(MeasureStep(door, step, *fabric))
                                  : TRY(MeasureStepOfThreads(door, step, workers == 0 ? 1 : workers));
    if (place.rank != 0) return {};
    if (!json) return Print(door.files, Str("an update takes ", Fixed(seconds * 1e3, 3), " ms\n"));
    return Print(door.files, Str("{\"schema\":1,\"update_seconds\":", seconds, "}\n"));
  }
  if (place.size > 1) {
    const auto fabric = TRY(flags.Connect(place, door));
    fabric::Collectives collectives(*fabric);
    rows = TRY(fabric::Measure(collectives, door.clock, options));
    if (place.rank != 0) return {};
    name = fabric->name();
    count = place.size;
  } else {
    rows = TRY(MeasureThreads(door, count, options));
  }
  if (!json) return Print(door.files, ToText(rows, name, count));
  nlohmann::ordered_json all = {{"schema", 1}, {"fabric", name}, {"workers", count}};
  for (const fabric::Measurement& row : rows)
    all["rows"].push_back({{"algorithm", NameOf(row.algorithm)},
                           {"bytes", row.bytes},
                           {"median_seconds", row.median_seconds},
                           {"best_seconds", row.best_seconds}});
  return Print(door.files, all.dump() + "\n");
}

}  // namespace

extern const Verb kBench = {
    "bench", "how fast workers exchange and compute", "fabric|step|--calibrate FILE [FLAGS]",
    "  freshet bench fabric --workers 4                 threads of this process\n"
    "  freshet launch -n 4 -- bench fabric              processes, large messages through shared memory\n"
    "  freshet launch -n 4 -- bench fabric --no-shared-memory\n"
    "  mpirun -n 4 freshet bench fabric --fabric mpi    over MPI, and by its own all-reduce\n"
    "  freshet bench step --workers 2 --model lenet5 --batch 64    how long an update takes here\n"
    "  freshet bench --calibrate here.json --model lenet5,mlp     what freshet simulate needs to know of this machine\n"
    "  freshet launch -n 2 -- bench --calibrate tcp.json\n",
    Run};

}  // namespace freshet::cli
