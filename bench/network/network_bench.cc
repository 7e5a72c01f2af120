// Training steps of networks of the zoo, timed whole and layer by layer: one JSON object on stdout.
//
//   network_bench step NET BATCH THREADS STEPS [OPTIMIZER]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "model/model.h"
#include "model/network/description.h"
#include "model/network/program.h"
#include "model/network/zoo.h"

namespace {

using namespace freshet;
using Json = nlohmann::ordered_json;

// The largest memory this process has had, in bytes.
double PeakMemory() {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  double peak = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, "VmHWM:", 6) == 0) peak = std::strtod(line + 6, nullptr) * 1024;
  if (file != nullptr) std::fclose(file);
  return peak;
}

struct Rows {
  std::vector<float> values, labels;
  data::Batch batch;
  Rows(std::size_t rows, std::size_t width, std::uint64_t classes) : values(rows * width), labels(rows) {
    base::Random random(1, "rows");
    for (float& value : values) value = static_cast<float>(random.Normal());
    for (float& label : labels) label = static_cast<float>(random.Below(classes));
    batch.rows = rows;
    batch.labels = labels.data();
    batch.dense = values.data();
    batch.width = width;
  }
};

struct Trained {
  model::network::Graph graph;
  std::unique_ptr<model::Model> model;
};

Result<Trained> MakeModel(const std::string& name) {
  const auto zoo = model::network::Zoo();
  const auto entry = std::find_if(zoo.begin(), zoo.end(), [&](const auto& e) { return e.name == name; });
  if (entry == zoo.end()) return Error{Code::kInvalid, Str("no network ", name)};
  model::network::ZooOptions options;
  options.auxiliary = false;
  Trained made;
  made.graph = TRY(model::network::MakeZoo(name, entry->input, entry->classes, options));
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.classes = static_cast<std::uint64_t>(entry->classes);
  config.network = ToToml(made.graph);
  config.features = 1;
  for (const std::int64_t extent : entry->input) config.features *= static_cast<std::uint64_t>(extent);
  made.model = TRY(model::Model::Make(config));
  return made;
}

Result<Json> Step(const std::string& name, std::size_t rows, int threads, int steps, const std::string& rule) {
  Trained made = TRY(MakeModel(name));
  const model::Model& model = *made.model;
  optimize::HeapMemory memory;
  optimize::Parameters parameters = TRY(model.NewParameters(memory));
  optimize::OptimizerOptions options;
  options.kind = rule;
  options.schedule.rate = 0.001;
  const auto optimizer = TRY(optimize::Optimizer::Make(options, memory));
  TRY(optimizer->Follow(parameters));
  const Rows data(rows, model.config().features, model.config().classes);
  std::vector<float> scores(rows * model.scores());
  model::Workspace workspace;
  workspace.threads = threads;
  base::SystemClock clock;
  Json result;
  std::vector<double> seconds;
  double loss = 0;
  optimize::Gradient gradient;
  if (rows > 1) gradient = TRY(model.NewGradient(memory));
  for (int step = 0; step < steps; ++step) {
    const auto begun = clock.Now();
    if (rows == 1) {
      loss = model.Update(parameters, data.batch, *optimizer, workspace, scores, optimize::Optimizer::Sharing::kAlone);
    } else {
      gradient.Clear();
      workspace.step = optimizer->step();
      loss = model.LossAndGradient(parameters, data.batch, workspace, gradient, scores);
      gradient.Scale(1 / static_cast<float>(rows));
      model.Apply(parameters, gradient, *optimizer, workspace);
    }
    seconds.push_back(base::Seconds(clock.Now() - begun));
  }
  result["seconds"] = seconds;
  result["loss"] = loss / static_cast<double>(rows);
  result["peak_bytes"] = PeakMemory();

  const auto facts = TRY(Infer(made.graph));
  const auto program =
      TRY(model::network::Program::Compile(made.graph, {.rows = rows, .training = true, .threads = threads}));
  result["arena_bytes"] = program->arena_bytes();
  if (rows == 1) gradient = TRY(model.NewGradient(memory));
  const float* const input = data.batch.dense;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) program->Measure(&clock);
    gradient.Clear();
    program->Forward(parameters, {&input, 1}, {});
    std::fill_n(program->OutputGradient(0).data(), program->OutputGradient(0).size(), 0.001f);
    program->Backward(parameters, gradient, {}, {});
  }
  const auto spent = program->seconds();
  for (std::size_t layer = 0; layer < facts.size(); ++layer) {
    if (spent[layer].forward + spent[layer].backward == 0) continue;
    result["layers"].push_back({{"name", made.graph.layers[layer].name},
                                {"op", NameOf(made.graph.layers[layer].op)},
                                {"forward", spent[layer].forward / 2},
                                {"backward", spent[layer].backward / 2},
                                {"gflop", facts[layer].flops * static_cast<double>(rows) * 1e-9}});
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || std::string(argv[1]) != "step") {
    std::fprintf(stderr, "usage: network_bench step NET BATCH THREADS STEPS [OPTIMIZER]\n");
    return 2;
  }
  const auto result = Step(argv[2], static_cast<std::size_t>(std::atoi(argv[3])), std::atoi(argv[4]),
                           std::atoi(argv[5]), argc > 6 ? argv[6] : "momentum");
  if (!result.ok()) {
    std::fprintf(stderr, "network_bench: %s\n", result.error().text.c_str());
    return 1;
  }
  std::printf("%s\n", result.value().dump().c_str());
  return 0;
}
