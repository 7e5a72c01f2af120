#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/network/graph.h"

namespace freshet::model::network {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Shape kImage{6, 8, 9}, kSequence{5, 4}, kFeatures{7};

// A graph that is one layer, with its head there.
Graph One(const Shape& input, Layer layer) {
  Graph graph(input);
  if (layer.name.empty()) layer.name = "it";
  if (layer.inputs.empty()) layer.inputs = {0};
  graph.AddHead(graph.Add(std::move(layer)));
  return graph;
}

// A right graph (dense "a", dense "b" over it, head there) that `spoil` makes
// wrong.
template <class Spoil>
Graph Spoilt(const Spoil& spoil) {
  Graph graph(kFeatures);
  graph.AddHead(graph.Dense(graph.Dense(0, 3, "a"), 4, "b"));
  spoil(graph);
  return graph;
}

struct Wrong {
  const char* name;
  Graph graph;
  const char* says;
};

void ExpectRefused(const std::vector<Wrong>& table) {
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.name);
    const auto facts = Infer(wrong.graph);
    ASSERT_FALSE(facts.ok());
    EXPECT_EQ(facts.error().code, Code::kInvalid);
    EXPECT_NE(facts.error().text.find(wrong.says), std::string::npos) << facts.error().text;
    EXPECT_EQ(facts.error().text.rfind("network", 0), 0u) << facts.error().text;
  }
}

TEST(Infer, RefusesGraphsThatDoNotHangTogether) {
  Graph long_graph(kFeatures);
  for (std::size_t i = 0; i < kMostLayers; ++i) long_graph.Relu(static_cast<int>(i));
  long_graph.AddHead(1);
  ExpectRefused({
      {"no layers", Graph(), "layer 0 must be the input"},
      {"the first is no input", Spoilt([](Graph& g) { g.layers[0].op = Op::kRelu; }), "layer 0 must be the input"},
      {"too many layers", long_graph, "10001 layers; at most 10000"},
      {"no name", Spoilt([](Graph& g) { g.layers[1].name = ""; }), "the name is empty or taken"},
      {"a name twice", Spoilt([](Graph& g) { g.layers[2].name = "a"; }), "the name is empty or taken"},
      {"a second input", Spoilt([](Graph& g) { g.layers[2].op = Op::kInput; }), "only layer 0 can be the input"},
      {"reads nothing", Spoilt([](Graph& g) { g.layers[2].inputs = {}; }), "0 inputs; expected 1"},
      {"reads two", Spoilt([](Graph& g) {
         g.layers[2].inputs = {0, 1};
       }),
       "2 inputs; expected 1"},
      {"reads itself", Spoilt([](Graph& g) { g.layers[2].inputs = {2}; }), "reads layer 2, which does not come before"},
      {"reads a later one", Spoilt([](Graph& g) { g.layers[1].inputs = {2}; }), "'a' (dense): reads layer 2"},
      {"reads a negative", Spoilt([](Graph& g) { g.layers[1].inputs = {-1}; }), "reads layer -1"},
      {"joins nothing", Spoilt([](Graph& g) { g.Concat({}, "c"); }), "0 inputs; expected 1 to 1000"},
      {"adds too many", Spoilt([](Graph& g) { g.Sum(std::vector<int>(1001, 0), "c"); }), "1001 inputs; expected 1 to"},
  });
}

TEST(Infer, RefusesExtentsOutOfBounds) {
  constexpr std::int64_t kMany = 1 << 12;
  ExpectRefused({
      {"no extent", One({}, {.op = Op::kRelu}), "has 0 extents; 1 to 3"},
      {"four extents", One({2, 2, 2, 2}, {.op = Op::kRelu}), "has 4 extents; 1 to 3"},
      {"zero", One({3, 0, 8}, {.op = Op::kRelu}), "its output would be 3 x 0 x 8"},
      {"negative", One({-3}, {.op = Op::kRelu}), "its output would be -3"},
      {"one is huge", One({std::int64_t{1} << 40}, {.op = Op::kRelu}), "its output would be 1099511627776"},
      {"the product is", One({kMany, kMany, kMany}, {.op = Op::kRelu}), "4096 x 4096 x 4096, is too large"},
      {"a flat huge one", One({kMany, kMany, 2}, {.op = Op::kFlatten}), "its output would be 33554432"},
      {"weights", One({1 << 20}, {.op = Op::kDense, .outputs = 1 << 20}), "it.weight, 1048576 x 1048576, are too lar"},
      {"vectors of words", One({3}, {.op = Op::kEmbedding, .outputs = 4096, .vocabulary = 1 << 24}), "are too large"},
  });
}

TEST(Infer, RefusesLayersThatMakeNoSense) {
  ExpectRefused({
      {"no units", One(kFeatures, {.op = Op::kDense}), "outputs 0; expected 1 to 16777216"},
      {"negative units", One(kFeatures, {.op = Op::kDense, .outputs = -2}), "outputs -2"},
      {"too many units", One(kFeatures, {.op = Op::kDense, .outputs = 1 << 25}), "outputs 33554432"},
      {"steps of features", One(kFeatures, {.op = Op::kDense, .outputs = 2, .per_step = true}),
       "expected a sequence, "},
      {"steps of an image", One(kImage, {.op = Op::kDense, .outputs = 2, .per_step = true}), "got 6 x 8 x 9"},
      {"lrn of features", One(kFeatures, {.op = Op::kLrn}), "expected an image, got 7"},
      {"even lrn", One(kImage, {.op = Op::kLrn, .size = 4}), "size 4; expected an odd number"},
      {"no lrn", One(kImage, {.op = Op::kLrn, .size = -1}), "size -1; expected an odd number"},
      {"negative alpha", One(kImage, {.op = Op::kLrn, .alpha = -1}), "alpha and beta must be 0 or more"},
      {"alpha is no number", One(kImage, {.op = Op::kLrn, .alpha = kNan}), "alpha and beta must be 0 or more"},
      {"beta", One(kImage, {.op = Op::kLrn, .beta = -0.5}), "alpha and beta must be 0 or more"},
      {"k", One(kImage, {.op = Op::kLrn, .k = 0}), "k above 0"},
      {"norm of sequences", One(kSequence, {.op = Op::kBatchNorm}), "of sequences is not known here"},
      {"epsilon", One(kImage, {.op = Op::kBatchNorm, .epsilon = 0}), "epsilon must be above 0"},
      {"epsilon is no number", One(kImage, {.op = Op::kBatchNorm, .epsilon = kNan}), "epsilon must be above 0"},
      {"no momentum", One(kImage, {.op = Op::kBatchNorm, .momentum = 0}), "momentum above 0 and at most 1"},
      {"momentum", One(kImage, {.op = Op::kBatchNorm, .momentum = 1.5}), "momentum above 0 and at most 1"},
      {"drops all", One(kFeatures, {.op = Op::kDropout, .rate = 1}), "rate 1; expected 0 or more and less than 1"},
      {"drops less than none", One(kFeatures, {.op = Op::kDropout, .rate = -0.5}), "rate -0.5"},
      {"rate is no number", One(kFeatures, {.op = Op::kDropout, .rate = kNan}), "expected 0 or more and less than 1"},
      {"slope", One(kFeatures, {.op = Op::kRelu, .slope = -1}), "slope -1; expected 0 to 1"},
      {"steep slope", One(kFeatures, {.op = Op::kRelu, .slope = 2}), "slope 2; expected 0 to 1"},
      {"global pool", One(kSequence, {.op = Op::kGlobalAveragePool}), "expected an image, got 5 x 4"},
      {"words of an image", One(kImage, {.op = Op::kEmbedding, .outputs = 2, .vocabulary = 9}), "whole numbers, got 6"},
      {"no words", One(kFeatures, {.op = Op::kEmbedding, .outputs = 2}), "vocabulary 0; expected 1 to 16777216"},
      {"empty words", One(kFeatures, {.op = Op::kEmbedding, .vocabulary = 3}), "outputs 0"},
      {"lstm of features", One(kFeatures, {.op = Op::kLstm, .outputs = 2}), "expected a sequence (steps, features)"},
      {"lstm without state", One(kSequence, {.op = Op::kLstm}), "outputs 0"},
      {"gru of an image", One(kImage, {.op = Op::kGru, .outputs = 2}), "got 6 x 8 x 9"},
  });
}

TEST(Infer, RefusesWindowsThatDoNotFit) {
  const auto convolution = [](auto set) {
    Layer layer{.op = Op::kConvolution, .outputs = 4, .kernel = {3, 3}};
    set(layer);
    return One(kImage, layer);
  };
  const auto pool = [](auto set) {
    Layer layer{.op = Op::kMaxPool, .kernel = {3, 3}};
    set(layer);
    return One(kImage, layer);
  };
  constexpr const char* kBounds = "kernel, stride and dilation must be 1 to 4096, pad 0 to 4096";
  ExpectRefused({
      {"features", One(kFeatures, {.op = Op::kConvolution, .outputs = 4}), "expected an image (channels, height, wi"},
      {"sequence", One(kSequence, {.op = Op::kMaxPool}), "expected an image (channels, height, width), got 5 x 4"},
      {"no outputs", convolution([](Layer& l) { l.outputs = 0; }), "outputs 0"},
      {"no kernel", convolution([](Layer& l) {
         l.kernel = {3, 0};
       }),
       kBounds},
      {"large kernel", convolution([](Layer& l) {
         l.kernel = {5000, 1};
       }),
       kBounds},
      {"no stride", convolution([](Layer& l) {
         l.stride = {0, 1};
       }),
       kBounds},
      {"no dilation", convolution([](Layer& l) {
         l.dilation = {1, 0};
       }),
       kBounds},
      {"negative pad", convolution([](Layer& l) {
         l.pad = {-1, 0};
       }),
       kBounds},
      {"negative pad at the end", convolution([](Layer& l) {
         l.pad_end = {0, -1};
       }),
       kBounds},
      {"ceil", convolution([](Layer& l) { l.ceil = true; }), "convolutions know no ceil mode"},
      {"no groups", convolution([](Layer& l) { l.groups = 0; }), "0 groups do not divide"},
      {"groups of channels", convolution([](Layer& l) { l.groups = 4; }), "4 groups do not divide 6 channels and 4 ou"},
      {"groups of outputs", convolution([](Layer& l) { l.groups = 3; }), "3 groups do not divide 6 channels and 4 ou"},
      {"high", convolution([](Layer& l) {
         l.kernel = {9, 3};
       }),
       "the kernel is larger than its input, 6 x 8 x 9"},
      {"wide", convolution([](Layer& l) {
         l.kernel = {3, 10};
       }),
       "the kernel is larger than its input"},
      {"wide holes", convolution([](Layer& l) {
         l.dilation = {4, 4};
       }),
       "the kernel is larger than its input"},
      {"pool without kernel", pool([](Layer& l) {
         l.kernel = {0, 3};
       }),
       kBounds},
      {"pool with holes", pool([](Layer& l) {
         l.dilation = {2, 1};
       }),
       "pools know no dilation"},
      {"pool of padding", pool([](Layer& l) {
         l.pad = {0, 3};
       }),
       "the padding must be smaller than the kernel"},
      {"pool of end", pool([](Layer& l) {
         l.pad_end = {3, 0};
       }),
       "the padding must be smaller than the kernel"},
      {"high pool", pool([](Layer& l) {
         l.kernel = {9, 1};
       }),
       "the kernel is larger than its input"},
  });
}

TEST(Infer, RefusesJoinsAndHeadsThatDoNotMatch) {
  const auto images = [](auto join) {
    Graph graph(kImage);
    graph.Convolution(0, 6, 3, 1, 0, "small");
    graph.Plain(Op::kFlatten, 0, "flat");
    graph.AddHead(join(graph));
    return graph;
  };
  const auto next = [](Shape input, auto build) {
    Graph graph(std::move(input));
    graph.target = Target::kNext;
    build(graph);
    graph.AddHead(static_cast<int>(graph.layers.size()) - 1);
    return graph;
  };
  ExpectRefused({
      {"joins sizes", images([](Graph& g) {
         return g.Concat({0, 1});
       }),
       "cannot join 6 x 8 x 9 and 6 x 6 x 7"},
      {"joins kinds", images([](Graph& g) {
         return g.Concat({0, 2});
       }),
       "cannot join 6 x 8 x 9 and 432"},
      {"adds sizes", images([](Graph& g) {
         return g.Sum({0, 1});
       }),
       "cannot add 6 x 8 x 9 and 6 x 6 x 7"},
      {"adds kinds", images([](Graph& g) {
         return g.Sum({2, 0});
       }),
       "cannot add 432 and 6 x 8 x 9"},
      {"no head", Spoilt([](Graph& g) { g.heads.clear(); }), "it has no head"},
      {"head beyond", Spoilt([](Graph& g) { g.heads[0].layer = 3; }), "head at layer 3 of 3"},
      {"head before", Spoilt([](Graph& g) { g.heads[0].layer = -1; }), "head at layer -1 of 3"},
      {"heads differ", Spoilt([](Graph& g) { g.AddHead(1); }), "'a' (dense): this head's size differs"},
      {"negative weight", Spoilt([](Graph& g) { g.heads[0].weight = -1; }), "the weight of this head is -1"},
      {"weight is no number", Spoilt([](Graph& g) { g.heads[0].weight = kNan; }), "the weight of this head is nan"},
      {"heavy", Spoilt([](Graph& g) { g.heads[0].weight = 1e9; }), "the weight of this head is 1e+09"},
      {"not the input", Spoilt([](Graph& g) { g.target = Target::kInput; }),
       "target is the input, 7, but the head gives"},
      {"next of features", next({7}, [](Graph& g) { g.Dense(0, 7); }), "target next: expected a sequence of symbols"},
      {"next of vectors", next({7, 3}, [](Graph& g) { g.Relu(0); }), "target next: expected a sequence of symbols"},
      {"next of another length",
       next({7},
            [](Graph& g) {
              const int words = g.Add({.op = Op::kEmbedding, .inputs = {0}, .outputs = 3, .vocabulary = 5});
              g.Concat({words, words});
            }),
       "target next: expected a sequence of symbols"},
  });
}

// Sizes by counting: a window counts when it begins inside (ceil) or lies
// inside (floor).
std::int64_t CountWindows(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                          std::int64_t pad_end, std::int64_t dilation, bool ceil) {
  std::int64_t windows = 0;
  const std::int64_t span = dilation * (kernel - 1) + 1;
  for (std::int64_t at = -pad;; at += stride, ++windows) {
    if (at + span <= extent + pad_end) continue;
    const bool begins_inside = at < extent, last_one_ended_early = at - stride + span < extent + pad_end;
    return windows + (ceil && windows > 0 && begins_inside && last_one_ended_early ? 1 : 0);
  }
}

TEST(Infer, CountsWindowsAsSlidingThemWould) {
  for (std::int64_t extent = 3; extent < 12; ++extent)
    for (std::int64_t kernel = 1; kernel <= 3; ++kernel)
      for (std::int64_t stride = 1; stride <= 4; ++stride)
        for (std::int64_t pad = 0; pad < kernel; ++pad)
          for (std::int64_t pad_end = 0; pad_end < kernel; ++pad_end)
            for (const bool ceil : {false, true}) {
              const auto facts = Infer(One({2, extent, 20}, {.op = Op::kAveragePool,
                                                             .kernel = {kernel, 1},
                                                             .stride = {stride, 1},
                                                             .pad = {pad, 0},
                                                             .pad_end = {pad_end, 0},
                                                             .ceil = ceil}));
              ASSERT_TRUE(facts.ok()) << facts.error().text;
              const Shape expected{2, CountWindows(extent, kernel, stride, pad, pad_end, 1, ceil), 20};
              ASSERT_EQ(facts.value()[1].shape, expected)
                  << Str(extent, " k", kernel, " s", stride, " p", pad, ",", pad_end, ceil ? " ceil" : "");
            }
  const auto holes = Infer(One(kImage, {.op = Op::kConvolution,
                                        .outputs = 5,
                                        .kernel = {3, 2},
                                        .stride = {1, 3},
                                        .pad = {2, 0},
                                        .pad_end = {0, 1},
                                        .dilation = {2, 4}}));
  EXPECT_EQ(holes.value()[1].shape,
            (Shape{5, CountWindows(8, 3, 1, 2, 0, 2, false), CountWindows(9, 2, 3, 0, 1, 4, false)}));
}

TEST(Infer, NamesAndSizesTheBlocksOfEveryOperation) {
  const auto blocks = [](const Shape& input, Layer layer) {
    const std::vector<Facts> facts = Infer(One(input, std::move(layer))).value();
    std::string text;
    for (const optimize::Block& block : facts[1].blocks)
      text += Str(text.empty() ? "" : " ", block.name, ":", block.rows, "x", block.width, block.follow > 0 ? "*" : "");
    return text;
  };
  EXPECT_EQ(blocks(kImage, {.op = Op::kDense, .outputs = 3}), "it.weight:3x432 it.bias:1x3");
  EXPECT_EQ(blocks(kSequence, {.op = Op::kDense, .outputs = 3, .bias = false, .per_step = true}), "it.weight:3x4");
  EXPECT_EQ(blocks(kImage, {.op = Op::kConvolution, .outputs = 4, .kernel = {3, 5}, .groups = 2}),
            "it.weight:4x45 it.bias:1x4");
  EXPECT_EQ(blocks(kImage, {.op = Op::kBatchNorm}), "it.scale:1x6 it.shift:1x6 it.mean:1x6* it.variance:1x6*");
  EXPECT_EQ(blocks(kFeatures, {.op = Op::kEmbedding, .outputs = 2, .vocabulary = 9}), "it.weight:9x2");
  EXPECT_EQ(blocks(kSequence, {.op = Op::kLstm, .outputs = 3}), "it.weight:12x4 it.recurrent:12x3 it.bias:4x3");
  EXPECT_EQ(blocks(kSequence, {.op = Op::kGru, .outputs = 3}), "it.weight:9x4 it.recurrent:9x3 it.bias:4x3");
  for (const Op op : {Op::kRelu, Op::kTanh, Op::kSigmoid, Op::kSoftmax, Op::kDropout, Op::kFlatten, Op::kLrn,
                      Op::kMaxPool, Op::kAveragePool, Op::kGlobalAveragePool, Op::kConcat, Op::kSum})
    EXPECT_EQ(blocks(kImage, {.op = op}), "") << NameOf(op);
}

}  // namespace
}  // namespace freshet::model::network
