// oneDNN has fast kernels for some shapes only; for the others it silently takes its reference, a thousand times
// slower. Makes (without running them) convolutions of all kinds, and looks at what they would be computed by. How long
// they take is measured by bench/network/walk.cc.

#include <gtest/gtest.h>

#include "model/network/program.h"

namespace freshet::model::network {
namespace {

struct Shapes {
  std::int64_t outputs, kernel, stride, dilation, groups;  // groups 0: one a channel
  Op activation = Op::kInput;                              // none
};

// An input, a convolution that is wanted by both its gradients, a head.
Graph WithConvolution(std::int64_t channels, const Shapes& shapes) {
  Graph graph({channels, 15, 15});
  const std::int64_t groups = shapes.groups == 0 ? channels : shapes.groups;
  const std::int64_t outputs = shapes.groups == 0 ? channels : shapes.outputs;
  const std::int64_t pad = shapes.kernel / 2;
  Layer layer{.op = Op::kConvolution, .inputs = {0}, .outputs = outputs};
  layer.kernel = {shapes.kernel, shapes.kernel};
  layer.stride = {shapes.stride, shapes.stride};
  layer.dilation = {shapes.dilation, shapes.dilation};
  layer.pad = layer.pad_end = {pad, pad};
  layer.groups = groups;
  int last = graph.Add(layer);
  if (shapes.activation != Op::kInput) last = graph.Add({.op = shapes.activation, .inputs = {last}});
  graph.AddHead(last);
  return graph;
}

void ExpectFast(const Shapes& shapes) {
  for (std::int64_t channels = 1; channels <= 40; ++channels) {
    if (shapes.groups > 0 && (channels % shapes.groups != 0 || shapes.outputs % shapes.groups != 0)) continue;
    for (const std::size_t rows : {1, 32}) {
      const auto program = Program::Compile(WithConvolution(channels, shapes),
                                            {.rows = rows, .training = true, .input_gradients = true});
      ASSERT_TRUE(program.ok()) << program.error().text;
      EXPECT_TRUE(program.value()->slow().empty())
          << rows << " rows, " << channels << " channels to " << shapes.outputs << ", kernel " << shapes.kernel
          << ", stride " << shapes.stride << ", dilation " << shapes.dilation << ", groups " << shapes.groups << ": "
          << program.value()->slow()[0];
    }
  }
}

TEST(ConvolutionWalk, FindsAFastKernelForEveryNumberOfChannels) {
  for (const std::int64_t outputs : {6, 16, 40})
    for (const std::int64_t kernel : {1, 3, 5})
      for (const std::int64_t stride : {1, 2}) ExpectFast({outputs, kernel, stride, 1, 1});
}

TEST(ConvolutionWalk, FindsAFastKernelForGroups) {
  for (const std::int64_t groups : {2, 3, 4, 0})
    for (const std::int64_t kernel : {1, 3})
      for (const std::int64_t stride : {1, 2}) ExpectFast({12, kernel, stride, 1, groups});
}

TEST(ConvolutionWalk, FindsAFastKernelForDilationAndActivations) {
  ExpectFast({6, 3, 1, 2, 1});
  for (const Op activation : {Op::kRelu, Op::kTanh, Op::kSigmoid}) ExpectFast({16, 3, 1, 1, 1, activation});
}

}  // namespace
}  // namespace freshet::model::network
