#include "strategy/ring/stage.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::strategy::ring {
namespace {

using model::network::Program;

std::optional<std::size_t> IndexOf(const std::vector<Crossing>& crossings, int layer) {
  const auto found =
      std::find_if(crossings.begin(), crossings.end(), [&](const Crossing& one) { return one.layer == layer; });
  if (found == crossings.end()) return std::nullopt;
  return static_cast<std::size_t>(found - crossings.begin());
}

// Memory for so many rows of each.
void MakeRoomFor(const std::vector<Crossing>& crossings, std::size_t rows, std::vector<std::vector<float>>& memory) {
  memory.resize(crossings.size());
  for (std::size_t i = 0; i < crossings.size(); ++i)
    memory[i].resize(std::max(memory[i].size(), rows * static_cast<std::size_t>(crossings[i].elements)));
}

std::size_t BytesOf(const std::vector<std::vector<float>>& memory) {
  std::size_t floats = 0;
  for (const auto& one : memory) floats += one.size();
  return floats * sizeof(float);
}

}  // namespace

Result<Stage> Stage::Make(const model::network::Graph& graph, Options options, std::size_t rows) {
  Stage stage(graph, std::move(options));
  stage.MakeRoom(1, 1, rows);
  TRY(stage.Begin(0, rows));
  stage.FindSources(*stage.slots_[0].program);
  return stage;
}

void Stage::FindSources(const Program& program) {
  for (const Program::Port& port : program.inputs()) {
    inputs_.push_back(IndexOf(options_.cut.enters, port.layer));
    CHECK(inputs_.back().has_value() || port.layer == 0);
    if (!inputs_.back()) reads_rows_ = true;
  }
  const auto& outputs = program.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].head) heads_.push_back(i);
  for (const Crossing& leaving : options_.leaves) {
    if (const auto enters = IndexOf(options_.cut.enters, leaving.layer)) {
      sources_.push_back({.index = *enters, .passes = true});
      continue;
    }
    const auto made = std::find_if(outputs.begin(), outputs.end(),
                                   [&](const Program::Port& port) { return port.layer == leaving.layer; });
    CHECK(made != outputs.end());
    sources_.push_back({.index = static_cast<std::size_t>(made - outputs.begin()), .head = made->head.has_value()});
  }
}

void Stage::MakeRoom(std::size_t depth, std::size_t depth_before, std::size_t rows) {
  depth_ = depth;
  depth_before_ = depth_before;
  computed_ = nullptr;
  slots_.resize(std::max(slots_.size(), depth));
  gradients_.resize(std::max(gradients_.size(), depth_before));
  for (Slot& slot : slots_) MakeRoomFor(options_.cut.enters, rows, slot.entering);
  for (Memory& memory : gradients_) MakeRoomFor(options_.cut.enters, rows, memory);
}

Result<void> Stage::Begin(std::size_t micro, std::size_t rows) {
  Slot& slot = At(micro);
  slot.rows = rows;
  TRY(UseProgram(slot, rows));
  slot.added.resize(sources_.size());
  slot.leaving.resize(sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::size_t floats = rows * static_cast<std::size_t>(options_.leaves[i].elements);
    if (Apart(sources_[i]) && options_.leaves[i].learns) slot.added[i].resize(floats);
    if (options_.recompute && !sources_[i].passes) slot.leaving[i].resize(floats);
  }
  return {};
}

// Updates have micro-batches of two sizes where they cannot be cut evenly, and the last one of an epoch has others.
Result<void> Stage::UseProgram(Slot& slot, std::size_t rows) {
  constexpr std::size_t kKept = 3;
  Programs& programs = options_.recompute ? shared_ : slot.programs;
  const auto found =
      std::find_if(programs.begin(), programs.end(), [&](const auto& one) { return one->options().rows == rows; });
  if (found != programs.end()) {
    programs.splice(programs.begin(), programs, found);
  } else {
    if (programs.size() >= kKept) programs.pop_back();
    const auto& enters = options_.cut.enters;
    const bool back = std::any_of(enters.begin(), enters.end(), [](const Crossing& one) { return one.learns; });
    programs.push_front(TRY(Program::Compile(graph_, {.rows = rows,
                                                      .training = true,
                                                      .threads = options_.threads,
                                                      .backend = options_.backend,
                                                      .first = options_.cut.first,
                                                      .last = options_.cut.last,
                                                      .input_gradients = back})));
    programs.front()->Measure(clock_);
  }
  slot.program = programs.front().get();
  return {};
}

std::span<float> Stage::Entering(std::size_t micro, std::size_t i) {
  Slot& slot = At(micro);
  return std::span(slot.entering[i]).first(slot.rows * static_cast<std::size_t>(options_.cut.enters[i].elements));
}

void Stage::Run(Slot& slot, const optimize::Parameters& parameters, const float* input,
                const model::network::Draw& draw) {
  CHECK(!reads_rows_ || input != nullptr);
  std::vector<const float*> inputs;
  for (const auto& from : inputs_) inputs.push_back(from ? slot.entering[*from].data() : input);
  slot.program->Forward(parameters, inputs, draw);
  computed_ = &slot;
}

void Stage::Forward(std::size_t micro, const optimize::Parameters& parameters, const float* input,
                    const model::network::Draw& draw) {
  Slot& slot = At(micro);
  Run(slot, parameters, input, draw);
  for (std::size_t i = 0; i < slot.leaving.size(); ++i)
    if (!slot.leaving[i].empty()) std::ranges::copy(slot.program->Output(sources_[i].index), slot.leaving[i].begin());
}

bool Stage::Again(std::size_t micro, const optimize::Parameters& parameters, const float* input,
                  const model::network::Draw& draw) {
  Slot& slot = At(micro);
  if (!options_.recompute || computed_ == &slot) return false;
  Run(slot, parameters, input, draw);
  return true;
}

std::span<const float> Stage::Leaving(std::size_t micro, std::size_t i) const {
  const Slot& slot = At(micro);
  const std::size_t floats = slot.rows * static_cast<std::size_t>(options_.leaves[i].elements);
  if (sources_[i].passes) return std::span(slot.entering[sources_[i].index]).first(floats);
  if (options_.recompute) return slot.leaving[i];
  const std::span<const float> made = slot.program->Output(sources_[i].index);
  CHECK(made.size() == floats);
  return made;
}

std::vector<Stage::HeadOutput> Stage::Heads(std::size_t micro) const {
  Program& program = *At(micro).program;
  std::vector<HeadOutput> outputs;
  for (const std::size_t i : heads_)
    outputs.push_back({*program.outputs()[i].head, program.Output(i), program.OutputGradient(i)});
  return outputs;
}

std::span<float> Stage::LeavingGradient(std::size_t micro, std::size_t i) {
  Slot& slot = At(micro);
  const Source& source = sources_[i];
  if (Apart(source)) return slot.added[i];
  if (!source.passes) return slot.program->OutputGradient(source.index);
  const std::size_t floats = slot.rows * static_cast<std::size_t>(options_.leaves[i].elements);
  return std::span(gradients_[micro % depth_before_][source.index]).first(floats);
}

void Stage::Backward(std::size_t micro, const optimize::Parameters& parameters, optimize::Gradient& gradient) {
  Slot& slot = At(micro);
  Program& program = *slot.program;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!Apart(sources_[i]) || !options_.leaves[i].learns) continue;
    const std::span<float> deltas = program.OutputGradient(sources_[i].index);
    if (!sources_[i].head) std::ranges::copy(slot.added[i], deltas.begin());
    for (std::size_t k = 0; sources_[i].head && k < deltas.size(); ++k) deltas[k] += slot.added[i][k];
  }
  std::vector<float*> places;
  if (program.options().input_gradients)
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Program::Port& port = program.inputs()[i];
      if (!inputs_[i]) unwanted_.resize(slot.rows * static_cast<std::size_t>(port.elements));
      std::vector<float>& place = inputs_[i] ? gradients_[micro % depth_before_][*inputs_[i]] : unwanted_;
      // The program adds to what comes from later readers: here, where the tensor passes through.
      if (port.read_later && !IndexOf(options_.leaves, port.layer)) std::ranges::fill(place, 0.0f);
      places.push_back(place.data());
    }
  program.Backward(parameters, gradient, places, {});
}

std::span<const float> Stage::EnteringGradient(std::size_t micro, std::size_t i) const {
  const std::size_t floats = At(micro).rows * static_cast<std::size_t>(options_.cut.enters[i].elements);
  return std::span(gradients_[micro % depth_before_][i]).first(floats);
}

void Stage::Measure(const base::Clock* clock) {
  clock_ = clock;
  for (const auto& program : shared_) program->Measure(clock);
  for (Slot& slot : slots_)
    for (const auto& program : slot.programs) program->Measure(clock);
}

void Stage::AddSeconds(std::vector<double>& by_layer) const {
  const auto add = [&](const Programs& programs) {
    for (const auto& program : programs) {
      const std::vector<Program::Seconds> seconds = program->seconds();
      for (std::size_t layer = 0; layer < seconds.size(); ++layer)
        by_layer[layer] += seconds[layer].forward + seconds[layer].backward;
    }
  };
  add(shared_);
  for (const Slot& slot : slots_) add(slot.programs);
}

std::size_t Stage::bytes() const {
  std::size_t bytes = slots_[0].program->arena_bytes() * (options_.recompute ? 1 : depth_);
  for (const Slot& slot : slots_) bytes += BytesOf(slot.entering);
  for (const Memory& memory : gradients_) bytes += BytesOf(memory);
  for (const Crossing& leaves : options_.leaves)
    if (options_.recompute)
      bytes += 2 * depth_ * slots_[0].rows * static_cast<std::size_t>(leaves.elements) * sizeof(float);
  return bytes;
}

}  // namespace freshet::strategy::ring
