#include "model/network/program.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "model/network/arena.h"
#include "model/network/backend.h"
#include "model/network/layer_costs.h"
#include "model/network/sliced_dense.h"

namespace freshet::model::network {
namespace {

constexpr int kNone = -1;
using Index = std::size_t;
Index At(int number) { return static_cast<Index>(number); }

// A tensor that is computed, or comes in through a port.
struct Value {
  Layout layout;
  int producer = kNone;                           // step
  int port = kNone;                               // input port
  bool wanted = false;                            // its gradient is needed
  bool written = false;                           // while modes are settled: there is something in the gradient
  std::optional<Index> data = {}, gradient = {};  // tensors of the arena
};

// How a layer sees a value: flattening changes the shape, not the memory.
struct View {
  int value = kNone;
  Shape shape;
  Layout layout;
};

// One kernel, with all it works on.
struct Step {
  int layer = 0;
  int threads = 1;
  std::unique_ptr<Kernel> kernel;
  std::vector<int> inputs;  // values
  int output = 0;           // value
  Index first_block = 0, blocks = 0;
  bool backward = false;
  std::vector<std::optional<Index>> added;  // by input: where its gradient goes before it is added; none: direct
  std::optional<Index> saved, forward_scratch, backward_scratch;
};

struct FreeDeleter {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class CompiledProgram final : public Program {
 public:
  CompiledProgram(const Graph& graph, const Options& options)
      : graph_(graph), options_(options), backend_(options.backend == nullptr ? OneDnn() : *options.backend) {}

  Result<void> Compile() {
    facts_ = TRY(Infer(graph_));
    if (options_.last == 0) options_.last = static_cast<int>(graph_.layers.size());
    if (options_.first < 0 || options_.first >= options_.last || options_.last > static_cast<int>(facts_.size()))
      return Error{Code::kInvalid, Str("network: no layers ", options_.first, " … ", options_.last, " to run")};
    if (options_.rows == 0 || options_.threads < 1)
      return Error{Code::kInvalid, "network: a program needs at least one row and one thread"};
    FindPorts();
    context_ = backend_.MakeContext();
    TRY(MakeSteps());
    SettleGradients();
    PlanMemory();
    arena_.reset(static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(plan_.bytes(), 64))));
    if (arena_ == nullptr)
      return Error{Code::kInvalid, Str("network: no memory for ", plan_.bytes(), " bytes; use a smaller batch")};
    return {};
  }

  const Options& options() const override { return options_; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  std::size_t arena_bytes() const override { return plan_.bytes(); }
  const std::vector<std::string>& slow() const override { return slow_; }

  void Meet(Meeting meeting) override { meeting_ = std::move(meeting); }

  bool Forward(const optimize::Parameters& parameters, std::span<const float* const> inputs, const Draw& draw,
               const GoesOn& goes_on) override {
    CHECK(inputs.size() == inputs_.size());
    CHECK(!options_.together || meeting_.sum != nullptr);
    CHECK(!options_.slicing || meeting_.exchange != nullptr);
    given_.assign(inputs.begin(), inputs.end());
    draw_ = draw;
    for (Step& step : steps_) {
      if (goes_on && !goes_on()) return false;
      CHECK(step.blocks == 0 || parameters.held(step.first_block));
      Gather(step);
      Call call = CallOf(step, parameters);
      call.scratch = Place(step.forward_scratch);
      const ThreadScope scope(backend_, step.threads);
      const Timer timer(clock_, seconds_[At(step.layer)].forward);
      step.kernel->Forward(call);
    }
    return true;
  }

  std::span<const float> Output(std::size_t i) const override {
    const Value& value = values_[At(output_values_[i])];
    return {DataOf(value), value.layout.floats()};
  }

  std::span<float> OutputGradient(std::size_t i) override {
    const Value& value = values_[At(output_values_[i])];
    return {Floats(value.gradient), value.gradient ? value.layout.floats() : 0};
  }

  bool Backward(const optimize::Parameters& parameters, optimize::Gradient& gradient,
                std::span<float* const> input_gradients, const Finished& finished, const GoesOn& goes_on) override {
    CHECK(options_.training);
    CHECK(!options_.input_gradients || input_gradients.size() == inputs_.size());
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (!step->backward) continue;
      if (goes_on && !goes_on()) return false;
      Gather(*step);
      Call call = CallOf(*step, parameters);
      call.gradient = &gradient;
      call.scratch = Place(step->backward_scratch);
      call.output_gradient = Floats(values_[At(step->output)].gradient);
      gradients_here_.clear();
      for (Index k = 0; k < step->inputs.size(); ++k)
        gradients_here_.push_back(step->added[k] ? Floats(step->added[k])
                                                 : GradientOf(step->inputs[k], input_gradients));
      call.input_gradients = gradients_here_;
      bool told = false;
      const auto tell = [&] {
        if (!std::exchange(told, true))
          for (Index b = step->blocks; b-- > 0;) finished(step->first_block + b);
      };
      if (finished) call.finished = std::ref(tell);
      const ThreadScope scope(backend_, step->threads);
      const Timer timer(clock_, seconds_[At(step->layer)].backward);
      step->kernel->Backward(call);
      for (Index k = 0; k < step->inputs.size(); ++k)
        if (step->added[k])
          backend_.AddInto(GradientOf(step->inputs[k], input_gradients), gradients_here_[k],
                           values_[At(step->inputs[k])].layout.floats());
      if (finished) tell();
    }
    return true;
  }

  void Measure(const base::Clock* clock) override {
    clock_ = clock;
    seconds_.assign(graph_.layers.size(), {});
  }
  std::vector<Seconds> seconds() const override { return seconds_; }

 private:
  class Timer {
   public:
    Timer(const base::Clock* clock, double& to) : clock_(clock), to_(to) {
      if (clock_ != nullptr) begun_ = clock_->Now();
    }
    ~Timer() {
      if (clock_ != nullptr) to_ += base::Seconds(clock_->Now() - begun_);
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    const base::Clock* const clock_;
    double& to_;
    decltype(clock_->Now()) begun_{};
  };

  bool Here(int layer) const { return layer >= options_.first && layer < options_.last && layer != 0; }

  // What goes out, what is needed for that, and what comes in.
  void FindPorts() {
    const int last = options_.last;
    std::vector<bool> goes_out(graph_.layers.size(), false);
    for (Index h = 0; h < graph_.heads.size(); ++h)
      if (h == 0 || (options_.auxiliary && options_.training)) goes_out[At(graph_.heads[h].layer)] = true;
    std::vector<bool> used = goes_out;  // by what comes out in the end
    std::vector<bool> read_later(graph_.layers.size(), false);
    for (Index layer = graph_.layers.size(); layer-- > 0;)
      if (used[layer])
        for (const int input : graph_.layers[layer].inputs) used[At(input)] = true;
    for (Index layer = At(last); layer < graph_.layers.size(); ++layer)
      if (used[layer])
        for (const int input : graph_.layers[layer].inputs) goes_out[At(input)] = read_later[At(input)] = true;
    needed_ = std::vector<bool>(graph_.layers.size(), false);
    std::vector<bool> comes_in(graph_.layers.size(), false);
    for (int layer = last; layer-- > 0;) {
      if (goes_out[At(layer)] && (Here(layer) || (layer == 0 && options_.first == 0))) needed_[At(layer)] = true;
      if (!needed_[At(layer)]) continue;
      for (const int input : graph_.layers[At(layer)].inputs) (Here(input) ? needed_ : comes_in)[At(input)] = true;
      if (layer == 0) comes_in[0] = true;
    }
    for (int layer = 0; layer < last; ++layer) {
      // What goes out again comes back by its output.
      const bool later = read_later[At(layer)] && !needed_[At(layer)];
      if (comes_in[At(layer)]) inputs_.push_back({layer, facts_[At(layer)].elements(), {}, later});
      if (needed_[At(layer)] && goes_out[At(layer)])
        outputs_.push_back({layer, facts_[At(layer)].elements(), HeadOf(layer)});
    }
    // The order of heads, the main one first, where there are no other outputs.
    std::stable_sort(outputs_.begin(), outputs_.end(), [&](const Port& a, const Port& b) {
      return a.head.value_or(graph_.heads.size()) < b.head.value_or(graph_.heads.size());
    });
  }

  // The head that a layer is, if it counts.
  std::optional<Index> HeadOf(int layer) const {
    for (Index h = 0; h < graph_.heads.size(); ++h)
      if (graph_.heads[h].layer == layer && (h == 0 || (options_.auxiliary && options_.training))) return h;
    return std::nullopt;
  }

  bool Sliced(int layer) const { return options_.slicing && options_.slicing->cuts[At(layer)] != Slicing::Cut::kWhole; }

  // The activation that is the only reader of a layer and can be computed with it.
  int FusedWith(int layer, const std::vector<std::vector<int>>& readers) const {
    if (readers[At(layer)].size() != 1 || Sliced(layer)) return kNone;
    const int next = readers[At(layer)][0];
    if (!backend_.CanFuse(graph_.layers[At(layer)], graph_.layers[At(next)])) return kNone;
    for (const Port& port : outputs_)
      if (port.layer == layer) return kNone;
    return next;
  }

  Result<void> MakeSteps() {
    std::vector<std::vector<int>> readers(graph_.layers.size());
    for (int layer = options_.first; layer < options_.last; ++layer)
      if (needed_[At(layer)] && layer != 0)
        for (const int input : graph_.layers[At(layer)].inputs) readers[At(input)].push_back(layer);
    views_.resize(graph_.layers.size());
    for (Index i = 0; i < inputs_.size(); ++i) {
      const Index layer = At(inputs_[i].layer);
      const Layout plain = backend_.PlainLayout(options_.rows, facts_[layer].shape);
      values_.push_back({.layout = plain,
                         .port = static_cast<int>(i),
                         .wanted = options_.input_gradients,
                         .written = inputs_[i].read_later});
      views_[layer] = {static_cast<int>(values_.size()) - 1, facts_[layer].shape, plain};
    }
    Index block = 0;
    for (int layer = 0; layer < options_.last; ++layer) {
      const Index first_block = std::exchange(block, block + facts_[At(layer)].blocks.size());
      if (!Here(layer) || !needed_[At(layer)] || views_[At(layer)].value != kNone) continue;
      const Layer& described = graph_.layers[At(layer)];
      const bool same_order = described.op == Op::kFlatten || described.op == Op::kReshape;
      if (same_order && views_[At(described.inputs[0])].layout.plain) {
        const Shape& shape = facts_[At(layer)].shape;
        views_[At(layer)] = {views_[At(described.inputs[0])].value, shape, backend_.PlainLayout(options_.rows, shape)};
        continue;
      }
      const int fused = FusedWith(layer, readers);
      TRY(AddStep(layer, fused, first_block));
      if (fused != kNone) views_[At(fused)] = views_[At(layer)];
    }
    for (const Port& port : outputs_) {
      const View& view = views_[At(port.layer)];
      // A tensor and its flattened self may both go out; each has a gradient of its own.
      const bool taken = std::find(output_values_.begin(), output_values_.end(), view.value) != output_values_.end();
      if (view.layout.plain && values_[At(view.value)].port == kNone && !taken) {
        output_values_.push_back(view.value);
      } else {
        TRY(AddCopy(port.layer));
        output_values_.push_back(static_cast<int>(values_.size()) - 1);
      }
    }
    seconds_.assign(graph_.layers.size(), {});
    return {};
  }

  // Waking threads and waiting for them takes as long as a million of operations or two: what is over sooner is done by
  // one thread. That must not depend on how many there are, or results would.
  bool Worthwhile(int layer) const {
    constexpr double kLeast = 4e6;  // operations
    double numbers = static_cast<double>(facts_[At(layer)].elements());
    for (const int input : graph_.layers[At(layer)].inputs)
      numbers += static_cast<double>(facts_[At(input)].elements());
    return (facts_[At(layer)].flops + kOperationsOfANumber * numbers) * static_cast<double>(options_.rows) >= kLeast;
  }

  // Of a batch's statistics oneDNN sums as many parts as there are threads, and results would depend on their number:
  // batch norm has one.
  int ThreadsFor(int layer) const {
    return Worthwhile(layer) && graph_.layers[At(layer)].op != Op::kBatchNorm ? options_.threads : 1;
  }

  KernelSpec SpecOf(int layer, const std::vector<int>& inputs) const {
    KernelSpec spec;
    spec.context = context_;
    spec.layer = &graph_.layers[At(layer)];
    spec.number = At(layer);
    spec.rows = options_.rows;
    spec.training = options_.training;
    spec.together = options_.training && options_.together;
    if (Sliced(layer)) spec.slicing = &*options_.slicing;
    spec.output = facts_[At(layer)].shape;
    spec.worthwhile = Worthwhile(layer);
    for (const int input : inputs) {
      const View& view = views_[At(input)];
      spec.inputs.push_back(view.shape);
      spec.layouts.push_back(view.layout);
      spec.wanted.push_back(options_.training && values_[At(view.value)].wanted);
    }
    return spec;
  }

  Result<void> AddStep(int layer, int fused, Index first_block) {
    const std::vector<int>& inputs = graph_.layers[At(layer)].inputs;
    KernelSpec spec = SpecOf(layer, inputs);
    if (fused != kNone) spec.activation = &graph_.layers[At(fused)];
    Step step;
    step.layer = layer;
    step.threads = ThreadsFor(layer);
    const ThreadScope scope(backend_, step.threads);  // kernels are made for a number of threads
    step.kernel = TRY(spec.slicing == nullptr ? backend_.MakeKernel(spec) : MakeSlicedDense(backend_, spec));
    for (const std::string& what : step.kernel->slow)
      slow_.push_back(Str("layer ", Quoted(spec.layer->name), ": ", what));
    step.first_block = first_block;
    step.blocks = facts_[At(layer)].blocks.size();
    Finish(std::move(step), spec, inputs, facts_[At(layer)].shape, At(layer));
    return {};
  }

  Result<void> AddCopy(int layer) {
    const KernelSpec spec = SpecOf(layer, {layer});
    Step step;
    step.layer = layer;
    step.threads = ThreadsFor(layer);
    const ThreadScope scope(backend_, step.threads);
    step.kernel = TRY(backend_.MakePlain(spec));
    const View before = views_[At(layer)];
    Finish(std::move(step), spec, {layer}, facts_[At(layer)].shape, At(layer));
    views_[At(layer)] = before;  // others read the original
    return {};
  }

  void Finish(Step step, const KernelSpec& spec, const std::vector<int>& inputs, const Shape& shape, Index view) {
    Value value;
    value.layout = step.kernel->output;
    value.producer = static_cast<int>(steps_.size());
    value.wanted = step.blocks > 0 || std::find(spec.wanted.begin(), spec.wanted.end(), true) != spec.wanted.end();
    step.backward = options_.training && value.wanted;
    for (const int input : inputs) step.inputs.push_back(views_[At(input)].value);
    step.output = static_cast<int>(values_.size());
    views_[view] = {step.output, shape, value.layout};
    values_.push_back(std::move(value));
    steps_.push_back(std::move(step));
  }

  int ForwardTime(Index step) const { return static_cast<int>(step); }
  int LossTime() const { return static_cast<int>(steps_.size()); }
  int BackwardTime(Index step) const { return 2 * static_cast<int>(steps_.size()) - static_cast<int>(step); }
  int End() const { return 2 * static_cast<int>(steps_.size()) + 1; }

  // Gives every gradient its memory: who writes it first writes it directly, whoever comes later adds.
  void SettleGradients() {
    if (!options_.training) return;
    for (const int output : output_values_) {
      Value& value = values_[At(output)];
      if (!value.wanted || value.gradient) continue;
      value.gradient = plan_.Add(value.layout.bytes, LossTime(), LossTime());
      value.written = true;
    }
    for (Index s = steps_.size(); s-- > 0;) {
      Step& step = steps_[s];
      step.added.resize(step.inputs.size());
      if (!step.backward) continue;
      plan_.Extend(*values_[At(step.output)].gradient, BackwardTime(s), BackwardTime(s));
      for (Index k = 0; k < step.inputs.size(); ++k) {
        Value& value = values_[At(step.inputs[k])];
        if (!value.wanted) continue;
        const int now = BackwardTime(s);
        if (value.written) step.added[k] = plan_.Add(value.layout.bytes, now, now);
        if (!value.written && value.port == kNone) value.gradient = plan_.Add(value.layout.bytes, now, now);
        if (value.gradient) plan_.Extend(*value.gradient, now, now);
        value.written = true;
      }
    }
  }

  void PlanMemory() {
    for (Index s = 0; s < steps_.size(); ++s) {
      Step& step = steps_[s];
      const Kernel& kernel = *step.kernel;
      const int forward = ForwardTime(s), backward = BackwardTime(s);
      Value& output = values_[At(step.output)];
      output.data = plan_.Add(output.layout.bytes, forward, forward);
      if (step.backward && kernel.needs_output) plan_.Extend(*output.data, forward, backward);
      for (const int input : step.inputs)
        if (const Value& value = values_[At(input)]; value.data)
          plan_.Extend(*value.data, forward, step.backward && kernel.needs_input ? backward : forward);
      if (kernel.saved > 0) step.saved = plan_.Add(kernel.saved, forward, step.backward ? backward : forward);
      if (kernel.forward_scratch > 0) step.forward_scratch = plan_.Add(kernel.forward_scratch, forward, forward);
      if (step.backward && kernel.backward_scratch > 0)
        step.backward_scratch = plan_.Add(kernel.backward_scratch, backward, backward);
    }
    for (const int output : output_values_)
      if (values_[At(output)].data) plan_.Extend(*values_[At(output)].data, LossTime(), End());
    plan_.Place();
  }

  std::byte* Place(const std::optional<Index>& tensor) const {
    return tensor ? arena_.get() + plan_.at(*tensor) : nullptr;
  }
  float* Floats(const std::optional<Index>& tensor) const { return reinterpret_cast<float*>(Place(tensor)); }
  const float* DataOf(const Value& value) const {
    return value.port == kNone ? Floats(value.data) : given_[At(value.port)];
  }
  float* GradientOf(int number, std::span<float* const> of_ports) const {
    const Value& value = values_[At(number)];
    if (!value.wanted) return nullptr;
    return value.port == kNone ? Floats(value.gradient) : of_ports[At(value.port)];
  }

  void Gather(const Step& step) {
    inputs_here_.clear();
    for (const int input : step.inputs) inputs_here_.push_back(DataOf(values_[At(input)]));
  }
  Call CallOf(const Step& step, const optimize::Parameters& parameters) const {
    Call call;
    call.inputs = inputs_here_;
    call.output = Floats(values_[At(step.output)].data);
    call.parameters = &parameters;
    call.block = step.first_block;
    call.saved = Place(step.saved);
    call.draw = &draw_;
    call.meeting = &meeting_;
    return call;
  }

  const Graph graph_;
  Options options_;
  const Backend& backend_;
  std::vector<Facts> facts_;
  std::vector<Port> inputs_, outputs_;
  std::vector<bool> needed_;  // layers that something which goes out depends on
  std::shared_ptr<Context> context_;
  std::vector<Value> values_;
  std::vector<View> views_;  // by layer
  std::vector<Step> steps_;
  std::vector<int> output_values_;
  std::vector<std::string> slow_;
  ArenaPlan plan_;
  std::unique_ptr<std::byte, FreeDeleter> arena_;

  std::vector<const float*> given_, inputs_here_;
  std::vector<float*> gradients_here_;
  Draw draw_;
  Meeting meeting_;
  const base::Clock* clock_ = nullptr;
  std::vector<Seconds> seconds_;
};

}  // namespace

Result<std::unique_ptr<Program>> Program::Compile(const Graph& graph, const Options& options) {
  auto program = std::make_unique<CompiledProgram>(graph, options);
  TRY(program->Compile());
  return std::unique_ptr<Program>(std::move(program));
}

std::vector<optimize::Block> Blocks(const std::vector<Facts>& facts) {
  std::vector<optimize::Block> blocks;
  for (const Facts& layer : facts) blocks.insert(blocks.end(), layer.blocks.begin(), layer.blocks.end());
  return blocks;
}

optimize::Portion BlocksOf(const std::vector<Facts>& facts, int first, int last) {
  Index from = 0, to = 0;
  for (int layer = 0; layer < last; ++layer) {
    to += facts[At(layer)].blocks.size();
    if (layer < first) from = to;
  }
  return optimize::Portion::OfBlocks(from, to);
}

}  // namespace freshet::model::network
