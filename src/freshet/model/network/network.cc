// Networks as models: batches go through programs compiled for their size, the loss's derivative comes back.

#include "model/network/network.h"

#include <algorithm>
#include <cmath>
#include <list>

#include "base/random.h"
#include "model/network/description.h"
#include "model/network/head_loss.h"
#include "model/network/program.h"

namespace freshet::model::network {
namespace {

using data::Batch;
using optimize::Gradient;
using optimize::Optimizer;
using optimize::Parameters;

using Programs = std::list<std::unique_ptr<Program>>;  // the last used first

// What a thread keeps of one network between calls: programs by size, and the gradient of single-row updates.
struct KeptOfOne {
  std::weak_ptr<const Graph> graph;  // whose they are: a network's alone, and gone with it
  Programs training, predicting;
  std::optional<Gradient> one;
};

// What a thread keeps between calls.
struct NetworkKept final : Workspace::Kept {
  std::list<KeptOfOne> networks;
  std::vector<float> input;  // sparse rows made dense

  KeptOfOne& Of(const std::shared_ptr<const Graph>& graph) {
    networks.remove_if([](const KeptOfOne& kept) { return kept.graph.expired(); });
    for (KeptOfOne& kept : networks)
      if (kept.graph.lock() == graph) return kept;
    return networks.emplace_back(KeptOfOne{graph, {}, {}, {}});
  }
};

NetworkKept& Kept(Workspace& workspace) {
  if (workspace.kept == nullptr) workspace.kept = std::make_unique<NetworkKept>();
  return static_cast<NetworkKept&>(*workspace.kept);
}

class Network final : public Model, public Layered {
 public:
  Network(const ModelConfig& config, const Loss& loss, const Backend& backend, Graph graph, std::vector<Facts> facts,
          std::vector<std::string> slow)
      : Model(config, loss),
        backend_(backend),
        shared_graph_(std::make_shared<const Graph>(std::move(graph))),
        facts_(std::move(facts)),
        slow_(std::move(slow)) {}

  const Graph& graph() const override { return graph_; }
  const Backend& backend() const override { return backend_; }
  const std::vector<std::string>& slow() const { return slow_; }
  Traits traits() const override {
    const bool batch_norm = std::any_of(graph_.layers.begin(), graph_.layers.end(),
                                        [](const Layer& layer) { return layer.op == Op::kBatchNorm; });
    return {.uses_team = true, .sums_over_workers = batch_norm};
  }
  std::vector<optimize::Block> Blocks() const override { return network::Blocks(facts_); }
  bool Supervised() const override { return graph_.target != Target::kInput; }
  Result<void> Prepare(Parameters&, const Batch& batch) const override {
    if (batch.sparse() || batch.width == width_) return {};
    return Error{Code::kBadInput, Str("rows of ", batch.width, " numbers; the network takes ", width_)};
  }

  void Predict(const Parameters& parameters, const Batch& batch, Workspace& workspace,
               std::span<float> out) const override {
    for (std::size_t begin = 0, size = 0; begin < batch.rows; begin += size) {
      Program& program = PredictingAtMost(batch.rows - begin, workspace);
      size = program.options().rows;
      const Batch part = batch.Slice(begin, begin + size);
      const float* const input = Dense(part, workspace);
      if (!program.Forward(parameters, {&input, 1}, {}, workspace.goes_on)) return;
      head_loss_.CopyScores(program.Output(0), out.subspan(begin * scores(), size * scores()));
    }
  }

  double LossOf(const Parameters& parameters, const Batch& batch, Workspace& workspace,
                std::span<const float> made) const override {
    if (graph_.target != Target::kInput) return Model::LossOf(parameters, batch, workspace, made);
    double sum = 0;
    workspace.deltas.resize(scores());
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const float* const row = Dense(batch.Slice(r, r + 1), workspace);
      sum += batch.weight(r) * head_loss_.OfItself(made.data() + r * scores(), row, 0, workspace.deltas);
    }
    return sum;
  }

  Result<void> Reserve(std::size_t rows, Workspace& workspace) const override {
    if (rows > 0 || workspace.slicing) TRY(Get(workspace, std::max<std::size_t>(rows, 1), true));
    return {};
  }

  double LossAndGradient(const Parameters& parameters, const Batch& batch, Workspace& workspace, Gradient& gradient,
                         std::span<float> out) const override {
    if (batch.rows == 0) return KeepCompany(parameters, workspace, gradient);
    Program& program = Training(workspace, batch.rows);
    if (workspace.sum || workspace.slicing) program.Meet({workspace.sum, true, workspace.exchange});
    const float* const input = Dense(batch, workspace);
    if (!program.Forward(parameters, {&input, 1}, {config_.seed, workspace.step, batch.samples}, workspace.goes_on))
      return 0;
    head_loss_.CopyScores(program.Output(0), out.first(batch.rows * scores()));
    double loss = 0;
    for (std::size_t h = 0; h < graph_.heads.size(); ++h) {
      const double of_head = head_loss_.Of(h, batch, input, program.Output(h), program.OutputGradient(h));
      if (h == 0) loss = of_head;
    }
    program.Backward(parameters, gradient, {}, workspace.finished, workspace.goes_on);
    return loss;
  }

  double Update(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                std::span<float> out, Optimizer::Sharing) const override {
    double loss = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      Gradient& gradient = GradientOfOne(workspace);
      gradient.Clear();
      workspace.step = optimizer.step();
      const Batch row = batch.Slice(r, r + 1);
      const float weight = batch.weight(r);
      loss += LossAndGradient(parameters, row, workspace, gradient, out.subspan(r * scores(), scores()));
      if (weight > 0) Apply(parameters, gradient, 1, optimizer, workspace);
    }
    return loss;
  }

  void Apply(Parameters& parameters, Gradient& gradient, double weight, Optimizer& optimizer,
             Workspace& workspace) const override {
    const ThreadScope scope(backend_, workspace.threads);
    if (weight > 0 && weight != 1) gradient.Scale(static_cast<float>(1 / weight));
    optimizer.BeginStep();
    for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
      optimize::BlockGradient& block = gradient.blocks[b];
      if (block.examples() > 1) block.Expand();
      backend_.InParallel(parameters.rows(b), parameters.width(b), [&](std::size_t first, std::size_t last) {
        optimizer.ApplyBlock(parameters, b, block, first, last);
      });
    }
  }

  void Touch(const Parameters& parameters, const Batch&, optimize::RowSets& touched) const override {
    for (std::size_t b = 0; b < parameters.blocks(); ++b)
      for (std::uint32_t row = 0; row < parameters.rows(b); ++row) touched[b].Add(row);
  }

  bool GivesFactors(std::size_t block) const override {
    std::size_t b = 0;
    for (std::size_t layer = 0; layer < facts_.size(); b += facts_[layer++].blocks.size())
      if (b == block && !facts_[layer].blocks.empty())
        return graph_.layers[layer].op == Op::kDense && !graph_.layers[layer].per_step;
    return false;
  }

  Result<Gradient> NewGradient(optimize::Memory& memory, const optimize::Portion& portion) const override {
    return Gradient::Dense(portion.Of(Blocks()), memory);
  }

 protected:
  // Weights within ± √(3 · gain / inputs), so that the signal keeps its size from layer to layer; scales are 1, and
  // an LSTM begins by remembering.
  void Start(Parameters& parameters) const override {
    std::size_t b = 0;
    for (std::size_t layer = 0; layer < facts_.size(); ++layer)
      for (const optimize::Block& block : facts_[layer].blocks) {
        if (parameters.held(b)) StartBlock(parameters, b, layer, block);
        ++b;
      }
  }

 private:
  // Makes the sums of a worker that has no rows, and tells of blocks as they are finished: by a row of zeros that does
  // not count, so that they come as they do for the others, whatever the graph.
  double KeepCompany(const Parameters& parameters, Workspace& workspace, Gradient& gradient) const {
    if (!workspace.sum && !workspace.slicing) return 0;
    Program& program = Training(workspace, 1);
    program.Meet({workspace.sum, false, workspace.exchange});
    const std::vector<float> row(width_, 0.0f);
    const float* const input = row.data();
    program.Forward(parameters, {&input, 1}, {});
    for (std::size_t h = 0; h < graph_.heads.size(); ++h) {
      const std::span<float> deltas = program.OutputGradient(h);
      std::fill(deltas.begin(), deltas.end(), 0.0f);
    }
    if (workspace.slicing) {  // whose gradients are those of others' rows
      program.Backward(parameters, gradient, {}, workspace.finished);
      return 0;
    }
    Gradient& unused = GradientOfOne(workspace);
    unused.Clear();
    program.Backward(parameters, unused, {}, workspace.finished);
    return 0;
  }

  void StartBlock(Parameters& parameters, std::size_t b, std::size_t layer, const optimize::Block& block) const {
    const std::span<float> values = parameters.Values(b);
    const auto within = parameters.block(b).within.value_or(optimize::Block::Within{});
    const std::string_view what = std::string_view(block.name).substr(graph_.layers[layer].name.size() + 1);
    if (what == "scale" || what == "variance") {
      std::fill(values.begin(), values.end(), 1.0f);
    } else if (what == "bias" && graph_.layers[layer].op == Op::kLstm) {
      constexpr std::uint64_t kForget = 1;                   // the gate whose bias it is
      const std::uint64_t row = kForget - within.first_row;  // far beyond all where it is before the first
      if (row < parameters.rows(b)) std::fill_n(parameters.Row(b, row), parameters.width(b), 1.0f);
    } else if (what == "weight" || what == "recurrent") {
      const bool embedding = graph_.layers[layer].op == Op::kEmbedding;
      const double inputs = embedding ? 1 : static_cast<double>(block.width);
      const auto reach = static_cast<float>(std::sqrt(3 * (FeedsRelu(layer) ? 2 : 1) / inputs) * (embedding ? 0.1 : 1));
      for (std::uint64_t row = 0; row < parameters.rows(b); ++row) {
        const std::uint64_t first = (within.first_row + row) * block.width + within.first_column;
        StartWeights({parameters.Row(b, row), parameters.width(b)}, b, first, reach);
      }
    }
  }

  // Numbers within ± reach for the places from `first` on of a whole block, drawn by four.
  void StartWeights(std::span<float> values, std::size_t b, std::uint64_t first, float reach) const {
    const std::uint64_t end = first + values.size();
    for (std::uint64_t i = first / 4 * 4; i < end; i += 4) {
      const auto numbers = base::Philox(config_.seed, b, i);
      for (std::uint64_t k = std::max(i, first); k < std::min(i + 4, end); ++k)
        values[k - first] = reach * (static_cast<float>(numbers[k - i]) * 0x1p-31f - 1.0f);
    }
  }

  bool FeedsRelu(std::size_t layer) const {
    return std::any_of(graph_.layers.begin(), graph_.layers.end(), [&](const Layer& reader) {
      return reader.op == Op::kRelu && reader.inputs[0] == static_cast<int>(layer);
    });
  }

  // The program for batches of this size; kInvalid when there is no memory for it. The last one of an epoch is smaller,
  // so that two of each kind are kept while training; predictions come in three sizes.
  Result<Program*> Get(Workspace& workspace, std::size_t rows, bool training) const {
    KeptOfOne& mine = Kept(workspace).Of(shared_graph_);
    Programs& programs = training ? mine.training : mine.predicting;
    const bool together = training && workspace.sum != nullptr;
    const std::optional<Slicing> slicing = training ? workspace.slicing : std::nullopt;
    const auto found = std::find_if(programs.begin(), programs.end(), [&](const auto& program) {
      return program->options().rows == rows && program->options().threads == workspace.threads &&
             program->options().together == together && program->options().slicing == slicing;
    });
    if (found != programs.end()) {
      programs.splice(programs.begin(), programs, found);
      return programs.front().get();
    }
    if (programs.size() >= (training ? 2 : 3)) programs.pop_back();
    programs.push_front(TRY(Program::Compile(graph_, {.rows = rows,
                                                      .training = training,
                                                      .together = together,
                                                      .slicing = slicing,
                                                      .threads = workspace.threads,
                                                      .backend = &backend_})));
    return programs.front().get();
  }

  // The program for training by this many rows, which Reserve has made or which is for one row, as Make has compiled
  // it.
  Program& Training(Workspace& workspace, std::size_t rows) const {
    auto program = Get(workspace, rows, true);
    CHECK(program.ok());
    return *program.value();
  }

  // A program that predicts some of these rows. They come in few sizes, so that few programs are needed; where memory
  // is short the smallest does.
  Program& PredictingAtMost(std::size_t rows, Workspace& workspace) const {
    for (const std::size_t size : {32, 8})
      if (rows >= size)
        if (auto program = Get(workspace, size, false); program.ok()) return *program.value();
    auto program = Get(workspace, 1, false);
    CHECK(program.ok());  // Make has compiled a larger one: it was for training, too
    return *program.value();
  }

  Gradient& GradientOfOne(Workspace& workspace) const {
    std::optional<Gradient>& one = Kept(workspace).Of(shared_graph_).one;
    if (!one) {
      static optimize::HeapMemory memory;  // has no state
      auto made = NewGradient(memory, {});
      CHECK(made.ok());
      one = std::move(made.value());
      for (std::size_t b = 0; b < one->blocks.size(); ++b) one->blocks[b].WantFactors(GivesFactors(b));
    }
    return *one;
  }

  const float* Dense(const Batch& batch, Workspace& workspace) const {
    return DenseRows(batch, width_, Kept(workspace).input);
  }

  const Backend& backend_;
  const std::shared_ptr<const Graph> shared_graph_;  // never another's: workspaces know a network by it
  const Graph& graph_ = *shared_graph_;
  const std::vector<Facts> facts_;
  const std::vector<std::string> slow_;
  const HeadLoss head_loss_{graph_, facts_, loss_};
  const std::size_t width_ = static_cast<std::size_t>(facts_[0].elements());
};

}  // namespace

Result<std::unique_ptr<Model>> MakeNetwork(const ModelConfig& config, const Loss& loss, const Backend& backend) {
  Graph graph = TRY(GraphFromToml(config.network));
  std::vector<Facts> facts = TRY(Infer(graph));
  const Facts& answer = facts[static_cast<std::size_t>(graph.heads[0].layer)];
  const auto scores = static_cast<std::uint64_t>(graph.target == Target::kNext ? answer.shape[1] : answer.elements());
  if (scores != config.classes)
    return Error{Code::kInvalid,
                 Str("network: it gives ", scores, " scores a row, the data asks for ", config.classes)};
  if (static_cast<std::uint64_t>(facts[0].elements()) != config.features)
    return Error{Code::kInvalid,
                 Str("network: its input has ", facts[0].elements(), " numbers, the data's rows ", config.features)};
  if (graph.target == Target::kLabel && scores > 1 && config.loss != "softmax")
    return Error{Code::kInvalid, Str("loss ", config.loss, " gives one score, not ", scores, "; use softmax")};
  if (graph.target == Target::kInput && config.loss != "squared")
    return Error{Code::kInvalid, Str("a network whose target is its input needs the squared loss, not ", config.loss)};
  if (graph.target == Target::kNext && config.loss != "softmax")
    return Error{Code::kInvalid, Str("a network of sequences needs the softmax loss, not ", config.loss)};
  // So that nothing is left that could fail later. Which kernels there are hardly depends on the number of rows.
  const auto program = TRY(Program::Compile(graph, {.rows = 1, .training = true, .backend = &backend}));
  return std::unique_ptr<Model>(
      std::make_unique<Network>(config, loss, backend, std::move(graph), std::move(facts), program->slow()));
}

const Graph* GraphOf(const Model& model) {
  const auto* const layered = dynamic_cast<const Layered*>(&model);
  return layered == nullptr ? nullptr : &layered->graph();
}

const Backend& BackendOf(const Model& model) {
  const auto* const layered = dynamic_cast<const Layered*>(&model);
  CHECK(layered != nullptr);
  return layered->backend();
}

void WarnOfSlowLayers(const Model& model, base::Log& log) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  if (network == nullptr) return;
  for (const std::string& what : network->slow())
    log.Warn("slow_layer", "what", what, "why",
             "oneDNN has no fast kernel for this shape; another number of channels may have one");
}

}  // namespace freshet::model::network
