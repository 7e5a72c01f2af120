#include "fabric/mpi/mpi_fabric.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/random.h"
#include "fabric/mpi/mpi_testing.h"

namespace freshet::fabric {
namespace {

using std::chrono::milliseconds;

FabricFactory MpiFactory() {
  FabricFactory factory{.name = "Mpi",
                        .run = {},
                        .simulated = false,
                        .most_members = WorldSize(),
                        .seeds = 200,
                        .two_generations = false};
  factory.run = [](const GroupSpec& spec, const MemberBody& body) {
    MpiOptions options{.generation = spec.generation, .on_loss = spec.on_loss, .wait_timeout = spec.timeout};
    const auto rank = static_cast<std::size_t>(WorldRank());
    if (rank < spec.hosts.size()) options.host = spec.hosts[rank];
    RunMember(spec.size, options, body);
  };
  return factory;
}

INSTANTIATE_TEST_SUITE_P(Processes, FabricSuite, ::testing::Values(MpiFactory()), NameOfFactory);

// The bytes of message `number` from one rank to another.
std::vector<std::byte> MessageOf(std::uint64_t seed, int from, int number) {
  base::Random random(seed, static_cast<std::uint64_t>(from * 1000 + number));
  constexpr std::size_t kSizes[] = {0, 1, 63, 4096, 16'384, 16'385, 700'001, 1 << 20, (1 << 20) + 1, 5'000'003};
  std::vector<std::byte> bytes(kSizes[random.Below(std::size(kSizes))]);
  const std::uint64_t first = random.Next();
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((first + i * 0x9E3779B9) >> 7);
  return bytes;
}

TEST(MpiFabric, CarriesMessagesOfAllSizesInBothDirectionsUnchanged) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    RunMember(3, {}, [&](std::unique_ptr<Fabric>& member) {
      Fabric& fabric = *member;
      constexpr int kMessages = 10;
      std::vector<std::vector<std::byte>> out, in(kMessages * 3, std::vector<std::byte>(5'000'003));
      std::vector<Transfer> transfers;
      for (int number = 0; number < kMessages; ++number) out.push_back(MessageOf(seed, fabric.rank(), number));
      for (int number = 0; number < kMessages; ++number) {
        for (int peer = 0; peer < 3; ++peer) {
          if (peer == fabric.rank()) continue;
          transfers.push_back(fabric.StartSend(peer, 1, out[static_cast<std::size_t>(number)]).value());
          transfers.push_back(
              fabric.StartReceive(peer, 1, in[static_cast<std::size_t>(peer * kMessages + number)]).value());
        }
      }
      for (const Transfer transfer : transfers) ASSERT_TRUE(fabric.Wait(transfer).ok());
      for (int peer = 0; peer < 3; ++peer) {
        for (int number = 0; number < kMessages && peer != fabric.rank(); ++number) {
          const std::vector<std::byte> sent = MessageOf(seed, peer, number);
          std::vector<std::byte>& room = in[static_cast<std::size_t>(peer * kMessages + number)];
          room.resize(sent.size());
          ASSERT_TRUE(room == sent);
        }
      }
    });
  }
}

TEST(MpiFabric, LongMessagesAreAddedInPieces) {
  RunMember(2, {}, [](std::unique_ptr<Fabric>& member) {
    std::vector<float> values(3'000'001);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000 + 1);
    if (member->rank() == 0) {
      EXPECT_TRUE(member->Send(1, 1, AsBytes(values)).ok());
      return;
    }
    ASSERT_TRUE(member->Wait(member->StartReceiveAdd(0, 1, values).value()).ok());
    bool right = true;
    for (std::size_t i = 0; i < values.size(); ++i) right = right && values[i] == 2 * static_cast<float>(i % 1000 + 1);
    EXPECT_TRUE(right);
  });
}

TEST(MpiFabric, ManyShortMessagesThatNobodyWantsYetBlockNobody) {
  RunMember(2, {}, [](std::unique_ptr<Fabric>& member) {
    std::vector<std::byte> bytes(10'000, std::byte{3});
    std::vector<Transfer> sends;
    for (int i = 0; i < 1000 && member->rank() == 0; ++i) sends.push_back(member->StartSend(1, 1, bytes).value());
    if (member->rank() == 0) {
      EXPECT_TRUE(member->Send(1, 2, bytes).ok());
    } else {
      ASSERT_TRUE(member->Receive(0, 2, bytes).ok());
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(member->Receive(0, 1, bytes).ok());
    }
    for (const Transfer send : sends) ASSERT_TRUE(member->Wait(send).ok());
  });
}

TEST(MpiFabric, AMessageOfAnEarlierGenerationIsNotTakenForOneOfThis) {
  const MPI_Comm some = FirstOf(2);
  if (some == MPI_COMM_NULL) return;
  base::SystemClock clock;
  for (const std::uint64_t generation : {1, 2}) {
    const auto member = MpiFabric::Connect(some, {.generation = generation}, clock);
    ASSERT_TRUE(member.ok()) << member.error().text;
    std::string text = Str("of ", generation);
    if (WorldRank() == 0) {
      EXPECT_TRUE(member.value()->Send(1, 1, BytesOf(std::as_const(text))).ok());
      EXPECT_TRUE(member.value()->Send(1, 2, BytesOf(std::as_const(text))).ok());
    } else {
      std::string got(4, ' ');
      ASSERT_TRUE(member.value()->Receive(0, 2, BytesOf(got)).ok());
      EXPECT_EQ(got, text);
      // That of the first group with tag 1 is never asked for.
      if (generation == 2) {
        ASSERT_TRUE(member.value()->Receive(0, 1, BytesOf(got)).ok());
        EXPECT_EQ(got, text);
      }
    }
    Meet(some, clock);
  }
}

TEST(MpiFabric, MembersOfDifferentGenerationsDoNotMeet) {
  const MPI_Comm some = FirstOf(2);
  if (some == MPI_COMM_NULL) return;
  base::SystemClock clock;
  const auto member = MpiFabric::Connect(some, {.generation = WorldRank() == 0 ? 1U : 2U}, clock);
  ASSERT_FALSE(member.ok());
  EXPECT_EQ(member.error().code, Code::kInvalid) << member.error().text;
}

TEST(MpiFabric, ASendNobodyTookInTimeIsTakenBack) {
  RunMember(2, {}, [](std::unique_ptr<Fabric>& member) {
    std::vector<std::byte> bytes(1'000'000, std::byte{1});
    if (member->rank() == 0) {
      const auto waited = member->Wait(member->StartSend(1, 1, bytes).value(), milliseconds(20));
      ASSERT_FALSE(waited.ok());
      EXPECT_EQ(waited.error().code, Code::kTimeout);
      bytes.assign(bytes.size(), std::byte{2});
      EXPECT_TRUE(member->Send(1, 2, {}).ok());
      EXPECT_TRUE(member->Send(1, 1, bytes).ok());
      return;
    }
    ASSERT_TRUE(member->Receive(0, 2, {}).ok());
    const auto received = member->Receive(0, 1, bytes);
    ASSERT_TRUE(received.ok()) << received.error().text;
    EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size(), std::byte{2}));
  });
}

TEST(MpiFabric, ANativeSumThatAMemberStaysAwayFromEndsTheGroup) {
  RunMember(3, {.wait_timeout = milliseconds(50)}, [](std::unique_ptr<Fabric>& member) {
    // Here MPI goes on after the loss, which a process should not do: its memory has to stay.
    auto& values = *new std::vector<float>(1000, 1.0F);
    if (member->rank() == 2) {
      std::string text = "never comes";
      const auto got = member->Wait(member->StartReceive(0, 1, BytesOf(text)).value(), std::chrono::seconds(60));
      ASSERT_FALSE(got.ok());
      EXPECT_EQ(got.error().code, Code::kPeerLost) << got.error().text;
      return;
    }
    const Result<void> summed = member->NativeAllReduce(values);
    ASSERT_FALSE(summed.ok());
    EXPECT_TRUE(summed.error().code == Code::kTimeout || summed.error().code == Code::kPeerLost);
    EXPECT_EQ(member->Send((member->rank() + 1) % 3, 1, {}).error().code, Code::kPeerLost);
  });
}

TEST(MpiFabric, WhoLeavesBeforeANativeSumIsLostToThoseInItAndAfterItIsNot) {
  const MPI_Comm beside = FirstOf(3);
  RunMember(3, {}, [&](std::unique_ptr<Fabric>& member) {
    auto& values = *new std::vector<float>(1000, 1.0F);  // as above
    ASSERT_TRUE(member->NativeAllReduce(values).ok());
    EXPECT_EQ(values, std::vector<float>(1000, 3.0F));
    // A loss that one sees is one to all, also to who is still adding, or in a barrier of the same group: so all meet
    // beside it.
    base::SystemClock clock;
    Meet(beside, clock);
    if (member->rank() == 2) return member.reset();
    const Result<void> summed = member->NativeAllReduce(values);
    ASSERT_FALSE(summed.ok());
    EXPECT_EQ(summed.error().code, Code::kPeerLost);
    EXPECT_NE(summed.error().text.find("rank 2"), std::string::npos) << summed.error().text;
  });
}

TEST(MpiFabric, AFrozenMemberIsLostByItsSilenceAndLearnsOfIt) {
  RunMember(3, {.heartbeat = milliseconds(20)}, [](std::unique_ptr<Fabric>& member) {
    pid_t pid = getpid();
    if (member->rank() == 2) {
      ASSERT_TRUE(member->Send(0, 1, std::as_bytes(std::span(&pid, 1))).ok());
    } else if (member->rank() == 0) {
      ASSERT_TRUE(member->Receive(2, 1, std::as_writable_bytes(std::span(&pid, 1))).ok());
      ASSERT_EQ(kill(pid, SIGSTOP), 0);
    }
    std::string text(10, ' ');
    const auto got = member->Receive((member->rank() + 1) % 3, 2, BytesOf(text));  // nobody sends
    if (member->rank() == 0) kill(pid, SIGCONT);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, Code::kPeerLost);
    EXPECT_NE(got.error().text.find("rank 2"), std::string::npos) << got.error().text;
  });
}

TEST(MpiFabric, AFrozenMemberIsReportedAndTheOthersGoOn) {
  RunMember(3, {.heartbeat = milliseconds(100), .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    pid_t pid = getpid();
    if (member->rank() == 2) {
      ASSERT_TRUE(member->Send(0, 1, std::as_bytes(std::span(&pid, 1))).ok());
      // It was given up by both, and learns so from each.
      const Result<Arrived> lost = member->Wait(member->StartLoss(kAnyRank, 1).value());
      ASSERT_TRUE(lost.ok()) << lost.error().text;
      for (const Loss& loss : member->Lost())
        EXPECT_NE(loss.why.text.find("given up on this member"), std::string::npos) << loss.why.text;
      return;
    }
    if (member->rank() == 0) {
      ASSERT_TRUE(member->Receive(2, 1, std::as_writable_bytes(std::span(&pid, 1))).ok());
      ASSERT_EQ(kill(pid, SIGSTOP), 0);
    }
    const Result<Arrived> lost = member->Wait(member->StartLoss(kAnyRank, 0).value());
    ASSERT_TRUE(lost.ok()) << lost.error().text;
    EXPECT_EQ(lost.value().from, 2);
    std::vector<std::byte> bytes(100'000, std::byte{7});
    for (int i = 0; i < 10; ++i) {
      if ((member->rank() + i) % 2 == 0) {
        EXPECT_TRUE(member->Send(1 - member->rank(), 2, bytes).ok());
      } else {
        EXPECT_TRUE(member->Receive(1 - member->rank(), 2, bytes).ok());
      }
    }
    if (member->rank() == 0) kill(pid, SIGCONT);
  });
}

}  // namespace
}  // namespace freshet::fabric
