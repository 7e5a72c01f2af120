#include "fabric/threads/threads_fabric.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/simulated_clock.h"
#include "fabric/collectives/collectives.h"
#include "fabric/fabric_suite_testing.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

using std::chrono::milliseconds;

FabricFactory ThreadsFactory() {
  return {.name = "threads", .run = [](const GroupSpec& spec, const MemberBody& body) {
            const base::SystemClock system;
            const base::Clock& clock = spec.clock != nullptr ? *spec.clock : static_cast<const base::Clock&>(system);
            std::optional<base::SimulatedClock::Participant> here;
            if (spec.clock != nullptr) here.emplace(*spec.clock);
            ThreadsGroup group(
                spec.size, clock,
                {.generation = spec.generation, .on_loss = spec.on_loss, .timeout = spec.timeout, .hosts = spec.hosts});
            std::vector<std::unique_ptr<Fabric>> members;
            for (int rank = 0; rank < spec.size; ++rank) members.push_back(group.Take(rank));
            RunAll(members, clock, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Threads, FabricSuite, ::testing::Values(ThreadsFactory()), NameOfFactory);

}  // namespace

TEST(ThreadsFabric, ABorrowShowsTheSendersOwnMemory) {
  std::vector<float> shared(10, 1.0F);
  RunMembers(2, [&](Fabric& fabric) {
    if (fabric.rank() == 0) {
      EXPECT_TRUE(fabric.Send(1, 1, AsBytes(shared)).ok());
      return;
    }
    const Transfer transfer = fabric.StartBorrow(0, 1).value();
    EXPECT_EQ(static_cast<const void*>(fabric.Wait(transfer).value().view.data()), shared.data());
    fabric.Release(transfer);
    fabric.Release(transfer);  // again: nothing
  });
}

TEST(ThreadsFabric, ASendEndsWhenWhatItLentIsReleased) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  const std::string text = "lent";
  const Transfer sent = group.member(0).StartSend(1, 1, BytesOf(text)).value();
  const Transfer lent = group.member(1).StartBorrow(0, 1).value();
  ASSERT_TRUE(group.member(1).Wait(lent).ok());
  EXPECT_FALSE(group.member(0).Done(sent));
  group.member(1).Release(lent);
  EXPECT_TRUE(group.member(0).Done(sent));
  EXPECT_TRUE(group.member(0).Wait(sent).ok());
}

TEST(ThreadsFabric, AMemberThatLeavesReleasesWhatItBorrowed) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  const std::string text = "lent";
  const Transfer sent = group.member(0).StartSend(1, 1, BytesOf(text)).value();
  ASSERT_TRUE(group.member(1).Wait(group.member(1).StartBorrow(0, 1).value()).ok());
  group.Take(1).reset();
  EXPECT_TRUE(group.member(0).Wait(sent).ok());
}

TEST(ThreadsFabric, NothingIsDeliveredAfterWhatWasTakenBack) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  const std::string first = "first", second = "second";
  const Transfer lent = group.member(1).StartBorrow(0, 1).value();
  const Transfer sent = group.member(0).StartSend(1, 1, BytesOf(first)).value();
  ASSERT_TRUE(group.member(0).StartSend(1, 1, BytesOf(second)).ok());
  group.member(0).Abort({Code::kIo, "its disk is full"});
  EXPECT_EQ(group.member(0).Wait(sent).error().code, Code::kPeerLost);
  EXPECT_EQ(group.member(1).Wait(lent).error().code, Code::kPeerLost);
}

TEST(ThreadsFabric, ASendThatTimedOutIsNeverDelivered) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  {
    const std::string gone = "gone";
    const Transfer sent = group.member(0).StartSend(1, 1, BytesOf(gone)).value();
    EXPECT_EQ(group.member(0).Wait(sent, milliseconds(1)).error().code, Code::kTimeout);
    EXPECT_EQ(group.member(0).Wait(sent).error().code, Code::kInvalid);  // it is over
  }
  const std::string text = "here";
  std::string into = "    ";
  const Transfer sent = group.member(0).StartSend(1, 1, BytesOf(text)).value();
  EXPECT_TRUE(group.member(1).Receive(0, 1, BytesOf(into)).ok());
  EXPECT_TRUE(group.member(0).Wait(sent).ok());
  EXPECT_EQ(into, text);
}

TEST(ThreadsFabric, DeadlinesGoByTheClockThatWasHandedIn) {
  base::ManualClock clock;
  ThreadsGroup group(2, clock, {.timeout = std::chrono::hours(1)});
  std::string into = "    ";
  const Transfer got = group.member(0).StartReceive(1, 1, BytesOf(into)).value();
  Result<Arrived> result = Arrived{};
  std::thread waiter([&] { result = group.member(0).Wait(got); });
  // The wait may begin before or after the hands first move: move them until it has ended.
  std::atomic<bool> ended = false;
  std::thread hands([&] {
    while (!ended.load()) clock.Advance(std::chrono::hours(2)), std::this_thread::yield();
  });
  waiter.join();
  ended.store(true);
  hands.join();
  EXPECT_EQ(result.error().code, Code::kTimeout);
}

TEST(ThreadsFabric, CountsThePayloadItSends) {
  RunMembers(2, [](Fabric& fabric) {
    std::vector<float> values(1000, 1.0F);
    ASSERT_TRUE(Collectives(fabric).AllReduce(values, Algorithm::kRing).ok());
    EXPECT_EQ(fabric.bytes_sent(), 4000U);  // 2 (n - 1) / n of 4000
    ASSERT_TRUE(fabric.NativeAllReduce(values).ok());
    EXPECT_EQ(fabric.bytes_sent(), 8000U);
  });
}

TEST(ThreadsFabric, RefusesRanksThatAreNotThereAndItself) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  for (const int rank : {-2, 0, 2}) {
    EXPECT_EQ(group.member(0).StartSend(rank, 1, {}).error().code, Code::kInvalid);
    EXPECT_EQ(group.member(0).StartReceive(rank, 1, {}).error().code, Code::kInvalid);
  }
  EXPECT_EQ(group.member(0).StartSend(kAnyRank, 1, {}).error().code, Code::kInvalid);
}

TEST(NativeAllReduce, RefusesDifferentLengthsEverywhereAndGoesOn) {
  for (const std::size_t length : {10U, 100'000U}) {
    RunMembers(3, [&](Fabric& fabric) {
      std::vector<float> values(length + (fabric.rank() == 1 ? 1 : 0), 1.0F), right(length, 1.0F);
      const Result<void> result = fabric.NativeAllReduce(values);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, Code::kInvalid);
      ASSERT_TRUE(fabric.NativeAllReduce(right).ok());
      EXPECT_EQ(right, std::vector<float>(length, 3.0F));
    });
  }
}

TEST(NativeAllReduce, SumsOfAllSizesFollowEachOther) {
  for (const int cores : {1, 64}) {  // with few cores short sums are made another way
    RunMembers(3,
               [](Fabric& fabric) {
                 for (std::size_t round = 0; round < 300; ++round) {
                   const std::size_t length = round * 7919 % (round % 3 == 0 ? 9000 : 200);
                   std::vector<float> values(length, static_cast<float>(round) + static_cast<float>(fabric.rank()));
                   ASSERT_TRUE(fabric.NativeAllReduce(values).ok());
                   ASSERT_EQ(values, std::vector<float>(length, 3.0F * static_cast<float>(round) + 3.0F));
                 }
               },
               {.cores = cores});
  }
}

TEST(NativeAllReduce, TimesOutNamingWhoIsMissingAndEndsTheGroup) {
  RunMembers(3,
             [](Fabric& fabric) {
               if (fabric.rank() == 2) return;
               std::vector<float> values(10'000, 1.0F);
               const Result<void> result = fabric.NativeAllReduce(values);
               ASSERT_FALSE(result.ok());
               EXPECT_NE(result.error().text.find("rank 2"), std::string::npos) << result.error().text;
               EXPECT_EQ(fabric.NativeAllReduce(values).error().code, Code::kPeerLost);
             },
             {.timeout = milliseconds(20)});
}

TEST(NativeAllReduce, GivesUpWhenAMemberIsGone) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  std::thread leaver([gone = group.Take(1)]() mutable { gone.reset(); });
  std::vector<float> values(10, 1.0F);
  const Result<void> result = group.member(0).NativeAllReduce(values);
  leaver.join();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kPeerLost);
  EXPECT_NE(result.error().text.find("rank 1"), std::string::npos) << result.error().text;
}

TEST(ThreadsFabric, AMemberMayBeDestroyedWithWorkPosted) {
  const base::SystemClock clock;
  ThreadsGroup group(2, clock);
  std::vector<float> values(10, 1.0F), more(100'000, 1.0F);
  std::unique_ptr<Fabric> member = group.Take(0);
  Collectives collectives(*member);
  const auto native = collectives.StartAllReduce(values), ring = collectives.StartAllReduce(more, Algorithm::kRing);
  member.reset();
  EXPECT_EQ(collectives.Wait(native).error().code, Code::kPeerLost);
  EXPECT_EQ(collectives.Wait(ring).error().code, Code::kPeerLost);
}

}  // namespace freshet::fabric
