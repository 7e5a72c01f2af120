#include <algorithm>
#include <charconv>
#include <thread>

#include "base/cores.h"
#include "bench_parts.h"
#include "fabric/threads/threads_fabric.h"
#include "simulate/calibrate.h"

namespace freshet::cli {
namespace {

Result<std::vector<std::size_t>> RowsOf(const std::vector<std::string>& texts) {
  std::vector<std::size_t> rows;
  for (const std::string& text : texts) {
    std::size_t count = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (problem != std::errc() || end != text.data() + text.size() || count < 1)
      return Error{Code::kInvalid, Str("--rows: found ", Quoted(text), ", expected numbers from 1 on, like 8,32,128")};
    rows.push_back(count);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

// What belongs to this machine however its workers exchange.
Result<void> MeasureMachine(Door& door, const CalibrateFlags& flags, double seconds,
                            simulate::Calibration& calibration) {
  const int cores = base::AvailableCores();
  calibration.platform.name = "here";
  calibration.platform.about = Str("measured by freshet bench, ", cores, " cores");
  calibration.platform.nodes = 1;
  calibration.platform.cores = cores;
  calibration.work.merge(simulate::MeasureCodecs(door.clock, seconds));
  const std::vector<std::size_t> rows = TRY(RowsOf(flags.rows));
  std::vector<int> counts;
  for (int count = 1; count < cores; count *= 2) counts.push_back(count);
  counts.push_back(cores);
  for (const std::string& name : flags.models) {
    TRY(door.GoOn());
    const std::size_t colon = name.find(':');
    const std::string model = name.substr(0, colon), input = colon == std::string::npos ? "" : name.substr(colon + 1);
    const auto subject = TRY(simulate::Subject::Of(model, input));
    calibration.models.push_back(
        {model, input, TRY(simulate::MeasureModel(subject, rows, counts, flags.at_once, door.clock, seconds))});
  }
  return {};
}

}  // namespace

// Workers exchange, here as threads or as the processes that were started; then rank 0 computes.
Result<void> Calibrate(Door& door, const CalibrateFlags& flags, double seconds, int threads, fabric::Fabric* fabric) {
  simulate::Calibration calibration;
  if (fabric != nullptr) {
    fabric::Collectives collectives(*fabric);
    TRY(simulate::MeasureExchange(*fabric, door.clock, seconds, calibration));
    if (fabric->rank() != 0) return collectives.Barrier();
    TRY(MeasureMachine(door, flags, seconds, calibration));
    TRY(collectives.Barrier());
  } else {
    fabric::ThreadsGroup group(threads, door.clock);
    std::vector<simulate::Calibration> seen(static_cast<std::size_t>(group.size()));
    std::vector<Result<void>> measured(seen.size());
    {
      std::vector<std::jthread> workers;
      for (std::size_t rank = 0; rank < seen.size(); ++rank)
        workers.emplace_back([&, rank] {
          measured[rank] =
              simulate::MeasureExchange(group.member(static_cast<int>(rank)), door.clock, seconds, seen[rank]);
        });
    }
    for (const Result<void>& one : measured) TRY(one);
    calibration = std::move(seen[0]);
    TRY(MeasureMachine(door, flags, seconds, calibration));
  }
  const std::string json = calibration.ToJson();
  TRY(base::WriteAtomic(door.files, flags.file, [&](base::OutputFile& file) { return file.Write(json); }));
  const fabric::sim::Platform& here = calibration.platform;
  return Print(door.files,
               Str("a message between workers ", Fixed(here.local_us, 1), " us (where they outnumber cores ",
                   Fixed(here.crowded_us, 1), " us more), their sums ", Fixed(here.add_gb_s, 2), " GB/s (short ones ",
                   Fixed(here.short_gb_s, 2), "); ", calibration.models.size(), " models: ", flags.file, "\n"));
}

}  // namespace freshet::cli
