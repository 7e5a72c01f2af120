#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace freshet::base {
namespace {

int Open() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, IsClosedOnceItsOwnerIsGone) {
  int number = -1;
  {
    const Descriptor file(Open());
    number = file.get();
    EXPECT_TRUE(file.open());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(Descriptor, IsNoneWhenNothingWasOpened) {
  Descriptor none, failed(-1);
  EXPECT_FALSE(none.open());
  EXPECT_FALSE(failed.open());
  none.Close();
  EXPECT_EQ(none.get(), -1);
}

TEST(Descriptor, MovesAndIsThenOwnedByOneAlone) {
  Descriptor first(Open());
  const int number = first.get();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first.open());
  Descriptor third(Open());
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_FALSE(second.open());
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(IsOpen(number));
  third.Close();
  EXPECT_FALSE(third.open());
  EXPECT_FALSE(IsOpen(number));
}

TEST(Descriptor, StaysOpenWhenItIsGivenAwayOrLent) {
  Descriptor owner(Open());
  const int number = owner.get();
  {
    Descriptor lent = Descriptor::Lent(number), moved;
    moved = std::move(lent);
    EXPECT_EQ(moved.get(), number);
  }
  EXPECT_TRUE(IsOpen(number));
  EXPECT_EQ(owner.Release(), number);
  EXPECT_FALSE(owner.open());
  EXPECT_TRUE(IsOpen(number));
  owner = Descriptor(number);  // no longer lent, it is closed again
  owner.Close();
  EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace freshet::base
