#include "model/network/zoo_networks.h"

namespace freshet::model::network::zoo {
namespace {

int ConvolutionRelu(Graph& graph, int from, std::int64_t outputs, std::int64_t kernel, const std::string& name,
                    std::int64_t stride = 1) {
  return graph.Relu(graph.Convolution(from, outputs, kernel, stride, kernel / 2, name));
}

// Channels of the four branches of a module, and of the 1 × 1 convolutions that narrow the input of two of them.
struct Module {
  std::string name;
  std::int64_t ones, reduce3, threes, reduce5, fives, pooled;
};

int Inception(Graph& graph, int from, const Module& m) {
  const std::string name = "inception_" + m.name;
  const int ones = ConvolutionRelu(graph, from, m.ones, 1, name + "/1x1");
  const int reduce3 = ConvolutionRelu(graph, from, m.reduce3, 1, name + "/3x3_reduce");
  const int threes = ConvolutionRelu(graph, reduce3, m.threes, 3, name + "/3x3");
  const int reduce5 = ConvolutionRelu(graph, from, m.reduce5, 1, name + "/5x5_reduce");
  const int fives = ConvolutionRelu(graph, reduce5, m.fives, 5, name + "/5x5");
  const int pool = graph.MaxPool(from, 3, 1, 1, false, name + "/pool");
  const int pooled = ConvolutionRelu(graph, pool, m.pooled, 1, name + "/pool_proj");
  return graph.Concat({ones, threes, fives, pooled}, name + "/output");
}

void Auxiliary(Graph& graph, int from, std::int64_t classes, const std::string& name) {
  int at = graph.AveragePool(from, 5, 3, 0, false, name + "/pool");
  at = ConvolutionRelu(graph, at, 128, 1, name + "/conv");
  at = graph.Dropout(graph.Relu(graph.Dense(at, 1024, name + "/fc")), 0.7);
  graph.AddHead(graph.Dense(at, classes, name + "/scores"), 0.3);
}

}  // namespace

Graph GoogLeNet(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  Graph graph(input);
  int at = ConvolutionRelu(graph, 0, 64, 7, "conv1", 2);
  at = Lrn(graph, graph.MaxPool(at, 3, 2, 0, true, "pool1"), options, "norm1");
  at = ConvolutionRelu(graph, ConvolutionRelu(graph, at, 64, 1, "conv2_reduce"), 192, 3, "conv2");
  at = graph.MaxPool(Lrn(graph, at, options, "norm2"), 3, 2, 0, true, "pool2");
  at = Inception(graph, at, {"3a", 64, 96, 128, 16, 32, 32});
  at = Inception(graph, at, {"3b", 128, 128, 192, 32, 96, 64});
  at = graph.MaxPool(at, 3, 2, 0, true, "pool3");
  const int a = at = Inception(graph, at, {"4a", 192, 96, 208, 16, 48, 64});
  at = Inception(graph, at, {"4b", 160, 112, 224, 24, 64, 64});
  at = Inception(graph, at, {"4c", 128, 128, 256, 24, 64, 64});
  const int d = at = Inception(graph, at, {"4d", 112, 144, 288, 32, 64, 64});
  at = Inception(graph, at, {"4e", 256, 160, 320, 32, 128, 128});
  at = graph.MaxPool(at, 3, 2, 0, true, "pool4");
  at = Inception(graph, at, {"5a", 256, 160, 320, 32, 128, 128});
  at = Inception(graph, at, {"5b", 384, 192, 384, 48, 128, 128});
  at = graph.Dropout(graph.Plain(Op::kGlobalAveragePool, at, "pool5"), Dropout(options, 0.4));
  graph.AddHead(0);  // the answer comes first; its layer is made last
  if (options.auxiliary) {
    Auxiliary(graph, a, classes, "loss1");
    Auxiliary(graph, d, classes, "loss2");
  }
  graph.heads[0].layer = graph.Dense(at, classes, "scores");
  return graph;
}

}  // namespace freshet::model::network::zoo
