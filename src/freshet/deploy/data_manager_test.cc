#include "deploy/data_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace freshet::deploy {
namespace {

class DataManagerTest : public testing::Test {
 protected:
  std::unique_ptr<DataManager> Make() { return DataManager::Make(options, log).value(); }
  static void Observe(DataManager& data, int rows) {
    for (int i = 0; i < rows; ++i) data.Observe(1 + i % 5);
  }
  DataOptions options;
  MemoryLog log;
};

TEST_F(DataManagerTest, TakesTheBufferAndASampleOfWhatCameBefore) {
  options.rate.rate = 0.25;
  const auto data = Make();
  Observe(*data, 100);
  EXPECT_EQ(data->buffered(), 100u);
  auto numbers = data->TakeIteration(data->Plan(1, 0));
  EXPECT_EQ(numbers.size(), 100u);  // there is no history yet
  EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(data->buffered(), 0u);
  Observe(*data, 40);
  numbers = data->TakeIteration(data->Plan(2, 0));
  const std::set<std::uint64_t> different(numbers.begin(), numbers.end());
  EXPECT_EQ(different.size(), 65u);
  EXPECT_EQ(numbers.size(), 65u);
  EXPECT_EQ(std::count_if(numbers.begin(), numbers.end(), [](std::uint64_t n) { return n >= 100; }), 40);
}

TEST_F(DataManagerTest, TakesNothingThatIsNoLongerKept) {
  options.rate.rate = 0.5;
  const auto data = Make();
  Observe(*data, 100);
  (void)data->TakeIteration(data->Plan(1, 0));
  const auto numbers = data->TakeIteration(data->Plan(2, 80));
  EXPECT_EQ(numbers.size(), 10u);
  for (const std::uint64_t number : numbers) EXPECT_GE(number, 80u);
  auto all = data->TakeEverything(3, 95);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::uint64_t>{95, 96, 97, 98, 99}));
}

TEST_F(DataManagerTest, TakesTheSameAgainForTheSameSeedAndLessWhenLimited) {
  options.most_sample = 7;
  options.rate.rate = 0.5;
  options.buffer_share = 0;
  const auto data = Make(), same = Make(), other = Make();
  for (DataManager* const each : {data.get(), same.get(), other.get()}) {
    Observe(*each, 100);
    EXPECT_TRUE(each->TakeIteration(each->Plan(1, 0)).empty());
  }
  const auto numbers = data->TakeIteration(data->Plan(2, 0));
  EXPECT_EQ(numbers.size(), 7u);
  EXPECT_EQ(same->TakeIteration(same->Plan(2, 0)), numbers);
  EXPECT_NE(other->TakeIteration(other->Plan(3, 0)), numbers);
}

TEST_F(DataManagerTest, GoesOnFromWhatItSaved) {
  for (const std::string& kind : Sampler::Kinds()) {
    SCOPED_TRACE(kind);
    options.sampler.kind = kind;
    options.sampler.reservoir_rows = 10;
    options.rate.adaptive = true;
    const auto data = Make(), loaded = Make();
    Observe(*data, 50);
    (void)data->TakeIteration(data->Plan(1, 0));
    data->rate().OnDrift();
    Observe(*data, 13);
    data->Forget(20);
    ASSERT_TRUE(loaded->Load(data->Save()).ok());
    EXPECT_EQ(loaded->Save(), data->Save());
    EXPECT_EQ(loaded->end(), 63u);
    EXPECT_EQ(loaded->buffered(), 13u);
    for (DataManager* const each : {data.get(), loaded.get()}) Observe(*each, 30);
    EXPECT_EQ(loaded->TakeIteration(loaded->Plan(2, 0)), data->TakeIteration(data->Plan(2, 0)));
    EXPECT_EQ(loaded->Save(), data->Save());
  }
}

// The light recipe.
DataOptions ByArrivals() {
  DataOptions options;
  options.sampler.kind = "sweep";
  options.rate.rate = 0;
  options.per_arrival = 1;
  options.buffer_share = 0;
  options.quiet_rows = 50;
  return options;
}

TEST_F(DataManagerTest, DrawsAsManyAsAFullBufferCallsForWhenItWasNotArrivalsThatCalled) {
  options = ByArrivals();
  const auto data = Make();
  Observe(*data, 30);
  EXPECT_EQ(data->TakeIteration(data->Plan(1, 0, Pace::kQuiet)).size(), 30u);  // there are no more
  Observe(*data, 570);
  EXPECT_EQ(data->TakeIteration(data->Plan(2, 0)).size(), 30u);
  EXPECT_EQ(data->TakeIteration(data->Plan(3, 0)).size(), 0u);  // nothing came since
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 4; seed < 15; ++seed)
    for (const std::uint64_t number : data->TakeIteration(data->Plan(seed, 0, Pace::kQuiet))) seen.insert(number);
  EXPECT_EQ(seen.size(), 11 * 50u);  // a sweep
  Observe(*data, 9'400);
  EXPECT_EQ(data->TakeIteration(data->Plan(16, 0, Pace::kQuiet)).size(), 9'400u);
  EXPECT_EQ(data->TakeIteration(data->Plan(17, 0, Pace::kQuiet)).size(), 500u);  // a twentieth of the history
}

TEST_F(DataManagerTest, VisitsADataSetWholeUntilAnIterationHasEnded) {
  options = ByArrivals();
  const auto data = Make();
  Observe(*data, 10);
  data->Join(10, 1000);
  Observe(*data, 5);
  EXPECT_EQ(data->buffered(), 15u);
  EXPECT_EQ(data->unvisited(), 1000u);
  for (std::uint64_t seed = 1; seed < 3; ++seed) {  // the first was stopped
    const Take take = data->Plan(seed, 0, Pace::kQuiet);
    auto fresh = data->TakeUnvisited(take);
    EXPECT_FALSE(std::is_sorted(fresh.begin(), fresh.end()));
    std::sort(fresh.begin(), fresh.end());
    ASSERT_EQ(fresh.size(), 1000u);
    EXPECT_EQ(fresh.front(), 10u);
    EXPECT_EQ(fresh.back(), 1009u);
    for (const std::uint64_t number : data->TakeIteration(take)) EXPECT_TRUE(number < 10 || number >= 1010) << number;
  }
  data->Visited(1015);
  EXPECT_EQ(data->unvisited(), 0u);
  const Take take = data->Plan(3, 0, Pace::kQuiet);
  EXPECT_TRUE(data->TakeUnvisited(take).empty());
  EXPECT_EQ(data->TakeIteration(take).size(), 50u);
}

TEST_F(DataManagerTest, GoesOnDrawingFromADataSetAfterADrift) {
  options = ByArrivals();
  const auto data = Make(), loaded = Make();
  Observe(*data, 100);
  data->Join(100, 300);
  Observe(*data, 600);
  (void)data->TakeIteration(data->Plan(1, 0));
  data->Visited(1000);
  EXPECT_EQ(data->ObservationBefore(200), 801u);
  EXPECT_EQ(data->ObservationBefore(601), 400u);
  EXPECT_EQ(data->ObservationBefore(602), 99u);
  data->Forget(data->ObservationBefore(301));
  EXPECT_EQ(data->drawable(), 600u);
  ASSERT_TRUE(loaded->Load(data->Save()).ok());
  std::uint64_t of_set = 0, all = 0;
  for (std::uint64_t seed = 2; seed < 42; ++seed) {
    const auto numbers = data->TakeIteration(data->Plan(seed, 0, Pace::kQuiet));
    EXPECT_EQ(numbers, loaded->TakeIteration(loaded->Plan(seed, 0, Pace::kQuiet)));
    for (const std::uint64_t number : numbers) {
      const bool set = number >= 100 && number < 400;
      EXPECT_TRUE(set || number >= 700) << number;
      of_set += set ? 1 : 0;
      ++all;
    }
  }
  EXPECT_EQ(all, 40 * 30u);  // sixty in a hundred rows are trusted
  EXPECT_EQ(of_set * 2, all);
}

TEST_F(DataManagerTest, RefusesWhatItDidNotSave) {
  const auto data = Make();
  for (const char* const text : {"", "{}", "[1]", "{\"buffer_begin\": \"x\"}", "not JSON"})
    EXPECT_EQ(data->Load(text).error().code, Code::kCorrupt) << text;
}

TEST_F(DataManagerTest, RefusesToRememberNothing) {
  options.remembered_ids = 0;
  EXPECT_EQ(DataManager::Make(options, log).error().code, Code::kInvalid);
  options.remembered_ids = 1;
  options.pending_bytes = 0;
  EXPECT_EQ(DataManager::Make(options, log).error().code, Code::kInvalid);
}

TEST_F(DataManagerTest, StepsOverRowsThatWereLost) {
  const auto data = Make();
  Observe(*data, 5);
  data->SkipTo(3);
  EXPECT_EQ(data->end(), 5u);
  data->SkipTo(9);
  Observe(*data, 1);
  EXPECT_EQ(data->end(), 10u);
  EXPECT_EQ(data->buffered(), 10u);
}

}  // namespace
}  // namespace freshet::deploy
