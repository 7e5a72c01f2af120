#include "model/network/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/network/description.h"

namespace freshet::model::network {
namespace {

Graph Make(std::string_view name, const ZooOptions& options = {}) {
  for (const ZooEntry& entry : Zoo())
    if (entry.name == name) return MakeZoo(name, entry.input, entry.classes, options).value();
  ADD_FAILURE() << name;
  return {};
}

std::size_t Count(const Graph& graph, Op op) {
  return static_cast<std::size_t>(
      std::count_if(graph.layers.begin(), graph.layers.end(), [&](const Layer& layer) { return layer.op == op; }));
}

// Learned weights of the layers that `wanted` picks; running statistics are none.
template <class Wanted>
std::uint64_t Weights(const Graph& graph, const Wanted& wanted) {
  const auto facts = Infer(graph).value();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < facts.size(); ++i)
    for (const optimize::Block& block : facts[i].blocks)
      if (wanted(graph.layers[i], block) && block.follow == 0) sum += block.rows * block.width;
  return sum;
}
std::uint64_t AllWeights(const Graph& graph) {
  return Weights(graph, [](const Layer&, const optimize::Block&) { return true; });
}
// Of the matrices of dense layers, without biases.
std::uint64_t DenseWeights(const Graph& graph) {
  return Weights(graph, [](const Layer& layer, const optimize::Block& block) {
    return layer.op == Op::kDense && block.name.ends_with(".weight");
  });
}

Shape ShapeOf(const Graph& graph, std::string_view name) {
  const auto facts = Infer(graph).value();
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (graph.layers[i].name == name) return facts[i].shape;
  ADD_FAILURE() << name;
  return {};
}

// The properties by which a study of data-parallel training compares the two (its table 1): 5 and 59 convolutions, 3
// and 1 fully connected layers, with 55 M and 1 M weights. Its 59 count those of GoogLeNet's auxiliary heads, its one
// layer does not; its 55 M are the weights of fc6 and fc7 alone.
TEST(Zoo, AlexNetHasFiveConvolutionsAndThreeDenseLayersThatHoldNearlyAllWeights) {
  const Graph graph = Make("alexnet");
  EXPECT_EQ(Count(graph, Op::kConvolution), 5u);
  EXPECT_EQ(Count(graph, Op::kDense), 3u);
  EXPECT_EQ(DenseWeights(graph), 58'621'952u);
  EXPECT_EQ(DenseWeights(graph) - 4096u * 1000u, 54'525'952u);
  EXPECT_EQ(AllWeights(graph), 62'378'344u);
}

TEST(Zoo, GoogLeNetHas59ConvolutionsAndOneDenseLayerOfAMillionWeights) {
  const Graph whole = Make("googlenet"), main = Make("googlenet", {.auxiliary = false});
  EXPECT_EQ(Count(whole, Op::kConvolution), 59u);
  EXPECT_EQ(Count(main, Op::kConvolution), 57u);
  EXPECT_EQ(Count(main, Op::kDense), 1u);
  EXPECT_EQ(DenseWeights(main), 1'024'000u);
  EXPECT_EQ(AllWeights(main), 6'998'552u);
  EXPECT_EQ(AllWeights(whole), 13'378'280u);
  ASSERT_EQ(whole.heads.size(), 3u);
  EXPECT_EQ(whole.heads[0].weight, 1);
  EXPECT_EQ(whole.heads[1].weight, 0.3);
  EXPECT_EQ(whole.heads[2].weight, 0.3);
}

TEST(Zoo, ImagesShrinkAsPublished) {
  const Graph alexnet = Make("alexnet");
  EXPECT_EQ(ShapeOf(alexnet, "conv1"), (Shape{96, 55, 55}));
  EXPECT_EQ(ShapeOf(alexnet, "pool1"), (Shape{96, 27, 27}));
  EXPECT_EQ(ShapeOf(alexnet, "pool2"), (Shape{256, 13, 13}));
  EXPECT_EQ(ShapeOf(alexnet, "pool5"), (Shape{256, 6, 6}));
  const Graph googlenet = Make("googlenet");
  EXPECT_EQ(ShapeOf(googlenet, "pool1"), (Shape{64, 56, 56}));
  EXPECT_EQ(ShapeOf(googlenet, "inception_3a/output"), (Shape{256, 28, 28}));
  EXPECT_EQ(ShapeOf(googlenet, "inception_4a/output"), (Shape{512, 14, 14}));
  EXPECT_EQ(ShapeOf(googlenet, "loss1/pool"), (Shape{512, 4, 4}));
  EXPECT_EQ(ShapeOf(googlenet, "inception_5b/output"), (Shape{1024, 7, 7}));
  EXPECT_EQ(ShapeOf(Make("cifar-quick"), "pool3"), (Shape{64, 4, 4}));
  EXPECT_EQ(ShapeOf(Make("resnet20"), "block3c"), (Shape{64, 8, 8}));
}

TEST(Zoo, CountsOfWeightsAreTheKnownOnes) {
  EXPECT_EQ(AllWeights(Make("mlp")), 784u * 50 + 50 + 50 * 10 + 10);
  EXPECT_EQ(AllWeights(Make("lenet5")), 431'080u);
  EXPECT_EQ(AllWeights(Make("cifar-quick")), 145'578u);
  EXPECT_EQ(AllWeights(Make("alexnet-groups")), 60'965'224u);
  EXPECT_EQ(AllWeights(Make("resnet20")), 272'474u);  // with projections
}

TEST(Zoo, ResNet20HasTwentyLayersOnItsLongestWay) {
  const Graph graph = Make("resnet20");
  EXPECT_EQ(Count(graph, Op::kConvolution), 19u + 2);  // two of them in shortcuts
  EXPECT_EQ(Count(graph, Op::kDense), 1u);
  EXPECT_EQ(Count(graph, Op::kSum), 9u);
}

TEST(Zoo, TargetsFitTheirNetworks) {
  EXPECT_EQ(Make("lenet5").target, Target::kLabel);
  EXPECT_EQ(Make("char-lstm").target, Target::kNext);
  EXPECT_EQ(Make("autoencoder").target, Target::kInput);
  EXPECT_EQ(ShapeOf(Make("char-lstm"), "scores"), (Shape{64, 128}));
  EXPECT_EQ(ShapeOf(Make("autoencoder"), "code"), Shape{32});
}

TEST(Zoo, EveryNetworkReadsBackFromItsText) {
  for (const ZooEntry& entry : Zoo()) {
    SCOPED_TRACE(entry.name);
    const std::string text = ToToml(Make(entry.name));
    const auto again = GraphFromToml(text);
    ASSERT_TRUE(again.ok()) << again.error().text;
    EXPECT_EQ(ToToml(again.value()), text);
  }
}

TEST(Zoo, OptionsChangeWhatTheySay) {
  EXPECT_EQ(ShapeOf(Make("mlp", {.hidden = 7}), "hidden"), Shape{7});
  EXPECT_EQ(Count(Make("mlp"), Op::kDropout), 0u);
  EXPECT_EQ(Count(Make("mlp", {.dropout = 0.5}), Op::kDropout), 1u);
  for (const Layer& layer : Make("alexnet", {.dropout = 0.25, .lrn_k = 2}).layers) {
    EXPECT_TRUE(layer.op != Op::kDropout || layer.rate == 0.25);
    EXPECT_TRUE(layer.op != Op::kLrn || layer.k == 2);
  }
}

TEST(Zoo, RefusesWhatItDoesNotHaveAndInputsThatDoNotFit) {
  EXPECT_NE(MakeZoo("alexnett", {3, 227, 227}, 10).error().text.find("did you mean alexnet?"), std::string::npos);
  EXPECT_NE(MakeZoo("x", {3}, 10).error().text.find("googlenet"), std::string::npos);
  const auto small = MakeZoo("alexnet", {3, 32, 32}, 10);
  ASSERT_FALSE(small.ok());
  EXPECT_NE(small.error().text.find("3 x 227 x 227"), std::string::npos);
  for (const ZooEntry& entry : Zoo())
    for (const Shape& input : {Shape{}, Shape{0}, Shape{-1, 5}, Shape{1 << 24, 1 << 24, 1 << 24}})
      EXPECT_FALSE(MakeZoo(entry.name, input, 10).ok()) << entry.name;
}

}  // namespace
}  // namespace freshet::model::network
