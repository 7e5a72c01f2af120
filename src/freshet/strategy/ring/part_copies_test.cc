#include "strategy/ring/part_copies.h"

#include <gtest/gtest.h>

#include "fabric/threads/threads_testing.h"

namespace freshet::strategy::ring {
namespace {

// What a member has after that many updates: some of them nothing, some more than a few pieces.
std::string PartOf(int member, std::uint64_t made) {
  const std::size_t sizes[] = {0, 3, 256 << 10, (256 << 10) + 1, 700'000};
  const std::size_t size = sizes[(static_cast<std::size_t>(member) + made) % 5];
  std::string part(size, '\0');
  for (std::size_t i = 0; i < size; ++i) part[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(member) + made);
  return part;
}

TEST(PartCopies, TheNextMemberHasThoseOfAllPointsBefore) {
  for (int members = 1; members <= 4; ++members)
    fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
      SCOPED_TRACE(members);
      fabric::Collectives collectives(fabric, {});
      PartCopies copies;
      const int before = (fabric.rank() + members - 1) % members;
      for (std::uint64_t made = 1; made <= 12; ++made) {
        ASSERT_TRUE(copies.Exchange(collectives, made, PartOf(fabric.rank(), made)).ok());
        EXPECT_EQ(*copies.Own(made), PartOf(fabric.rank(), made));
        for (std::uint64_t point = 1; point < made && members > 1; ++point)
          ASSERT_EQ(*copies.Before(point), PartOf(before, point));
        if (members == 1) EXPECT_EQ(copies.Before(made), nullptr);
      }
      copies.DropBefore(8);
      EXPECT_EQ(copies.own(), (std::vector<std::uint64_t>{8, 9, 10, 11, 12}));
      EXPECT_EQ(copies.Own(7), nullptr);
      EXPECT_EQ(copies.Before(7), nullptr);
      ASSERT_TRUE(collectives.Barrier().ok());
      std::uint64_t bytes = 0;
      for (std::uint64_t made = 1; made < 12; ++made) bytes += PartOf(fabric.rank(), made).size();
      EXPECT_GE(copies.bytes_sent(), members > 1 ? bytes : 0);
      copies.Forget();
      EXPECT_TRUE(copies.own().empty() && copies.before().empty());
      EXPECT_GE(copies.bytes_sent(), members > 1 ? bytes : 0);
    });
}

TEST(PartCopies, WhatDidNotComeIsSaidAtTheNextPoint) {
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric, {});
    PartCopies copies;
    ASSERT_TRUE(copies.Exchange(collectives, 1, PartOf(fabric.rank(), 1)).ok());
    if (fabric.rank() == 0) {
      fabric.Abort({Code::kPeerLost, "rank 0 gives up"});
      return;
    }
    Result<void> later;
    for (std::uint64_t made = 2; made < 10 && later.ok(); ++made)
      later = copies.Exchange(collectives, made, PartOf(fabric.rank(), made));
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().code, Code::kPeerLost);
    EXPECT_NE(copies.Own(1), nullptr);
  });
}

}  // namespace
}  // namespace freshet::strategy::ring
