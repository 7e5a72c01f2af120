#include "walk.h"

#include <algorithm>

#include "base/random.h"
#include "base/str.h"
#include "model/network/program.h"

namespace freshet::bench {
namespace {

namespace network = model::network;

constexpr std::size_t kRows = 16;
constexpr std::int64_t kSide = 28;
constexpr int kRuns = 5;

double AsDouble(std::int64_t number) { return static_cast<double>(number); }

network::Graph GraphOf(const Walked& walked) {
  network::Graph graph({walked.channels, kSide, kSide});
  network::Layer layer{.op = network::Op::kConvolution, .inputs = {0}, .outputs = walked.outputs};
  layer.kernel = {walked.kernel, walked.kernel};
  layer.stride = {walked.stride, walked.stride};
  layer.pad = layer.pad_end = {walked.kernel / 2, walked.kernel / 2};
  layer.groups = walked.groups;
  graph.AddHead(graph.Add(layer));
  return graph;
}

// What any kernel that works on whole vectors has to do: multiply-adds with the channels of a group rounded up to 16,
// and every number that is read or written as one vector more, since a convolution of few channels is bound by memory.
double WorkOf(const Walked& walked) {
  const auto up = [](std::int64_t channels) { return AsDouble((channels + 15) / 16 * 16); };
  const std::int64_t side = (kSide + 2 * (walked.kernel / 2) - walked.kernel) / walked.stride + 1;
  const bool depthwise = walked.groups == walked.channels && walked.groups == walked.outputs;
  const double pairs =
      depthwise ? up(walked.groups)
                : AsDouble(walked.groups) * up(walked.channels / walked.groups) * up(walked.outputs / walked.groups);
  const double numbers = AsDouble(walked.channels * kSide * kSide + walked.outputs * side * side);
  return AsDouble(kRows) * (AsDouble(side * side * walked.kernel * walked.kernel) * pairs + 16 * numbers);
}

Result<void> Measure(Walked& walked, base::Clock& clock) {
  const network::Graph graph = GraphOf(walked);
  const auto program =
      TRY(network::Program::Compile(graph, {.rows = kRows, .training = true, .input_gradients = true}));
  optimize::HeapMemory memory;
  const auto blocks = network::Blocks(TRY(Infer(graph)));
  optimize::Parameters parameters = TRY(optimize::Parameters::Create(blocks, memory));
  optimize::Gradient gradient = TRY(optimize::Gradient::Dense(blocks, memory));
  base::Random random(1, "walk");
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    for (float& value : parameters.Values(b)) value = static_cast<float>(random.Uniform(-1, 1));
  std::vector<float> input(kRows * static_cast<std::size_t>(walked.channels * kSide * kSide)), back(input.size());
  for (float& value : input) value = static_cast<float>(random.Uniform(-1, 1));
  const float* const from = input.data();
  float* const to = back.data();
  for (int run = 0; run <= kRuns; ++run) {  // the first warms up
    gradient.Clear();
    program->Measure(&clock);
    program->Forward(parameters, {&from, 1}, {});
    std::ranges::fill(program->OutputGradient(0), 0.5f);
    program->Backward(parameters, gradient, {&to, 1}, {});
    const network::Program::Seconds spent = program->seconds()[1];
    if (run == 1 || (run > 1 && spent.forward + spent.backward < walked.seconds))
      walked.seconds = spent.forward + spent.backward;
  }
  walked.work = 3 * WorkOf(walked);
  return {};
}

}  // namespace

std::string Walked::Name() const {
  return Str(channels, " to ", outputs, " channels, kernel ", kernel, ", stride ", stride, ", groups ", groups);
}

Result<std::vector<Walked>> WalkConvolutions(bool tiny, base::Clock& clock) {
  std::vector<Walked> all;
  for (std::int64_t channels = 1; channels <= (tiny ? 6 : 40); channels += tiny ? 5 : 1)
    for (const std::int64_t kernel : {1, 3, 5})
      for (const std::int64_t stride : {1, 2})
        for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, channels}) {
          if (channels % groups != 0 || (groups > 1 && groups == channels && channels <= 4)) continue;
          all.push_back({channels, groups == channels && groups > 1 ? channels : 16, kernel, stride, groups});
        }
  for (Walked& walked : all) TRY(Measure(walked, clock));
  return all;
}

}  // namespace freshet::bench
