#include "strategy/ring/schedule.h"

#include <gtest/gtest.h>

#include "strategy/ring/schedule_testing.h"

namespace freshet::strategy::ring {
namespace {

// How much of a schedule members are idle, or nothing when it comes to a halt.
std::optional<double> IdleShare(const Schedule& schedule, int stages, std::size_t micros, double forward,
                                double backward) {
  const auto all = static_cast<std::size_t>(stages);
  const auto time = TimeOf(schedule, std::vector<double>(all, forward), std::vector<double>(all, backward));
  if (!time) return std::nullopt;
  const auto work =
      static_cast<double>(micros) * stages / static_cast<double>(schedule.actions.size()) * (forward + backward);
  return 1 - work / *time;
}

constexpr Order kOrders[] = {Order::kFlush, Order::kOneByOne, Order::kInterleaved};

TEST(Schedule, EveryMicroBatchPassesEveryStageOnceEachWayInOrderAndNobodyWaitsForEver) {
  for (const Order order : kOrders)
    for (int members = 1; members <= 8; ++members)
      for (int each = 1; each <= 3; ++each)
        for (std::size_t micros = 1; micros <= 19; ++micros) {
          SCOPED_TRACE(testing::Message() << static_cast<int>(order) << ": " << members << " members of " << each
                                          << " stages, " << micros << " micro-batches");
          const Schedule schedule = MakeSchedule(order, members, each, micros);
          std::map<std::pair<bool, int>, std::size_t> next;
          for (int member = 0; member < members; ++member)
            for (const Action& action : schedule.actions[static_cast<std::size_t>(member)]) {
              EXPECT_EQ(action.stage % members, member);
              ASSERT_EQ(action.micro, (next[{action.backward, action.stage}]++));
            }
          EXPECT_EQ(next.size(), static_cast<std::size_t>(2 * members * each));
          for (const auto& [where, count] : next) EXPECT_EQ(count, micros);
          ASSERT_TRUE(IdleShare(schedule, members * each, micros, 1, 2).has_value());
        }
}

TEST(Schedule, IdleSharesAreThoseOfTheFormulasWhereStagesTakeAsLong) {
  for (const Order order : kOrders)
    for (int members = 1; members <= 8; ++members)
      for (int each = 1; each <= 3; ++each)
        for (const std::size_t groups : {1, 2, 3, 8})
          for (const double backward : {1.0, 2.0, 3.0}) {
            const std::size_t micros = groups * static_cast<std::size_t>(members);
            const double fill = members - 1, formula = fill / (static_cast<double>(micros) * each + fill);
            const auto idle =
                IdleShare(MakeSchedule(order, members, each, micros), members * each, micros, 1, backward);
            ASSERT_TRUE(idle.has_value());
            EXPECT_NEAR(*idle, formula, 1e-9) << static_cast<int>(order) << ": " << members << " members of " << each
                                              << " stages, " << micros << " micro-batches";
          }
}

TEST(Schedule, FlushKeepsAllMicroBatchesAndTheOthersAsFewAsTheRingIsLong) {
  EXPECT_EQ(MakeSchedule(Order::kFlush, 4, 1, 16).depth, (std::vector<std::size_t>{16, 16, 16, 16}));
  EXPECT_EQ(MakeSchedule(Order::kOneByOne, 4, 1, 16).depth, (std::vector<std::size_t>{4, 3, 2, 1}));
  EXPECT_EQ(MakeSchedule(Order::kOneByOne, 4, 1, 2).depth, (std::vector<std::size_t>{2, 2, 2, 1}));
  for (const std::size_t depth : MakeSchedule(Order::kInterleaved, 4, 2, 64).depth) EXPECT_LE(depth, 8u);
}

TEST(Schedule, IsNamed) {
  EXPECT_EQ(OrderOf("1f1b").value(), Order::kOneByOne);
  EXPECT_FALSE(OrderOf("2f2b").ok());
}

}  // namespace
}  // namespace freshet::strategy::ring
