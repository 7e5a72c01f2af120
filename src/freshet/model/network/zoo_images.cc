#include "model/network/zoo_networks.h"

namespace freshet::model::network::zoo {

Graph LeNet5(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  Graph graph(input);
  int at = graph.MaxPool(graph.Convolution(0, 20, 5, 1, 0, "conv1"), 2, 2, 0, false, "pool1");
  at = graph.MaxPool(graph.Convolution(at, 50, 5, 1, 0, "conv2"), 2, 2, 0, false, "pool2");
  at = graph.Relu(graph.Dense(at, Hidden(options, 500), "ip1"));
  if (const double rate = Dropout(options, 0); rate > 0) at = graph.Dropout(at, rate);
  graph.AddHead(graph.Dense(at, classes, "ip2"));
  return graph;
}

Graph CifarQuick(const Shape& input, std::int64_t classes, const ZooOptions&) {
  Graph graph(input);
  int at = graph.Relu(graph.MaxPool(graph.Convolution(0, 32, 5, 1, 2, "conv1"), 3, 2, 0, true, "pool1"));
  at = graph.AveragePool(graph.Relu(graph.Convolution(at, 32, 5, 1, 2, "conv2")), 3, 2, 0, true, "pool2");
  at = graph.AveragePool(graph.Relu(graph.Convolution(at, 64, 5, 1, 2, "conv3")), 3, 2, 0, true, "pool3");
  graph.AddHead(graph.Dense(graph.Dense(at, 64, "ip1"), classes, "ip2"));
  return graph;
}

namespace {

Graph AlexNetOf(const Shape& input, std::int64_t classes, const ZooOptions& options, std::int64_t groups) {
  const double rate = Dropout(options, 0.5);
  Graph graph(input);
  int at = graph.Relu(graph.Convolution(0, 96, 11, 4, 0, "conv1"));
  at = graph.MaxPool(Lrn(graph, at, options, "norm1"), 3, 2, 0, false, "pool1");
  at = graph.Relu(graph.Convolution(at, 256, 5, 1, 2, "conv2", groups));
  at = graph.MaxPool(Lrn(graph, at, options, "norm2"), 3, 2, 0, false, "pool2");
  at = graph.Relu(graph.Convolution(at, 384, 3, 1, 1, "conv3"));
  at = graph.Relu(graph.Convolution(at, 384, 3, 1, 1, "conv4", groups));
  at = graph.Relu(graph.Convolution(at, 256, 3, 1, 1, "conv5", groups));
  at = graph.MaxPool(at, 3, 2, 0, false, "pool5");
  at = graph.Dropout(graph.Relu(graph.Dense(at, Hidden(options, 4096), "fc6")), rate);
  at = graph.Dropout(graph.Relu(graph.Dense(at, Hidden(options, 4096), "fc7")), rate);
  graph.AddHead(graph.Dense(at, classes, "fc8"));
  return graph;
}

// A convolution without bias, since the batch norm after it has one.
int Normalised(Graph& graph, int from, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
               const std::string& name) {
  const int at = graph.Convolution(from, outputs, kernel, stride, kernel / 2, name);
  graph.layers.back().bias = false;
  return graph.Plain(Op::kBatchNorm, at, name + "/norm");
}

// Two convolutions beside a shortcut, which goes through one of its own where the shape changes.
int Residual(Graph& graph, int from, std::int64_t outputs, std::int64_t stride, bool project, const std::string& name) {
  int at = graph.Relu(Normalised(graph, from, outputs, 3, stride, name + "/conv1"));
  at = Normalised(graph, at, outputs, 3, 1, name + "/conv2");
  const int shortcut = project ? Normalised(graph, from, outputs, 1, stride, name + "/shortcut") : from;
  return graph.Relu(graph.Sum({at, shortcut}, name));
}

}  // namespace

Graph AlexNet(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  return AlexNetOf(input, classes, options, 1);
}

Graph AlexNetGroups(const Shape& input, std::int64_t classes, const ZooOptions& options) {
  return AlexNetOf(input, classes, options, 2);
}

Graph ResNet20(const Shape& input, std::int64_t classes, const ZooOptions&) {
  Graph graph(input);
  int at = graph.Relu(Normalised(graph, 0, 16, 3, 1, "conv1"));
  for (int stage = 0; stage < 3; ++stage)
    for (int block = 0; block < 3; ++block) {
      const bool narrows = stage > 0 && block == 0;
      at = Residual(graph, at, std::int64_t{16} << stage, narrows ? 2 : 1, narrows,
                    Str("block", stage + 1, "abc"[block]));
    }
  graph.AddHead(graph.Dense(graph.Plain(Op::kGlobalAveragePool, at, "pool"), classes, "scores"));
  return graph;
}

}  // namespace freshet::model::network::zoo
