#include "deploy/fresh_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace freshet::deploy {
namespace {

// Rows with the labels and times 0, 1, 2 …, each ten sequences after the one before.
FreshRows Some(std::size_t count) {
  FreshRows fresh;
  fresh.Clear(2);
  data::Rows row;
  row.width = 2;
  for (std::size_t r = 0; r < count; ++r) {
    row.ClearRows();
    row.labels.Append(static_cast<float>(r));
    for (const float value : {0.5f, 1.5f}) row.dense.Append(value);
    Slip slip;
    slip.time = static_cast<std::int64_t>(r);
    std::string payload;
    PackRow(row.batch(), 0, slip, payload);
    fresh.Add(payload, 10 * (r + 1));
  }
  return fresh;
}

TEST(FreshRows, ComeInPiecesOnceEachAndInOrder) {
  for (const std::size_t count : {0, 1, 3, 4, 5, 8, 11}) {
    SCOPED_TRACE(count);
    FreshRows fresh = Some(count);
    std::size_t met = 0;
    while (!fresh.empty()) {
      const FreshRows::Piece piece = fresh.Take(4);
      ASSERT_EQ(piece.rows.size(), std::min<std::size_t>(4, count - met));
      ASSERT_EQ(piece.slips.size(), piece.rows.size());
      for (std::size_t r = 0; r < piece.rows.size(); ++r, ++met) {
        EXPECT_EQ(piece.rows.labels[r], static_cast<float>(met));
        EXPECT_EQ(piece.rows.dense[2 * r + 1], 1.5f);
        EXPECT_EQ(piece.slips[r].time, static_cast<std::int64_t>(met));
      }
      EXPECT_EQ(piece.next, met < count ? 10 * (met + 1) : 0);
    }
    EXPECT_EQ(met, count);
  }
}

TEST(FreshRows, AreGoneOnceCleared) {
  FreshRows fresh = Some(5);
  fresh.Take(4);
  fresh.Clear(2);
  EXPECT_TRUE(fresh.empty());
}

}  // namespace
}  // namespace freshet::deploy
