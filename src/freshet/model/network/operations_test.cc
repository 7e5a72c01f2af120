// Every operation of the engine against the reference: outputs, and gradients against central differences.

#include <gtest/gtest.h>

#include <functional>

#include "model/network/gradients_testing.h"

namespace freshet::model::network {
namespace {

// Adds what is to be tested behind a layer and returns its number.
using Piece = std::function<int(Graph&, int from)>;
struct Operation {
  std::string name;
  Piece piece;
};

void ExpectRight(const Graph& graph, std::size_t rows, std::uint64_t seed, const How& how = {}) {
  const Case made(graph, rows, seed);
  ASSERT_GT(made.margin, 1e-5);
  optimize::HeapMemory memory;
  How predicting = how;
  predicting.training = false;
  ExpectRightOutputs(made, false, Pipeline(made, predicting).Run(memory), 1e-5);
  const Outcome outcome = Pipeline(made, how).Run(memory);
  if (!outcome.compiled) return;
  ExpectRightOutputs(made, true, outcome, 1e-5);
  GradientCheck check(made, outcome);
  check.ExpectElements(5, 1e-3);
  base::Random random(seed, "directions");
  check.ExpectDirections(random, 1e-3);
}

// Alone between input and head; and between layers of the same kind, which bring their own layouts in memory.
void ExpectRightAlone(const Shape& input, const Operation& operation,
                      const std::vector<std::size_t>& batches = {1, 2, 7}) {
  for (const std::size_t rows : batches) {
    SCOPED_TRACE(Str(operation.name, ", alone, ", rows, " rows"));
    Graph graph(input);
    graph.AddHead(operation.piece(graph, 0));
    ExpectRight(graph, rows, rows);
  }
}

void ExpectRightBetweenConvolutions(std::int64_t channels, const Operation& operation) {
  for (const std::size_t rows : {1, 2, 7}) {
    SCOPED_TRACE(Str(operation.name, ", between convolutions of ", channels, " channels, ", rows, " rows"));
    Graph graph({2, 6, 5});
    const int before = graph.Convolution(0, channels, 1);
    const int it = operation.piece(graph, before);
    graph.AddHead(graph.Convolution(it, 5, 1));
    ExpectRight(graph, rows, rows + 10);
  }
}

void ExpectRightImages(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    ExpectRightAlone({6, 7, 5}, operation);
    ExpectRightAlone({8, 6, 6}, operation, {2});
    ExpectRightBetweenConvolutions(6, operation);
    ExpectRightBetweenConvolutions(16, operation);
  }
}

Operation Of(std::string name, const Layer& layer) {
  return {std::move(name), [layer](Graph& graph, int from) {
            Layer made = layer;
            made.inputs = {from};
            return graph.Add(made);
          }};
}

TEST(Operations, ConvolutionIsRight) {
  ExpectRightImages({
      Of("one by one", {.op = Op::kConvolution, .outputs = 7}),
      Of("padded", {.op = Op::kConvolution, .outputs = 8, .kernel = {3, 3}, .pad = {1, 1}, .pad_end = {1, 1}}),
      Of("no bias", {.op = Op::kConvolution, .outputs = 3, .bias = false, .kernel = {2, 3}}),
      Of("strides", {.op = Op::kConvolution, .outputs = 5, .kernel = {3, 2}, .stride = {2, 3}}),
      Of("uneven padding",
         {.op = Op::kConvolution, .outputs = 4, .kernel = {3, 3}, .stride = {2, 1}, .pad = {2, 0}, .pad_end = {0, 1}}),
      Of("holes", {.op = Op::kConvolution,
                   .outputs = 9,
                   .kernel = {3, 2},
                   .pad = {1, 0},
                   .pad_end = {1, 2},
                   .dilation = {2, 3}}),
      Of("two groups", {.op = Op::kConvolution, .outputs = 6, .kernel = {3, 3}, .pad = {1, 1}, .groups = 2}),
      Of("large kernel",
         {.op = Op::kConvolution, .outputs = 2, .kernel = {5, 5}, .stride = {3, 3}, .pad = {2, 2}, .pad_end = {2, 2}}),
  });
  const auto each_its_own = [](std::int64_t channels) {
    return Of("a group for each channel",
              {.op = Op::kConvolution, .outputs = channels, .kernel = {3, 3}, .pad = {1, 1}, .groups = channels});
  };
  ExpectRightAlone({6, 7, 5}, each_its_own(6));
  ExpectRightBetweenConvolutions(6, each_its_own(6));
  ExpectRightBetweenConvolutions(16, each_its_own(16));
}

// Channels enough for the kernels that are made for real networks, and some that are not quite.
TEST(Operations, WideConvolutionsAreRight) {
  for (const std::int64_t channels : {32, 36})
    for (const std::int64_t kernel : {1, 3}) {
      SCOPED_TRACE(Str(channels, " channels, kernel ", kernel));
      Graph graph({3, 5, 4});
      const int wide = graph.Relu(graph.Convolution(0, channels, 1));
      const int wider = graph.Plain(Op::kBatchNorm, graph.Convolution(wide, 48, kernel, 1, kernel / 2));
      const int apart = graph.Convolution(graph.Sum({wider, graph.Convolution(0, 48, 1)}), 48, 3, 2, 1, "", 48);
      graph.AddHead(graph.Dense(graph.Plain(Op::kLrn, graph.Concat({apart, graph.MaxPool(wide, 3, 2, 1)})), 5));
      ExpectRight(graph, 2, 7);
    }
}

TEST(Operations, PoolsAreRight) {
  std::vector<Operation> operations;
  for (const Op op : {Op::kMaxPool, Op::kAveragePool})
    for (const bool include_padding : {false, true}) {
      if (op == Op::kMaxPool && include_padding) continue;
      const std::string name = Str(NameOf(op), include_padding ? " with padding" : "");
      const auto add = [&](std::string_view what, Layer layer) {
        layer.op = op;
        layer.include_padding = include_padding;
        operations.push_back(Of(Str(name, ", ", what), layer));
      };
      add("overlapping", {.kernel = {3, 3}, .stride = {2, 2}});
      add("a rest is left", {.kernel = {2, 2}, .stride = {3, 4}});
      add("padded", {.kernel = {3, 3}, .stride = {1, 2}, .pad = {1, 1}, .pad_end = {1, 1}});
      add("unevenly padded", {.kernel = {3, 2}, .stride = {2, 2}, .pad = {2, 0}, .pad_end = {0, 1}});
      add("hanging over", {.kernel = {2, 3}, .stride = {2, 2}, .ceil = true});
      add("padded and hanging over",
          {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}, .pad_end = {1, 1}, .ceil = true});
      add("all of it", {.kernel = {6, 5}});
    }
  operations.push_back(Of("global average pool", {.op = Op::kGlobalAveragePool}));
  ExpectRightImages(operations);
}

TEST(Operations, NormalisationsAreRight) {
  ExpectRightImages({
      Of("lrn of five", {.op = Op::kLrn, .alpha = 0.8}),
      Of("lrn of three", {.op = Op::kLrn, .size = 3, .alpha = 2, .beta = 0.5, .k = 2}),
      Of("batch norm", {.op = Op::kBatchNorm, .epsilon = 1e-3}),
  });
  ExpectRightAlone({9}, Of("batch norm of features", {.op = Op::kBatchNorm, .epsilon = 1e-3}));
  ExpectRightAlone({16}, Of("batch norm of features", {.op = Op::kBatchNorm, .epsilon = 1e-3}));
}

std::vector<Operation> Functions() {
  return {Of("relu", {.op = Op::kRelu}),
          Of("leaky", {.op = Op::kRelu, .slope = 0.2}),
          Of("tanh", {.op = Op::kTanh}),
          Of("sigmoid", {.op = Op::kSigmoid}),
          Of("clip", {.op = Op::kClip, .least = -0.5, .most = 0.8}),
          Of("clip above zero", {.op = Op::kClip, .least = 0.1, .most = 0.9}),
          Of("clip below", {.op = Op::kClip, .most = 0.3}),
          Of("hard swish", {.op = Op::kHardSwish}),
          Of("gelu", {.op = Op::kGelu}),
          Of("gelu by tanh", {.op = Op::kGelu, .approximate = true}),
          Of("erf", {.op = Op::kErf}),
          Of("softmax", {.op = Op::kSoftmax}),
          Of("log softmax", {.op = Op::kLogSoftmax}),
          Of("dropout", {.op = Op::kDropout, .rate = 0.4}),
          Of("no dropout", {.op = Op::kDropout, .rate = 0})};
}

TEST(Operations, FunctionsAreRight) {
  ExpectRightImages(Functions());
  for (const Operation& operation : Functions()) {
    ExpectRightAlone({11}, operation);
    ExpectRightAlone({5, 3}, operation);
  }
}

// Where an activation can be computed together with what is before it, the head must not see the difference.
TEST(Operations, FunctionsBehindAnythingAreRight) {
  const std::vector<Operation> befores = {
      Of("convolution", {.op = Op::kConvolution, .outputs = 5, .kernel = {3, 3}}),
      Of("grouped convolution", {.op = Op::kConvolution, .outputs = 8, .kernel = {3, 3}, .groups = 2}),
      Of("dense", {.op = Op::kDense, .outputs = 5}),
      Of("batch norm", {.op = Op::kBatchNorm, .epsilon = 1e-3}),
      Of("sum", {.op = Op::kSum}),
      Of("flatten", {.op = Op::kFlatten}),
  };
  for (const Operation& before : befores)
    for (const Operation& after : Functions())
      for (const bool also_read : {false, true}) {
        SCOPED_TRACE(Str(after.name, " behind ", before.name, also_read ? ", which others read" : ""));
        Graph graph({2, 5, 3});
        const int first = before.piece(graph, graph.Convolution(0, 8, 1));
        const int second = after.piece(graph, first);
        const int head = graph.Dense(second, 3);
        graph.AddHead(also_read ? graph.Sum({head, graph.Dense(first, 3)}) : head);
        ExpectRight(graph, 3, 5);
      }
}

TEST(Operations, DenseIsRight) {
  const Operation plain = Of("dense", {.op = Op::kDense, .outputs = 5});
  const Operation no_bias = Of("dense without bias", {.op = Op::kDense, .outputs = 9, .bias = false});
  for (const Operation& operation : {plain, no_bias}) {
    ExpectRightAlone({7}, operation);
    ExpectRightAlone({16}, operation);
    ExpectRightAlone({3, 5}, operation);
    ExpectRightAlone({3, 4, 5}, operation);
  }
  ExpectRightAlone({4, 6}, Of("per step", {.op = Op::kDense, .outputs = 5, .per_step = true}));
  ExpectRightAlone({4, 6},
                   Of("per step without bias", {.op = Op::kDense, .outputs = 1, .bias = false, .per_step = true}));
}

TEST(Operations, JoinsAreRight) {
  const auto join = [](std::string name, auto add) {
    return Operation{std::move(name), [add](Graph& graph, int from) {
                       const auto branch = [&](std::int64_t outputs) {
                         return graph.Add({.op = Op::kConvolution, .inputs = {from}, .outputs = outputs});
                       };
                       return add(graph, from, branch);
                     }};
  };
  ExpectRightImages({
      join("three together",
           [](Graph& g, int, auto branch) {
             return g.Concat({branch(3), branch(8), branch(5)});
           }),
      join("blocks together",
           [](Graph& g, int, auto branch) {
             return g.Concat({branch(8), branch(16)});
           }),
      join("one alone", [](Graph& g, int, auto branch) { return g.Concat({branch(3)}); }),
      join("twice the same",
           [](Graph& g, int from, auto branch) {
             const int it = branch(8);
             return g.Concat({it, from, it});
           }),
      join("sum of three",
           [](Graph& g, int, auto branch) {
             return g.Sum({branch(6), branch(6), branch(6)});
           }),
      join("one added twice",
           [](Graph& g, int, auto branch) {
             const int a = branch(8), b = branch(8);
             return g.Sum({a, b, a});
           }),
      join("a way around",
           [](Graph& g, int from, auto branch) {
             const int a = branch(9);
             const int b = g.Add({.op = Op::kConvolution, .inputs = {g.Relu(a, 0.1)}, .outputs = 9});
             const int c = g.Plain(Op::kTanh, g.Sum({b, a}));
             return g.Concat({c, from, b});
           }),
  });
  ExpectRightAlone({5}, {"features", [](Graph& g, int from) {
                           const int a = g.Dense(from, 4), b = g.Dense(from, 5);
                           return g.Concat({a, from, g.Sum({b, from, b}), a});
                         }});
  ExpectRightAlone({4, 3}, {"sequences", [](Graph& g, int from) {
                              const int a = g.Add({.op = Op::kDense, .inputs = {from}, .outputs = 3, .per_step = true});
                              return g.Concat({a, from, g.Sum({a, from})});
                            }});
}

TEST(Operations, FlattenIsRight) {
  const Operation beside_itself{"flattened beside itself", [](Graph& g, int from) {
                                  const int flat = g.Plain(Op::kFlatten, from);
                                  const int means = g.Plain(Op::kFlatten, g.Plain(Op::kGlobalAveragePool, from));
                                  const int features = g.Concat({g.Plain(Op::kTanh, flat), means, flat});
                                  return g.Sum({g.Dense(features, 3), g.Dense(from, 3), g.Dense(flat, 3)});
                                }};
  ExpectRightAlone({6, 3, 4}, beside_itself);
  for (const std::int64_t channels : {6, 8}) {
    SCOPED_TRACE(channels);
    ExpectRightAlone({3, 4, 4}, {"behind a convolution", [&](Graph& g, int from) {
                                   return beside_itself.piece(g, g.Convolution(from, channels, 3, 1, 1));
                                 }});
  }
}

TEST(Operations, AffineIsRight) {
  for (const Shape& shape : {Shape{6, 7, 5}, Shape{6, 1, 1}, Shape{1, 1, 1}, Shape{1, 7, 5}, Shape{1, 7, 1}})
    ExpectRightAlone({6, 7, 5}, Of("affine", {.op = Op::kAffine, .shape = shape}));
  for (const std::int64_t channels : {6, 16})
    for (const Shape& shape : {Shape{channels, 6, 5}, Shape{channels, 1, 1}, Shape{1, 1, 1}})
      ExpectRightBetweenConvolutions(channels, Of("affine", {.op = Op::kAffine, .shape = shape}));
  ExpectRightAlone({9}, Of("affine of features", {.op = Op::kAffine, .shape = {9}}));
  ExpectRightAlone({4, 3}, Of("affine of a sequence", {.op = Op::kAffine, .shape = {1, 3}}));
}

TEST(Operations, ProductsAreRight) {
  const auto gate = [](std::string name, bool pooled) {
    return Operation{std::move(name), [pooled](Graph& g, int from) {
                       const int whole = g.Plain(Op::kSigmoid, g.Convolution(from, 6, 1));
                       const int by = pooled ? g.Plain(Op::kGlobalAveragePool, whole) : whole;
                       return g.Add({.op = Op::kProduct, .inputs = {g.Convolution(from, 6, 1), by}});
                     }};
  };
  for (const Operation& operation : {gate("of two", false), gate("by a number for each channel", true)}) {
    ExpectRightAlone({6, 7, 5}, operation);
    ExpectRightBetweenConvolutions(16, operation);
  }
  ExpectRightAlone({5}, {"of one with itself", [](Graph& g, int from) {
                           return g.Add({.op = Op::kProduct, .inputs = {from, from}});
                         }});
}

TEST(Operations, ArrangementsAreRight) {
  for (const Shape& order :
       {Shape{0, 1, 2}, Shape{0, 2, 1}, Shape{1, 0, 2}, Shape{1, 2, 0}, Shape{2, 0, 1}, Shape{2, 1, 0}}) {
    SCOPED_TRACE(Str(order[0], order[1], order[2]));
    const Operation turned = Of("transpose", {.op = Op::kTranspose, .shape = order});
    ExpectRightAlone({6, 7, 5}, turned);
    ExpectRightAlone({3, 4, 4}, {"behind a convolution", [&](Graph& g, int from) {
                                   return g.Dense(turned.piece(g, g.Convolution(from, 8, 3, 1, 1)), 4);
                                 }});
  }
  ExpectRightAlone({4, 3}, Of("transpose of a sequence", {.op = Op::kTranspose, .shape = {1, 0}}));
  ExpectRightAlone({4, 3},
                   {"reshaped for a convolution", [](Graph& g, int from) {
                      return g.Convolution(g.Add({.op = Op::kReshape, .inputs = {from}, .shape = {2, 3, 2}}), 5, 2);
                    }});
  ExpectRightAlone({3, 4, 4}, {"reshaped behind one", [](Graph& g, int from) {
                                 const int image = g.Convolution(from, 8, 3, 1, 1);
                                 const int steps = g.Add({.op = Op::kReshape, .inputs = {image}, .shape = {8, 16}});
                                 return g.Add({.op = Op::kDense, .inputs = {steps}, .outputs = 3, .per_step = true});
                               }});
}

TEST(Operations, EmbeddingIsRight) {
  for (const std::size_t rows : {1, 2, 7}) {
    SCOPED_TRACE(rows);
    Graph graph({5});
    const int words = graph.Add({.op = Op::kEmbedding, .inputs = {0}, .outputs = 3, .vocabulary = 6});
    graph.AddHead(graph.Dense(graph.Plain(Op::kTanh, words), 4));
    ExpectRight(graph, rows, rows);
  }
}

TEST(Operations, RecurrentLayersAreRight) {
  for (const Op op : {Op::kLstm, Op::kGru})
    for (const bool sequence : {false, true}) {
      const Operation operation =
          Of(Str(NameOf(op), sequence ? " sequence" : ""), {.op = op, .outputs = 5, .sequence = sequence});
      ExpectRightAlone({4, 3}, operation);
      ExpectRightAlone({1, 6}, operation);
      ExpectRightAlone({7, 8}, Of("wide", {.op = op, .outputs = 16, .sequence = sequence}));
    }
  for (const std::size_t rows : {1, 2, 7}) {
    SCOPED_TRACE(Str("stacked, ", rows, " rows"));
    Graph graph({6});
    const int words = graph.Add({.op = Op::kEmbedding, .inputs = {0}, .outputs = 4, .vocabulary = 9});
    const int below = graph.Add({.op = Op::kLstm, .inputs = {words}, .outputs = 5, .sequence = true});
    const int above = graph.Add({.op = Op::kGru, .inputs = {below}, .outputs = 5, .sequence = true});
    const int both = graph.Sum({above, below});
    graph.AddHead(graph.Add({.op = Op::kDense, .inputs = {both}, .outputs = 9, .per_step = true}));
    ExpectRight(graph, rows, rows);
  }
}

}  // namespace
}  // namespace freshet::model::network
