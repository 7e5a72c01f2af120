#include "strategy/neighbour_copies.h"

#include <gtest/gtest.h>

#include "fabric/threads/threads_testing.h"

namespace freshet::strategy {
namespace {

TEST(NeighbourCopies, EachHasWhatTheOneBeforeItRememberedTheLastTime) {
  for (const int size : {1, 2, 5})
    fabric::RunMembers(size, [&](fabric::Fabric& fabric) {
      fabric::Collectives collectives(fabric);
      NeighbourCopies copies;
      EXPECT_EQ(copies.copy(), "");
      const int before = (fabric.rank() + size - 1) % size;
      for (int time = 0; time < 20; ++time) {
        ASSERT_TRUE(
            copies.Exchange(collectives, std::string(1000, static_cast<char>('a' + time)) + Str(fabric.rank())).ok());
        std::vector<float> values(10, 1.0f);  // and goes on working
        ASSERT_TRUE(collectives.AllReduce(values).ok());
      }
      ASSERT_TRUE(copies.Exchange(collectives, "last").ok());  // those of the last time are there now
      const std::string copy = copies.copy();
      EXPECT_TRUE(size == 1 || copy == "last" || copy == std::string(1000, 'a' + 19) + Str(before)) << copy;
      ASSERT_TRUE(collectives.Barrier().ok());
    });
}

}  // namespace
}  // namespace freshet::strategy
