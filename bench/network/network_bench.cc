// Training steps and predictions of networks of the zoo. bench/network_bench.py runs this beside PyTorch and prints the
// tables of docs/benchmarks.md; every mode prints JSON.
//
//   network_bench step NET BATCH THREADS [OPTIMIZER [RATE]]   for every line "N" on standard input, N steps
//   network_bench predict NET BATCH THREADS                   for every line "N", N predictions of the batch
//   network_bench compare NET BATCH THREADS ROUNDS            the step beside its convolutions and products alone
//   network_bench alone NET BATCH THREADS ROUNDS              these alone
//   network_bench forward NET ROWS FILE                       weights, rows and scores as floats, for another program
//   network_bench images DIRECTORY COUNT SIZE                 a folder of JPEG files to train on
//   network_bench walk [tiny]                                 convolutions of all kinds; fails where one is far too slow
//   network_bench machine                                     what figures depend on
//   network_bench --tiny                                      checks answers at small sizes; times say nothing

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "../machine.h"
#include "alone.h"
#include "base/clock.h"
#include "images.h"
#include "model/network/program.h"
#include "peak.h"
#include "tiny.h"
#include "trained.h"
#include "walk.h"

namespace freshet::bench {
namespace {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

int Number(const std::string& text) { return std::atoi(text.c_str()); }

// The largest memory this process has had, in bytes.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) * 1024;
  return 0;
}

Trained::Options OptionsOf(const Arguments& arguments) {
  Trained::Options options;
  options.network = arguments[0];
  options.rows = static_cast<std::size_t>(Number(arguments[1]));
  options.threads = Number(arguments[2]);
  return options;
}

// Answers lines that ask for a number of calls, so that whoever asks can let programs take turns.
void Answer(const std::function<double()>& call) {
  base::SystemClock clock;
  for (std::string line; std::getline(std::cin, line);) {
    double value = 0;
    const auto begun = clock.Now();
    for (int i = Number(line); i > 0; --i) value = call();
    const double seconds = base::Seconds(clock.Now() - begun);
    const Json answer = {{"value", value}, {"seconds", seconds}, {"peak_bytes", PeakMemory()}};
    std::cout << answer.dump() << std::endl;
  }
}

Result<void> StepMode(const Arguments& arguments) {
  Trained::Options options = OptionsOf(arguments);
  if (arguments.size() > 3) options.optimizer = arguments[3];
  if (arguments.size() > 4) options.rate = std::strtod(arguments[4].c_str(), nullptr);
  const auto trained = TRY(Trained::Make(options));
  Answer([&] { return trained->Step(); });
  return {};
}

Result<void> PredictMode(const Arguments& arguments) {
  const auto trained = TRY(Trained::Make(OptionsOf(arguments)));
  Answer([&] { return static_cast<double>(trained->Predict()[0]); });
  return {};
}

// Seconds of every layer inside a step.
Result<Json> LayersOfAStep(Trained& trained, const Alone& alone, int rounds, base::Clock& clock) {
  const auto& options = trained.options();
  const auto program = TRY(model::network::Program::Compile(
      trained.graph(), {.rows = options.rows, .training = true, .threads = options.threads}));
  const float* const input = trained.batch().dense;
  for (int step = 0; step <= rounds; ++step) {
    if (step == 1) program->Measure(&clock);  // the first warms up
    trained.gradient().Clear();
    program->Forward(trained.parameters(), {&input, 1}, {});
    const std::span<float> deltas = program->OutputGradient(0);
    std::fill(deltas.begin(), deltas.end(), 0.001f);
    program->Backward(trained.parameters(), trained.gradient(), {}, {});
  }
  std::map<std::size_t, const Alone::Layer*> by_number;
  for (const Alone::Layer& layer : alone.layers()) by_number[layer.number] = &layer;
  Json layers = Json::array();
  const auto spent = program->seconds();
  for (std::size_t number = 0; number < spent.size(); ++number) {
    if (spent[number].forward + spent[number].backward == 0) continue;
    Json layer = {{"name", trained.graph().layers[number].name},
                  {"op", NameOf(trained.graph().layers[number].op)},
                  {"forward", spent[number].forward / rounds},
                  {"backward", spent[number].backward / rounds}};
    if (const auto found = by_number.find(number); found != by_number.end()) {
      layer["flops"] = found->second->flops;
      layer["alone"] = found->second->seconds / (rounds + 1);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

// In turn, round after round: the speed of the machine wanders, the ratio does not.
Result<void> CompareMode(const Arguments& arguments) {
  base::SystemClock clock;
  const auto trained = TRY(Trained::Make(OptionsOf(arguments)));
  const auto alone = TRY(Alone::Make(trained->graph(), trained->options().rows, trained->options().threads));
  const int rounds = Number(arguments[3]);
  trained->Step();
  alone->Run(clock);
  Json result;
  for (int round = 0; round < rounds; ++round) {
    result["peak"].push_back(PeakFlops(trained->options().threads, clock));
    const auto begun = clock.Now();
    result["loss"] = trained->Step();
    result["step"].push_back(base::Seconds(clock.Now() - begun));
    result["alone"].push_back(alone->Run(clock));
  }
  double flops = 0;
  for (const Alone::Layer& layer : alone->layers()) flops += layer.flops;
  result["flops"] = flops;
  result["plausible"] = alone->Plausible();
  result["layers"] = TRY(LayersOfAStep(*trained, *alone, rounds, clock));
  std::cout << result.dump() << std::endl;
  return {};
}

Result<void> AloneMode(const Arguments& arguments) {
  base::SystemClock clock;
  const auto trained = TRY(Trained::Make(OptionsOf(arguments)));
  const auto alone = TRY(Alone::Make(trained->graph(), trained->options().rows, trained->options().threads));
  alone->Run(clock);
  Json result;
  for (int round = 0; round < Number(arguments[3]); ++round) result["alone"].push_back(alone->Run(clock));
  result["plausible"] = alone->Plausible();
  std::cout << result.dump() << std::endl;
  return {};
}

Result<void> ForwardMode(const Arguments& arguments) {
  const auto trained =
      TRY(Trained::Make({.network = arguments[0], .rows = static_cast<std::size_t>(Number(arguments[1]))}));
  std::ofstream file(arguments[2], std::ios::binary);
  const auto write = [&](std::span<const float> values) {
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
  };
  for (std::size_t b = 0; b < trained->parameters().blocks(); ++b) write(trained->parameters().Values(b));
  write({trained->batch().dense, trained->batch().rows * trained->batch().width});
  write({trained->batch().labels, trained->batch().rows});
  write(trained->Predict());
  if (!file.flush()) return Error{Code::kIo, Str("cannot write ", arguments[2], "; is there room?")};
  return {};
}

Result<void> ImagesMode(const Arguments& arguments) {
  return WriteImages(arguments[0], Number(arguments[1]), Number(arguments[2]));
}

// A kernel that is far slower than others for the same work is the library's reference, or something like it. What
// oneDNN has for groups of few channels is matrix products of few columns, which are slow too; a reference is slower
// yet.
Result<void> WalkMode(const Arguments& arguments) {
  constexpr double kMost = 10, kMostOfGroups = 100;
  base::SystemClock clock;
  const bool tiny = !arguments.empty();
  std::vector<Walked> walked = TRY(WalkConvolutions(tiny, clock));
  const auto cost = [](const Walked& one) { return one.seconds / one.work; };
  std::sort(walked.begin(), walked.end(), [&](const Walked& a, const Walked& b) { return cost(a) < cost(b); });
  const double best = cost(walked.front());
  Json worst;
  std::string slow;
  for (const Walked& one : walked) {
    const double times = cost(one) / best;
    worst[one.groups == 1              ? "one group"
          : one.groups == one.channels ? "a group a channel"
                                       : "groups"] = {{"times", times}, {"what", one.Name()}};
    if (times > (one.groups == 1 ? kMost : kMostOfGroups)) slow += Str("\n  ", Fixed(times, 1), " times: ", one.Name());
  }
  const Json json = {
      {"convolutions", walked.size()}, {"median", cost(walked[walked.size() / 2]) / best}, {"worst", worst}};
  std::cout << json.dump() << std::endl;
  if (slow.empty() || tiny) return {};
  return Error{Code::kInvalid, Str("for their work, these take far longer than the best convolution:", slow)};
}

Result<void> MachineMode(const Arguments&) {
  const Machine machine = ThisMachine();
  const Json json = {{"cpu", machine.cpu},     {"cores", machine.cores},   {"compiler", machine.compiler},
                     {"flags", machine.flags}, {"commit", machine.commit}, {"warning", machine.warning}};
  std::cout << json.dump() << std::endl;
  return {};
}

Result<void> TinyMode(const Arguments&) { return CheckTiny(); }

struct Mode {
  std::string_view name;
  std::size_t least, most;  // arguments
  Result<void> (*run)(const Arguments& arguments);
};
constexpr Mode kModes[] = {
    {"step", 3, 5, StepMode},   {"predict", 3, 3, PredictMode}, {"compare", 4, 4, CompareMode},
    {"alone", 4, 4, AloneMode}, {"forward", 3, 3, ForwardMode}, {"images", 3, 3, ImagesMode},
    {"walk", 0, 1, WalkMode},   {"machine", 0, 0, MachineMode}, {"--tiny", 0, 0, TinyMode},
};

int Main(const Arguments& arguments) {
  for (const Mode& mode : kModes) {
    if (arguments.empty() || arguments[0] != mode.name) continue;
    const Arguments rest(arguments.begin() + 1, arguments.end());
    if (rest.size() < mode.least || rest.size() > mode.most) break;
    const Result<void> done = mode.run(rest);
    if (done.ok()) return 0;
    std::fprintf(stderr, "network_bench: %s\n", done.error().text.c_str());
    return 1;
  }
  std::fprintf(stderr, "network_bench: expected a mode and its arguments; see the top of network_bench.cc\n");
  return 2;
}

}  // namespace
}  // namespace freshet::bench

int main(int argc, char** argv) { return freshet::bench::Main({argv + 1, argv + argc}); }
