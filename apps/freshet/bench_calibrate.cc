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
  calibration.work = simulate::MeasureCodecs(door.clock, seconds);
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
        {model, input, TRY(simulate::MeasureModel(subject, rows, counts, door.clock, seconds))});
  }
  return {};
}

}  // namespace

// Two workers exchange, here as threads or as the two processes that were started; then rank 0 computes.
Result<void> Calibrate(Door& door, const CalibrateFlags& flags, double seconds, fabric::Fabric* fabric) {
  simulate::Calibration calibration;
  if (fabric != nullptr) {
    fabric::Collectives collectives(*fabric);
    TRY(simulate::MeasureExchange(collectives, door.clock, seconds, calibration.platform));
    if (fabric->rank() != 0) return collectives.Barrier();
    TRY(MeasureMachine(door, flags, seconds, calibration));
    TRY(collectives.Barrier());
  } else {
    fabric::ThreadsGroup group(2, door.clock);
    fabric::sim::Platform other;
    Result<void> there;
    {
      std::jthread second([&] {
        fabric::Collectives collectives(group.member(1));
        there = simulate::MeasureExchange(collectives, door.clock, seconds, other);
      });
      fabric::Collectives collectives(group.member(0));
      TRY(simulate::MeasureExchange(collectives, door.clock, seconds, calibration.platform));
    }
    TRY(there);
    TRY(MeasureMachine(door, flags, seconds, calibration));
  }
  const std::string json = calibration.ToJson();
  TRY(base::WriteAtomic(door.files, flags.file, [&](base::OutputFile& file) { return file.Write(json); }));
  const fabric::sim::Platform& here = calibration.platform;
  return Print(door.files,
               Str("a message between workers ", Fixed(here.local_us, 1), " us, their sums ", Fixed(here.add_gb_s, 2),
                   " GB/s; ", calibration.models.size(), " models: ", flags.file, "\n"));
}

}  // namespace freshet::cli
