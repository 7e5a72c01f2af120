#include "data/prefetch.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "base/simulated_clock.h"
#include "base/thread_pool.h"
#include "data/numbers_testing.h"

namespace freshet::data {
namespace {

TEST(Prefetch, GivesTheCallingThreadEveryBlockInOrder) {
  const base::ManualClock clock;
  for (int width = 1; width <= 5; ++width)
    for (const std::size_t depth : {0u, 1u, 2u, 9u})
      for (const std::uint64_t blocks : {0u, 1u, 2u, 7u, 300u}) {
        SCOPED_TRACE(Str(width, " threads, depth ", depth, ", ", blocks, " blocks"));
        base::ThreadPool pool(width);
        Numbers source(blocks);
        std::uint64_t seen = 0;
        PrefetchStats stats;
        const auto caller = std::this_thread::get_id();
        const auto result = DrivePrefetched(
            pool, clock, source, depth,
            [&](Rows& rows) -> Result<void> {
              EXPECT_EQ(std::this_thread::get_id(), caller);
              EXPECT_EQ(rows.labels[0], static_cast<float>(seen++));
              return {};
            },
            &stats);
        ASSERT_TRUE(result.ok());
        ASSERT_EQ(seen, blocks);
        ASSERT_EQ(stats.blocks, blocks);
      }
}

TEST(Prefetch, WorksWithoutAnyOtherThread) {
  const base::ManualClock clock;
  base::InlineExecutor executor;
  Numbers source(50);
  std::uint64_t seen = 0;
  const auto result = DrivePrefetched(executor, clock, source, 4, [&](Rows&) -> Result<void> {
    ++seen;
    return {};
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(seen, 50u);
}

TEST(Prefetch, EndsWithTheFirstErrorInTheOrderOfTheBlocks) {
  const base::ManualClock clock;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "prefetch");
    base::ThreadPool pool(1 + static_cast<int>(random.Below(5)));
    const auto some = [&] { return random.Below(3) == 0 ? Numbers::kNever : random.Below(40); };
    const std::uint64_t unreadable = some(), unfinished = some(), refused = some();
    Numbers source(40, unreadable, unfinished);
    std::uint64_t seen = 0;
    const auto result = DrivePrefetched(pool, clock, source, random.Below(6), [&](Rows& rows) -> Result<void> {
      if (rows.sequence == refused) return Error{Code::kStopped, Str("block ", refused, " is refused")};
      EXPECT_EQ(rows.sequence, seen++);
      return {};
    });
    const std::uint64_t first = std::min({unreadable, unfinished, refused});
    if (first == Numbers::kNever) {
      ASSERT_TRUE(result.ok());
      ASSERT_EQ(seen, 40u);
      continue;
    }
    ASSERT_FALSE(result.ok());
    ASSERT_EQ(seen, first) << "what comes before an error is done, and nothing behind it";
    const Code code = first == unreadable ? Code::kIo : (first == unfinished ? Code::kBadInput : Code::kStopped);
    ASSERT_EQ(result.error().code, code) << result.error().text;
    ASSERT_TRUE(result.error().text.starts_with(Str("block ", first, " is"))) << result.error().text;
  }
}

TEST(Prefetch, ReadsNoFurtherAheadThanTold) {
  const base::ManualClock clock;
  base::ThreadPool pool(3);
  Numbers source(1'000'000);
  constexpr std::uint64_t kDepth = 5;
  const auto result = DrivePrefetched(pool, clock, source, kDepth, [&](Rows& rows) -> Result<void> {
    EXPECT_LE(source.asked(), rows.sequence + 1 + kDepth);
    if (rows.sequence == 2000) return Error{Code::kStopped, "enough"};
    return {};
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kStopped);
}

TEST(Prefetch, SaysHowLongTheConsumerWaitedAndWorked) {
  base::ManualClock clock;
  // Reading takes 2 seconds a block, working 3.
  class Slow final : public RowSource {
   public:
    explicit Slow(base::ManualClock& clock) : clock_(clock) {}
    Result<bool> Next(Rows& rows) override {
      if (next_ == 4) return false;
      clock_.Advance(std::chrono::seconds(2));
      rows.Clear();
      rows.sequence = next_++;
      return true;
    }
    Result<void> Finish(Rows&) override { return {}; }
    Result<void> Seek(const Position&) override { return {}; }
    std::optional<double> Fraction(const Position&) const override { return std::nullopt; }

   private:
    base::ManualClock& clock_;
    std::uint64_t next_ = 0;
  } source(clock);
  base::InlineExecutor executor;
  PrefetchStats stats;
  const auto result = DrivePrefetched(
      executor, clock, source, 2,
      [&](Rows&) -> Result<void> {
        clock.Advance(std::chrono::seconds(3));
        return {};
      },
      &stats);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(stats.waited, std::chrono::seconds(8));
  EXPECT_EQ(stats.worked, std::chrono::seconds(12));
}

}  // namespace
}  // namespace freshet::data
