// The reference against numbers worked out by hand.

#include "model/network/reference_testing.h"

#include <gtest/gtest.h>

namespace freshet::model::network {
namespace {

// The output of one layer over an input.
Values Answer(const Shape& input, Layer layer, const Values& in, const Weights& weights = {}, bool training = false,
              std::size_t rows = 1) {
  Graph graph(input);
  layer.inputs = {0};
  graph.AddHead(graph.Add(std::move(layer)));
  return Reference(graph, rows).Run(weights, in, training).outputs[1];
}

void ExpectNear(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9) << "at " << i;
}

const Values kNine{1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(Reference, ConvolvesAsByHand) {
  const Layer layer{.op = Op::kConvolution, .outputs = 1, .kernel = {2, 2}};
  ExpectNear(Answer({1, 3, 3}, layer, kNine, {{1, 0, 0, -1}, {10}}), {6, 6, 6, 6});
  const Layer padded{.op = Op::kConvolution,
                     .outputs = 1,
                     .bias = false,
                     .kernel = {2, 2},
                     .stride = {2, 2},
                     .pad = {1, 0},
                     .pad_end = {0, 1}};
  ExpectNear(Answer({1, 3, 3}, padded, kNine, {{1, 2, 3, 4}}), {3 * 1 + 4 * 2, 3 * 3, 4 + 10 + 21 + 32, 6 + 27});
  const Layer groups{.op = Op::kConvolution, .outputs = 2, .groups = 2};
  ExpectNear(Answer({2, 1, 2}, groups, {1, 2, 3, 4}, {{10, 100}, {0, 1}}), {10, 20, 301, 401});
  const Layer holes{.op = Op::kConvolution, .outputs = 1, .bias = false, .kernel = {2, 2}, .dilation = {2, 2}};
  ExpectNear(Answer({1, 3, 3}, holes, kNine, {{1, 10, 100, 1000}}), {1 + 30 + 700 + 9000});
}

TEST(Reference, PoolsAsByHand) {
  Layer layer{.op = Op::kMaxPool, .kernel = {2, 2}, .stride = {2, 2}, .ceil = true};
  ExpectNear(Answer({1, 3, 3}, layer, kNine), {5, 6, 8, 9});
  layer.op = Op::kAveragePool;
  ExpectNear(Answer({1, 3, 3}, layer, kNine), {3, 4.5, 7.5, 9});
  layer.include_padding = true;
  ExpectNear(Answer({1, 3, 3}, layer, kNine), {3, 9 / 4.0, 15 / 4.0, 9 / 4.0});
  ExpectNear(Answer({1, 3, 3}, {.op = Op::kGlobalAveragePool}, kNine), {5});
}

TEST(Reference, NormalisesAsByHand) {
  const Layer lrn{.op = Op::kLrn, .size = 3, .alpha = 3, .beta = 1, .k = 2};
  ExpectNear(Answer({3, 1, 1}, lrn, {1, 2, 3}), {1 / 7.0, 2 / 16.0, 3 / 15.0});
  const Layer norm{.op = Op::kBatchNorm, .epsilon = 1};
  const Weights weights{{2, 1}, {0, 10}, {1, 0}, {3, 8}};
  ExpectNear(Answer({2}, norm, {3, 6}, weights), {2, 12});
  const double root = std::sqrt(5.0);  // of variance 4 and epsilon 1
  ExpectNear(Answer({2}, norm, {1, 7, 5, 7}, weights, true, 2), {-4 / root, 10, 4 / root, 10});
}

TEST(Reference, SoftmaxGoesOverChannelsOrTheLastExtent) {
  const double third = std::log(3.0);
  ExpectNear(Answer({2, 1, 2}, {.op = Op::kSoftmax}, {0, third, third, 0}), {0.25, 0.75, 0.75, 0.25});
  ExpectNear(Answer({2, 2}, {.op = Op::kSoftmax}, {0, third, third, 0}), {0.25, 0.75, 0.75, 0.25});
  ExpectNear(Answer({2, 1, 2}, {.op = Op::kSoftmax}, {0, 0, third, 0}), {0.25, 0.5, 0.75, 0.5});
}

// One hidden number, gates held open or shut by their bias.
TEST(Reference, RecurrentGatesStandInTheirOrder) {
  constexpr double kOpen = 1000, kShut = -1000;
  const Values no_recurrence(4, 0.0), candidate_only{0, 0, 1, 0};
  const auto lstm = [&](double input, double forget, double output) {
    return Answer({2, 1}, {.op = Op::kLstm, .outputs = 1, .sequence = true}, {0.5, 2},
                  {candidate_only, no_recurrence, {input, forget, 0, output}});
  };
  const double first = std::tanh(0.5), second = std::tanh(2.0);
  ExpectNear(lstm(kOpen, kOpen, kOpen), {std::tanh(first), std::tanh(first + second)});
  ExpectNear(lstm(kOpen, kShut, kOpen), {std::tanh(first), std::tanh(second)});
  ExpectNear(lstm(kShut, kOpen, kOpen), {0, 0});
  ExpectNear(lstm(kOpen, kOpen, kShut), {0, 0});

  const auto gru = [&](double update, double reset) {
    return Answer({2, 1}, {.op = Op::kGru, .outputs = 1, .sequence = true}, {0.5, 2},
                  {{0, 0, 1}, {0, 0, 3}, {update, reset, 0, 0.25}});
  };
  const double with_bias = std::tanh(0.5 + 0.25);
  ExpectNear(gru(kShut, kShut), {first, second});
  ExpectNear(gru(kShut, kOpen), {with_bias, std::tanh(2 + 3 * with_bias + 0.25)});
  ExpectNear(gru(kOpen, kOpen), {0, 0});
}

TEST(Reference, DropsItsShareAndKeepsTheMean) {
  Graph graph({20'000});
  graph.AddHead(graph.Dropout(0, 0.3));
  const Values output = Reference(graph, 1).Run({}, Values(20'000, 1.0), true, {.seed = 3}).outputs[1];
  double sum = 0;
  for (const double value : output) {
    EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-12);
    sum += value;
  }
  EXPECT_NEAR(sum / 20'000, 1, 0.02);
}

}  // namespace
}  // namespace freshet::model::network
