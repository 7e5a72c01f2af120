#include "model/network/description.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <tuple>

#include "base/random.h"

namespace freshet::model::network {
namespace {

auto Tied(const Layer& l) {
  return std::tie(l.name, l.op, l.inputs, l.outputs, l.bias, l.kernel, l.stride, l.pad, l.pad_end, l.dilation, l.groups,
                  l.ceil, l.include_padding, l.per_step, l.sequence, l.vocabulary, l.slope, l.rate, l.size, l.alpha,
                  l.beta, l.k, l.epsilon, l.momentum, l.least, l.most, l.approximate, l.shape, l.place);
}

void ExpectSame(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.input, b.input);
  EXPECT_EQ(a.target, b.target);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i)
    EXPECT_TRUE(Tied(a.layers[i]) == Tied(b.layers[i])) << "layer " << i << ", " << a.layers[i].name;
  ASSERT_EQ(a.heads.size(), b.heads.size());
  for (std::size_t h = 0; h < a.heads.size(); ++h) {
    EXPECT_EQ(a.heads[h].layer, b.heads[h].layer);
    EXPECT_EQ(a.heads[h].weight, b.heads[h].weight);
  }
}

Graph Read(std::string_view text, const Fit& fit = {}) {
  auto graph = GraphFromToml(text, fit);
  EXPECT_TRUE(graph.ok()) << text << "\n" << graph.error().text;
  return graph.ok() ? std::move(graph).value() : Graph({1});
}

std::string Refusal(std::string_view text, const Fit& fit = {}) {
  const auto graph = GraphFromToml(text, fit);
  EXPECT_FALSE(graph.ok()) << text;
  if (graph.ok()) return "";
  EXPECT_EQ(graph.error().code, Code::kInvalid);
  return graph.error().text;
}

// Random networks: whatever fits an image, a sequence or features, sometimes reading far back, with odd names.
class Growth {
 public:
  explicit Growth(std::uint64_t seed) : random_(seed, "network") {}

  Graph Run() {
    graph_ = Graph(Start());
    if (Chance(0.2)) graph_.layers[0].name = "the data";
    facts_ = Infer(WithHead(graph_)).value();
    const std::uint64_t layers = Below(12);
    for (std::uint64_t tries = 0; tries < 4 * layers && graph_.layers.size() <= layers; ++tries) Grow();
    graph_ = WithHead(graph_);
    if (Chance(0.3)) graph_.heads[0].weight = Odd();
    if (Chance(0.3)) MoreHeads();
    return graph_;
  }

 private:
  std::uint64_t Below(std::uint64_t end) { return random_.Below(end); }
  bool Chance(double p) { return random_.Uniform() < p; }
  double Odd() { return Chance(0.5) ? random_.Uniform() : static_cast<double>(1 + Below(3)); }
  std::int64_t Small() { return 1 + static_cast<std::int64_t>(Below(4)); }
  Pair TwoSmall() { return {Small(), Chance(0.5) ? Small() : 1}; }
  Shape Start() {
    if (Chance(0.2)) return {Small() + 2};
    if (Chance(0.3)) return {Small() + 1, Small()};
    return {Small(), 6 + Small(), 6 + Small()};
  }

  static Graph WithHead(Graph graph) {
    graph.heads = {{static_cast<int>(graph.layers.size()) - 1, 1}};
    return graph;
  }

  void Grow() {
    Layer layer;
    layer.op = static_cast<Op>(1 + Below(static_cast<std::uint64_t>(kLastOp)));
    const auto last = graph_.layers.size() - 1;
    layer.inputs = {static_cast<int>(Chance(0.7) ? last : Below(last + 1))};
    Fill(layer);
    if (Chance(0.3)) layer.name = Str(Chance(0.5) ? "a \"b\"\\\n" : "größe 😀 # '/", graph_.layers.size());
    if (layer.op == Op::kRelu && Chance(0.7)) layer.slope = 0;
    Graph grown = graph_;
    grown.Add(layer);
    auto facts = Infer(WithHead(grown));
    if (!facts.ok()) return;  // it does not fit here
    graph_ = grown;
    facts_ = std::move(facts).value();
  }

  void Fill(Layer& layer) {
    switch (layer.op) {
      case Op::kDense:
        layer.outputs = Small();
        layer.bias = Chance(0.5);
        layer.per_step = Chance(0.5);
        break;
      case Op::kConvolution:
        layer.outputs = Small() * 2;
        layer.groups = 1 + static_cast<std::int64_t>(Below(2));
        layer.dilation = TwoSmall();
        layer.bias = Chance(0.5);
        FillWindow(layer);
        break;
      case Op::kAveragePool:
        layer.include_padding = Chance(0.5);
        [[fallthrough]];
      case Op::kMaxPool:
        layer.ceil = Chance(0.5);
        FillWindow(layer);
        break;
      case Op::kLrn:
        layer.size = 2 * Small() + 1;
        layer.alpha = Odd();
        layer.beta = Odd();
        layer.k = Odd() + 1e20 * static_cast<double>(Below(2));
        break;
      case Op::kBatchNorm:
        layer.epsilon = Odd();
        layer.momentum = 0.01 + 0.5 * random_.Uniform();
        break;
      case Op::kRelu:
        layer.slope = random_.Uniform();
        break;
      case Op::kDropout:
        layer.rate = random_.Uniform();
        break;
      case Op::kConcat:
      case Op::kSum:
        while (Chance(0.6)) layer.inputs.push_back(static_cast<int>(Below(graph_.layers.size())));
        break;
      case Op::kProduct:
        layer.inputs.push_back(static_cast<int>(Below(graph_.layers.size())));
        break;
      case Op::kClip:
        if (Chance(0.7)) layer.least = -Odd();
        if (Chance(0.7)) layer.most = Odd();
        break;
      case Op::kGelu:
        layer.approximate = Chance(0.5);
        break;
      case Op::kAffine:
        layer.shape = facts_[static_cast<std::size_t>(layer.inputs[0])].shape;
        for (std::int64_t& extent : layer.shape)
          if (Chance(0.5)) extent = 1;
        break;
      case Op::kReshape:
        layer.shape = facts_[static_cast<std::size_t>(layer.inputs[0])].shape;
        std::reverse(layer.shape.begin(), layer.shape.end());
        break;
      case Op::kTranspose:
        for (std::size_t d = facts_[static_cast<std::size_t>(layer.inputs[0])].shape.size(); d-- > 0;)
          layer.shape.push_back(static_cast<std::int64_t>(d));
        break;
      case Op::kEmbedding:
        layer.outputs = Small();
        layer.vocabulary = Small();
        break;
      case Op::kLstm:
      case Op::kGru:
        layer.outputs = Small();
        layer.sequence = Chance(0.5);
        break;
      default:
        break;
    }
  }

  void FillWindow(Layer& layer) {
    layer.kernel = TwoSmall();
    layer.stride = Chance(0.5) ? layer.kernel : TwoSmall();
    layer.pad = {static_cast<std::int64_t>(Below(2)), static_cast<std::int64_t>(Below(2))};
    layer.pad_end = Chance(0.5) ? layer.pad : Pair{static_cast<std::int64_t>(Below(2)), 0};
  }

  // Others of the same size, in any order.
  void MoreHeads() {
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (facts_[i].elements() != facts_.back().elements()) continue;
      const Head head{static_cast<int>(i), Odd()};
      const bool taken = std::any_of(graph_.heads.begin(), graph_.heads.end(),
                                     [&](const Head& other) { return other.layer == head.layer; });
      if (!taken) graph_.heads.insert(Chance(0.3) ? graph_.heads.begin() : graph_.heads.end(), head);
    }
  }

  base::Random random_;
  Graph graph_;
  std::vector<Facts> facts_;
};

TEST(NetworkText, OfAnyGraphReadsBackAsTheSameGraph) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Graph graph = Growth(seed).Run();
    base::Random random(seed, "places");
    for (std::size_t i = 1; i < graph.layers.size() && seed % 3 == 0; ++i)
      graph.layers[i].place =
          random.Below(3) == 0 || i == 1 ? Str("größe ", random.Below(3)) : graph.layers[i - 1].place;
    const std::string text = ToToml(graph);
    SCOPED_TRACE(Str("seed ", seed, "\n", text));
    const Graph again = Read(text);
    ExpectSame(graph, again);
    EXPECT_EQ(ToToml(again), text);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(NetworkText, CutAnywhereIsRefusedOrStillANetwork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = ToToml(Growth(seed).Run());
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
      const auto graph = GraphFromToml(std::string_view(text).substr(0, bytes));
      EXPECT_TRUE(!graph.ok() || Infer(graph.value()).ok());
    }
  }
}

TEST(NetworkText, OfAChainNeedsNoNames) {
  const Graph graph = Read(
      "input = [1, 28, 28]\n"
      "layers = [\n"
      "  {convolution = 20, kernel = 5, name = \"conv1\"},\n"
      "  {max-pool = 2},\n"
      "  {dense = 500, activation = \"relu\"},\n"
      "  {dropout = 0.5},\n"
      "  {dense = 10},\n"
      "]\n");
  Graph expected({1, 28, 28});
  int layer = expected.Convolution(0, 20, 5, 1, 0, "conv1");
  layer = expected.MaxPool(layer, 2, 2);
  layer = expected.Relu(expected.Dense(layer, 500));
  layer = expected.Dense(expected.Dropout(layer, 0.5), 10);
  expected.AddHead(layer);
  ExpectSame(graph, expected);
}

TEST(NetworkText, ListOfTablesIsTheSameAsInlineTables) {
  const Graph graph = Read("input = 4\n[[layers]]\ndense = 3\nactivation = \"tanh\"\n[[layers]]\ndense = 2\n");
  ExpectSame(graph, Read("input = [4]\nlayers = [{dense = 3, activation = \"tanh\"}, {dense = 2}]"));
}

TEST(NetworkText, NameStandsForWhatTheActivationMakesOfTheLayer) {
  const Graph graph = Read(
      "input = [2, 8, 8]\n"
      "layers = [\n"
      "  {convolution = 4, kernel = 3, pad = 1, activation = \"relu\", name = \"a\"},\n"
      "  {convolution = 4, kernel = [1, 3], pad = [0, 1]},\n"
      "  {batch-norm = true, name = \"b\"},\n"
      "  {sum = [\"a\", \"b\"], activation = \"relu\"},\n"
      "  {max-pool = 3, stride = 2, ceil = true, from = \"a\", name = \"side\"},\n"
      "  {dense = 3, name = \"aux\", head = 0.3},\n"
      "  {dense = 3, from = \"b\"},\n"
      "]\n");
  EXPECT_EQ(graph.layers[2].op, Op::kRelu);
  EXPECT_EQ(graph.layers[5].inputs, (std::vector{2, 4}));
  EXPECT_EQ(graph.layers[7].inputs, std::vector{2});
  EXPECT_EQ(graph.layers[3].kernel, (Pair{1, 3}));
  EXPECT_EQ(graph.layers[3].pad_end, (Pair{0, 1}));
  ASSERT_EQ(graph.heads.size(), 2u);
  EXPECT_EQ(graph.heads[0].layer, 9);
  EXPECT_EQ(graph.heads[0].weight, 1);
  EXPECT_EQ(graph.heads[1].layer, 8);
  EXPECT_EQ(graph.heads[1].weight, 0.3);
}

TEST(NetworkText, PlaceIsOfTheLayersFromThereOn) {
  const Graph graph = Read(
      "input = [4]\nlayers = [{dense = 3, activation = \"tanh\", place = \"a\"}, {dense = 4},\n"
      "{dense = 2, place = \"b\"}]");
  ASSERT_EQ(graph.layers.size(), 5u);
  EXPECT_EQ(graph.layers[0].place, "");
  for (const std::size_t layer : {1, 2, 3}) EXPECT_EQ(graph.layers[layer].place, "a");
  EXPECT_EQ(graph.layers[4].place, "b");
  Graph partly = graph;
  partly.layers[3].place = "";
  EXPECT_NE(Infer(partly).error().text.find("it has no place"), std::string::npos);
}

TEST(NetworkText, LeavesSizesToTheDataWhereAsked) {
  const std::string_view text =
      "input = \"data\"\nlayers = [{dense = 4}, {dense = \"input\"}, {dense = \"classes\"}]\n";
  const Graph graph = Read(text, {.input = {3, 5, 2}, .classes = 7});
  EXPECT_EQ(graph.input, (Shape{3, 5, 2}));
  EXPECT_EQ(graph.layers[2].outputs, 30);
  EXPECT_EQ(graph.layers[3].outputs, 7);
  EXPECT_NE(Refusal(text).find("line 1: input = \"data\""), std::string::npos);
  EXPECT_NE(Refusal(text, {.input = {3}}).find("line 2: dense = \"classes\""), std::string::npos);
}

TEST(NetworkText, RefusalsNameTheLineAndWhatWasMeant) {
  const auto with = [](std::string_view layers) { return Str("input = [1, 8, 8]\nlayers = [\n", layers, "\n]\n"); };
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"", {"input is missing"}},
      {"input = [1]\n", {"layers = [ … ] is missing"}},
      {"inputs = [1]\n", {"line 1", "'inputs'", "did you mean input?"}},
      {"input = [1, 2, 3, 4]\nlayers = []", {"line 1", "1 to 3 whole numbers"}},
      {"input = [1]\ntarget = \"labels\"\nlayers = []", {"line 2", "did you mean label?"}},
      {with("{convolutoin = 3},"), {"line 3", "did you mean convolution?"}},
      {with("{},"), {"line 3", "which layer is this?", "global-average-pool"}},
      {with("{dense = 3, relu = true},"), {"line 3", "dense and relu"}},
      {with("{dense = 3},\n{dense = 3, strid = 2}"), {"line 4", "'strid'", "unknown to the layer dense"}},
      {with("{convolution = 3, strid = 2},"), {"did you mean stride?"}},
      {with("{convolution = 3, kernel = [1, 2, 3]},"), {"line 3", "kernel", "[vertical, horizontal]"}},
      {with("{dense = true},"), {"line 3", "dense: expected a whole number"}},
      {with("{tanh = 3},"), {"line 3", "tanh: expected true"}},
      {with("{dense = 3, activation = \"rely\"},"), {"did you mean relu?"}},
      {with("{dense = 3, name = \"one\"},\n{sum = [\"one\", \"onne\"]}"), {"line 4", "'onne'", "did you mean one?"}},
      {with("{dense = 3, name = \"one\"},\n{dense = 3, name = \"one\"}"), {"line 4", "taken"}},
      {with("{dense = 3},\n\n{max-pool = 2},\n{dense = 1}"), {"expected an image", "line 5"}},
      {with("{convolution = 3, kernel = 9},"), {"larger than its input", "line 3"}},
      {with("{dense = 3, head = \"x\"},"), {"head: expected a number"}},
      {with("{dense = 3},\n{dense = 3, place = \"b\"},"), {"line 4", "'b'", "at the first layer, too"}},
      {with("{dense = 3, place = 1},"), {"line 3", "who holds it"}},
      {with("{dense = 3},\n7"), {"line 4", "expected a layer"}},
      {with("{dense = 3"), {"line 3"}},
      {"input = [1]\n[,[layers]]\n", {"line 2", "','"}},
      {"input = [1]\nlayers = [\n}]", {"line 3", "value"}},
      {"# ¢\ninput = [1]\nlayers = [{dense\u00a2 = 1}]", {"line 3", "in double quotes"}},
      {with("{dense = 3, name = 'größe'}"), {"line 3", "double quotes"}},
      {with("{dense = 3, name = \"gr\xf6\"}"), {"line 3", "UTF-8"}},
      {with("{dense = 3, name = \"\"\"x\"\"\"}"), {"line 3", "three quotes"}},
      {Str("heads = []\n", with("{dense = 3, head = 1}")), {"not both"}},
      {Str("heads = []\n", with("{dense = 3}")), {"no head"}},
      {Str("heads = [{layer = \"dense1\", weight = 1}, {layer = \"dense1\", weight = 2}]\n", with("{dense = 3}")),
       {"head twice"}},
      {Str("heads = [{layer = \"dense1\", wait = 1}]\n", with("{dense = 3}")), {"line 1", "a head"}},
      {std::string(kMostTextBytes + 1, '\n'), {"bytes of text"}},
  };
  for (const auto& [text, pieces] : cases)
    for (const std::string& piece : pieces) {
      const std::string refusal = Refusal(text);
      EXPECT_NE(refusal.find(piece), std::string::npos) << "'" << piece << "' is not in: " << refusal;
    }
}

TEST(NetworkText, TooManyLayersAreRefusedBeforeTheyAreMade) {
  std::string text = "input = [1]\nlayers = [";
  for (std::size_t i = 0; i < kMostLayers; ++i) text += "{tanh=true},";
  EXPECT_NE(Refusal(text + "]").find("at most"), std::string::npos);
}

}  // namespace
}  // namespace freshet::model::network
