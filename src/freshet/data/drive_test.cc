#include "data/drive.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/random.h"
#include "base/thread_pool.h"
#include "data/numbers_testing.h"

namespace freshet::data {
namespace {

TEST(Drive, VisitsEveryBlockInOrderForAnyNumberOfThreads) {
  for (int width = 1; width <= 6; ++width)
    for (const std::uint64_t blocks : {0u, 1u, 2u, 7u, 500u}) {
      SCOPED_TRACE(Str(width, " threads, ", blocks, " blocks"));
      base::ThreadPool pool(width);
      Numbers source(blocks);
      std::vector<float> seen;  // by one thread at a time
      const auto result = DriveInOrder(pool, source, [&](Rows& rows) -> Result<void> {
        seen.push_back(rows.labels[0]);
        return {};
      });
      ASSERT_TRUE(result.ok());
      ASSERT_EQ(seen.size(), blocks);
      for (std::uint64_t i = 0; i < blocks; ++i) ASSERT_EQ(seen[i], static_cast<float>(i));
    }
}

TEST(Drive, EndsWithTheFirstErrorInTheOrderOfTheBlocks) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "drive");
    base::ThreadPool pool(1 + static_cast<int>(random.Below(5)));
    const auto some = [&] { return random.Below(3) == 0 ? Numbers::kNever : random.Below(40); };
    const std::uint64_t unreadable = some(), unfinished = some(), refused = some();
    Numbers source(40, unreadable, unfinished);
    std::uint64_t seen = 0;
    const auto result = DriveInOrder(pool, source, [&](Rows& rows) -> Result<void> {
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

TEST(Drive, SharesEveryBlockOnceAfterItsTurn) {
  for (int width = 1; width <= 5; ++width) {
    SCOPED_TRACE(Str(width, " threads"));
    base::ThreadPool pool(width);
    Numbers source(300);
    std::uint64_t turns = 0;
    std::mutex mutex;
    std::multiset<float> shared;
    std::vector<std::atomic<int>> inside(static_cast<std::size_t>(width));
    const auto result = DriveShared(
        pool, source,
        [&](Rows& rows) -> Result<void> {
          EXPECT_EQ(rows.sequence, turns++);
          rows.labels[0] += 0.5f;
          return {};
        },
        [&](int thread, Rows& rows) -> Result<void> {
          EXPECT_EQ(inside.at(static_cast<std::size_t>(thread))++, 0) << "a thread works on one block at a time";
          {
            const std::lock_guard lock(mutex);
            shared.insert(rows.labels[0]);
          }
          --inside[static_cast<std::size_t>(thread)];
          return {};
        });
    ASSERT_TRUE(result.ok());
    ASSERT_EQ(shared.size(), 300u);
    for (int i = 0; i < 300; ++i) ASSERT_EQ(shared.count(static_cast<float>(i) + 0.5f), 1u);
  }
}

TEST(Drive, EndsWhenSharedWorkFails) {
  base::ThreadPool pool(3);
  Numbers source(1'000'000'000);
  const auto result = DriveShared(
      pool, source, [](Rows&) -> Result<void> { return {}; },
      [](int, Rows& rows) -> Result<void> {
        if (rows.sequence == 20) return Error{Code::kDiverged, "too far"};
        return {};
      });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kDiverged);
}

}  // namespace
}  // namespace freshet::data
