// Gradients that name whole stretches of rows, as those of networks do: in whatever order they come, a shard makes one update
// of them, with the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "strategy/server/copy.h"
#include "strategy/server/shard.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::server {
namespace {

class DensePushes : public testing::Test {
 protected:
  std::unique_ptr<Shard> MakeShard(const std::string& synchrony, int workers) {
    return Shard::Make({.synchrony = Synchrony::Parse(synchrony).value(), .workers = workers}, *start_.model,
                       *start_.parameters, *start_.optimizer, start_.memory)
        .value();
  }
  // A gradient of every block in two stretches, of numbers drawn from a seed.
  std::vector<std::byte> Push(std::uint64_t clock, std::uint64_t seed) {
    base::Random random(seed, "dense pushes");
    const std::size_t blocks = start_.parameters->blocks();
    Writer writer(PushHead{.parcels = static_cast<std::uint32_t>(2 * blocks), .clock = clock, .weight = 3});
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::uint64_t rows = start_.parameters->rows(b), half = rows / 2;
      for (const auto& [first, last] : {std::pair<std::uint64_t, std::uint64_t>{0, half}, {half, rows}}) {
        writer.Begin({.block = static_cast<std::uint32_t>(b), .first = first, .count = last - first});
        const std::size_t floats = (last - first) * start_.parameters->width(b);
        float* const to = writer.Floats(floats);
        for (std::size_t i = 0; i < floats; ++i) to[i] = static_cast<float>(random.Normal());
      }
    }
    return writer.Take();
  }
  static std::vector<float> Weights(const Shard& shard) {
    std::vector<float> all;
    for (std::size_t b = 0; b < shard.parameters().blocks(); ++b) {
      const auto values = shard.parameters().Gather(b);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const Task task_ = MakeTask("perceptron", 40, 1);
  TestLearner start_{task_};
};

TEST_F(DensePushes, OfOneClockAreOneUpdateInWhateverOrderTheyCome) {
  for (int workers = 1; workers <= 4; ++workers) {
    std::vector<int> order(static_cast<std::size_t>(workers));
    std::iota(order.begin(), order.end(), 0);
    std::vector<float> first;
    do {
      const auto shard = MakeShard("bsp", workers);
      for (std::uint64_t clock = 0; clock < 3; ++clock)
        for (const int worker : order)
          ASSERT_TRUE(shard->On(worker, Push(clock, clock * 10 + static_cast<std::uint64_t>(worker)), {}).ok());
      EXPECT_TRUE(shard->idle());
      EXPECT_EQ(shard->updates(), 3u);
      if (first.empty()) first = Weights(*shard);
      EXPECT_EQ(Weights(*shard), first);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_F(DensePushes, OfOneWorkerAreTheSameUpdatesAtOnceAndInBulk) {
  const auto bulk = MakeShard("bsp", 1), at_once = MakeShard("bap", 1);
  for (std::uint64_t clock = 0; clock < 5; ++clock)
    for (Shard* shard : {bulk.get(), at_once.get()}) ASSERT_TRUE(shard->On(0, Push(clock, clock), {}).ok());
  EXPECT_EQ(Weights(*bulk), Weights(*at_once));
}

TEST_F(DensePushes, ThatWereNotAppliedAreForgottenAfterALoss) {
  const auto calm = MakeShard("bsp", 2), disturbed = MakeShard("bsp", 2);
  ASSERT_TRUE(disturbed->On(1, Push(0, 7), {}).ok());
  disturbed->Retreat();
  for (Shard* shard : {calm.get(), disturbed.get()})
    for (const int worker : {0, 1})
      ASSERT_TRUE(shard->On(worker, Push(0, static_cast<std::uint64_t>(worker)), {}).ok());
  EXPECT_EQ(Weights(*calm), Weights(*disturbed));
}

TEST_F(DensePushes, OfStretchesThatOverlapAreRefused) {
  const auto push = [&](std::uint64_t first, std::uint64_t count) {
    Writer writer(PushHead{.parcels = 1, .weight = 1});
    writer.Begin({.block = 0, .first = first, .count = count});
    std::fill_n(writer.Floats(count * start_.parameters->width(0)), count * start_.parameters->width(0), 1.0f);
    return writer.Take();
  };
  ASSERT_GE(start_.parameters->rows(0), 6u);
  using Stretch = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [first, count] : {Stretch{2, 3}, {1, 2}, {3, 1}, {3, 3}, {0, 6}, {2, 1}, {UINT64_MAX, 2}}) {
    const auto shard = MakeShard("bsp", 2);
    ASSERT_TRUE(shard->On(0, push(2, 2), {}).ok());
    const auto answers = shard->On(1, push(first, count), {});
    ASSERT_FALSE(answers.ok()) << first << " " << count;
    EXPECT_EQ(answers.error().code, Code::kCorrupt);
  }
}

// A worker stands for one that is gone, whose update a server has: it takes no notice of the letter, so that what this worker
// has held back itself must not go with it.
TEST(Copy, TellsNothingOfItsOwnToWhoTakesNoNotice) {
  const Task task = MakeTask("linear", 40, 1);
  TestLearner learner(task);
  optimize::Gradient gradient = learner.model->NewGradient(learner.memory).value();
  Placement placement({learner.parameters->block(0), learner.parameters->block(1)}, 1);
  Copy copy({.synchrony = Synchrony::Parse("bap").value(), .push_every = 2}, *learner.model, *learner.parameters, 1,
            placement, gradient);
  const auto parcels = [&](const Copy::Letters& letters) {
    return Reader(letters.at(0)).Take<PushHead>().value().parcels;
  };
  *gradient.blocks[1].Touch(0) = 1;
  EXPECT_EQ(parcels(copy.Push({.clock = 0, .weight = 1}, {})), 0u);  // held back
  gradient.Clear();
  EXPECT_EQ(parcels(copy.Push({.clock = 1, .weight = 1}, {}, {.had = {true}})), 0u);
  EXPECT_EQ(parcels(copy.Push({.clock = 2, .weight = 1}, {})), 0u);
  EXPECT_EQ(parcels(copy.Push({.clock = 3, .weight = 1}, {})), 1u);
}

}  // namespace
}  // namespace freshet::strategy::server
