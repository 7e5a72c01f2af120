// A member that ends leaves nobody behind who waits for it.

#include "strategy/letterbox.h"

#include <gtest/gtest.h>

#include <thread>

#include "fabric/threads/threads_fabric.h"

namespace freshet::strategy {
namespace {

constexpr fabric::Tag kLetters = 1, kAnswers = 2;

std::vector<std::byte> Letter(int number) { return std::vector<std::byte>(100, static_cast<std::byte>(number)); }

// It reads a letter while it waits for another, which does not come any more.
TEST(Letterbox, WhoEndsIsNotHeldUpByWhoStillReads) {
  const base::SystemClock clock;
  fabric::ThreadsGroup group(2, clock);
  fabric::Fabric& reader = group.member(1);
  const auto letters = std::make_shared<Letterbox>(group.member(0), kLetters);
  ASSERT_TRUE(letters->Send(1, Letter(1)).ok());
  const fabric::Transfer lent = reader.StartBorrow(0, kLetters).value(),
                         awaited = reader.StartBorrow(0, kAnswers).value();
  ASSERT_TRUE(reader.Wait(lent).ok());
  std::optional<Result<fabric::Arrived>> answer;
  std::thread reads([&] {
    answer = reader.Wait(awaited);
    reader.Release(lent);
  });
  letters->End();
  reads.join();
  ASSERT_TRUE(answer && !answer->ok());
  EXPECT_EQ(answer->error().code, Code::kPeerLost);
}

// Both listen for several letters and get them; neither looks at them.
TEST(Letterbox, TwoWhoEndAtOnceLetGoOfEachOthersLetters) {
  const base::SystemClock clock;
  fabric::ThreadsGroup group(2, clock);
  std::vector<std::thread> members;
  for (int rank : {0, 1})
    members.emplace_back([&group, rank] {
      const auto letters = std::make_shared<Letterbox>(group.member(rank), kLetters, Letterbox::Serve(), 4);
      letters->Open();
      for (int i = 1; i <= 20 && letters->Send(1 - rank, Letter(i)).ok();) ++i;  // until the other has ended
      letters->End();
      EXPECT_EQ(letters->OnTheirWay().value(), 0u);
    });
  for (std::thread& member : members) member.join();
}

}  // namespace
}  // namespace freshet::strategy
