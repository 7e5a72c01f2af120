#include "fabric/fabric_suite_testing.h"

#include <set>
#include <thread>

#include "fabric/collectives/collectives.h"

namespace freshet::fabric {
namespace {

using std::chrono::milliseconds;

// What a receive of up to 100 bytes brings, or the error's text.
std::string Get(Fabric& fabric, int from, Tag tag) {
  std::string text(100, ' ');
  const Result<Arrived> arrived = fabric.Receive(from, tag, BytesOf(text));
  if (!arrived.ok()) return arrived.error().text;
  return text.substr(0, arrived.value().bytes);
}

// The error of a receive that cannot succeed.
Error LossOf(Fabric& fabric, int from, Tag tag) {
  std::string text(10, ' ');
  const Result<Arrived> arrived = fabric.Receive(from, tag, BytesOf(text));
  EXPECT_FALSE(arrived.ok());
  return arrived.ok() ? Error{Code::kInvalid, "it succeeded"} : arrived.error();
}

void ExpectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << " lacks: " << part;
}

}  // namespace

TEST_P(FabricSuite, SaysWhoIsThere) {
  Run(GroupSpec{.size = 3, .generation = 7}, [](std::unique_ptr<Fabric>& member) {
    EXPECT_FALSE(member->name().empty());
    EXPECT_EQ(member->size(), 3);
    EXPECT_TRUE(member->rank() >= 0 && member->rank() < 3);
    EXPECT_EQ(member->generation(), 7U);
    for (int rank = 0; rank < 3; ++rank) EXPECT_FALSE(member->host(rank).empty());
  });
}

TEST_P(FabricSuite, DeliversMessagesOfOneTagInTheOrderSent) {
  Run(2, [](Fabric& fabric) {
    std::vector<std::string> texts;
    for (int i = 0; i < 50; ++i) texts.push_back(Str("message ", i));
    if (fabric.rank() == 1) {
      for (const std::string& text : texts) EXPECT_EQ(Get(fabric, 0, 5), text);
      return;
    }
    std::vector<Transfer> sent;
    for (const std::string& text : texts) sent.push_back(fabric.StartSend(1, 5, BytesOf(text)).value());
    for (const Transfer transfer : sent) EXPECT_TRUE(fabric.Wait(transfer).ok());
  });
}

TEST_P(FabricSuite, KeepsTagsApart) {
  Run(2, [](Fabric& fabric) {
    const std::string texts[] = {"zero", "one", "two"};
    if (fabric.rank() == 0) {
      std::vector<Transfer> sent;
      for (Tag tag = 0; tag < 3; ++tag) sent.push_back(fabric.StartSend(1, tag, BytesOf(texts[tag])).value());
      for (const Transfer transfer : sent) EXPECT_TRUE(fabric.Wait(transfer).ok());
    } else {
      for (const Tag tag : {2, 0, 1}) EXPECT_EQ(Get(fabric, 0, tag), texts[tag]);
    }
  });
}

TEST_P(FabricSuite, ReceivesFromAnyoneAndSaysFromWhom) {
  Run(4, [](Fabric& fabric) {
    if (fabric.rank() > 0) {
      EXPECT_TRUE(fabric.Send(0, 9, BytesOf(Str("from ", fabric.rank()))).ok());
      return;
    }
    std::set<int> seen;
    for (int i = 1; i < fabric.size(); ++i) {
      std::string text(6, ' ');
      const Result<Arrived> arrived = fabric.Receive(kAnyRank, 9, BytesOf(text));
      ASSERT_TRUE(arrived.ok()) << arrived.error().text;
      EXPECT_EQ(text, Str("from ", arrived.value().from));
      EXPECT_TRUE(seen.insert(arrived.value().from).second);
    }
  });
}

TEST_P(FabricSuite, AddsWhatArrives) {
  Run(3, [](Fabric& fabric) {
    std::vector<float> values(1000, static_cast<float>(fabric.rank() + 1));
    if (fabric.rank() > 0) {
      EXPECT_TRUE(fabric.Send(0, 1, AsBytes(values)).ok());
      return;
    }
    for (int from = 1; from < fabric.size(); ++from) {
      const Result<Arrived> arrived = fabric.Wait(fabric.StartReceiveAdd(from, 1, values).value());
      ASSERT_TRUE(arrived.ok()) << arrived.error().text;
      EXPECT_EQ(arrived.value().bytes, 4000U);
    }
    EXPECT_EQ(values, std::vector<float>(1000, 6.0F));
  });
}

TEST_P(FabricSuite, LendsWhatAPeerSends) {
  Run(2, [](Fabric& fabric) {
    std::vector<float> values(100'000, 2.5F);
    for (int i = 0; i < 3; ++i) {
      if (fabric.rank() == 0) {
        EXPECT_TRUE(fabric.Send(1, 1, AsBytes(values)).ok());
        continue;
      }
      const Transfer transfer = fabric.StartBorrow(0, 1).value();
      const Result<Arrived> arrived = fabric.Wait(transfer);
      ASSERT_TRUE(arrived.ok()) << arrived.error().text;
      const std::span<const std::byte> wanted = std::as_bytes(std::span(values));
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), arrived.value().view.begin(), arrived.value().view.end()));
      fabric.Release(transfer);
    }
  });
}

TEST_P(FabricSuite, ManyTransfersMayBeUnderWay) {
  Run(3, [](Fabric& fabric) {
    constexpr int kEach = 100;
    std::vector<float> out(kEach), in(static_cast<std::size_t>(3 * kEach));
    std::vector<Transfer> transfers;
    for (int i = 0; i < kEach; ++i) out[static_cast<std::size_t>(i)] = static_cast<float>(1000 * fabric.rank() + i);
    for (int i = 0; i < kEach; ++i) {
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == fabric.rank()) continue;
        const std::span<float> into = std::span(in).subspan(static_cast<std::size_t>(peer * kEach + kEach - 1 - i), 1);
        const std::span<const float> from = std::span(out).subspan(static_cast<std::size_t>(i), 1);
        transfers.push_back(fabric.StartSend(peer, static_cast<Tag>(i), AsBytes(from)).value());
        transfers.push_back(fabric.StartReceive(peer, static_cast<Tag>(kEach - 1 - i), AsBytes(into)).value());
      }
    }
    for (const Transfer transfer : transfers) ASSERT_TRUE(fabric.Wait(transfer).ok());
    for (int peer = 0; peer < 3; ++peer) {
      for (int i = 0; i < kEach && peer != fabric.rank(); ++i)
        ASSERT_EQ(in[static_cast<std::size_t>(peer * kEach + i)], static_cast<float>(1000 * peer + i));
    }
  });
}

TEST_P(FabricSuite, EmptyMessagesArriveToo) {
  Run(2, [](Fabric& fabric) {
    if (fabric.rank() == 0) {
      EXPECT_TRUE(fabric.Send(1, 3, {}).ok());
      EXPECT_TRUE(fabric.Send(1, 3, BytesOf(std::string("then this"))).ok());
    } else {
      EXPECT_EQ(Get(fabric, 0, 3), "");
      EXPECT_EQ(Get(fabric, 0, 3), "then this");
    }
  });
}

TEST_P(FabricSuite, AMessageMayBeShorterThanItsRoomButNotLonger) {
  Run(2, [this](Fabric& fabric) {
    std::vector<std::byte> bytes(1'000'000, std::byte{7});
    if (fabric.rank() == 0) {
      EXPECT_TRUE(fabric.Send(1, 3, std::span(bytes).first(500'000)).ok());
      const Result<void> sent = fabric.Send(1, 4, bytes);
      if (!GetParam().senders_learn_of_lack_of_room) return;
      ASSERT_FALSE(sent.ok());
      EXPECT_EQ(sent.error().code, Code::kInvalid) << sent.error().text;
    } else {
      const Result<Arrived> shorter = fabric.Receive(0, 3, bytes);
      ASSERT_TRUE(shorter.ok()) << shorter.error().text;
      EXPECT_EQ(shorter.value().bytes, 500'000U);
      const Result<Arrived> longer = fabric.Receive(0, 4, std::span(bytes).first(999'999));
      ASSERT_FALSE(longer.ok());
      EXPECT_EQ(longer.error().code, Code::kInvalid) << longer.error().text;
    }
  });
}

TEST_P(FabricSuite, BigMessagesGoBothWaysAtOnceWhateverIsWaitedForFirst) {
  for (const bool send_first : {false, true}) {
    Run(2, [&](Fabric& fabric) {
      const int peer = 1 - fabric.rank();
      const std::vector<float> out(1'310'720, static_cast<float>(fabric.rank()));
      std::vector<float> in(out.size(), -1.0F);
      const Transfer sent = fabric.StartSend(peer, 2, AsBytes(out)).value();
      const Transfer got = fabric.StartReceive(peer, 2, AsBytes(in)).value();
      EXPECT_TRUE(fabric.Wait(send_first ? sent : got).ok());
      EXPECT_TRUE(fabric.Wait(send_first ? got : sent).ok());
      EXPECT_EQ(in, std::vector<float>(out.size(), static_cast<float>(peer)));
    });
  }
}

TEST_P(FabricSuite, DoneComesTrueWithoutAWait) {
  Run(2, [](Fabric& fabric) {
    std::string text = "0123456789";
    const Transfer transfer = fabric.rank() == 0 ? fabric.StartSend(1, 1, BytesOf(std::as_const(text))).value()
                                                 : fabric.StartReceive(0, 1, BytesOf(text)).value();
    while (!fabric.Done(transfer)) Nap(fabric);
    EXPECT_TRUE(fabric.Wait(transfer).ok());
  });
}

TEST_P(FabricSuite, TimesOutNamingTheRankAndGoesOn) {
  Run(2, [](Fabric& fabric) {
    if (fabric.rank() == 0) {
      std::string text(10, ' ');
      const Result<Arrived> late = fabric.Wait(fabric.StartReceive(1, 5, BytesOf(text)).value(), milliseconds(20));
      ASSERT_FALSE(late.ok());
      EXPECT_EQ(late.error().code, Code::kTimeout);
      ExpectHas(late.error().text, "rank 1");
      EXPECT_TRUE(fabric.Send(1, 6, BytesOf(std::string("never mind"))).ok());
    } else {
      EXPECT_EQ(Get(fabric, 0, 6), "never mind");
    }
  });
}

TEST_P(FabricSuite, AnAbortReachesEveryoneWithItsReason) {
  Run(3, [](Fabric& fabric) {
    if (fabric.rank() == 1) {
      fabric.Abort({Code::kDiverged, "the loss is not finite"});
    } else {
      const Error loss = LossOf(fabric, 2 - fabric.rank(), 1);  // ranks 0 and 2 wait for each other
      EXPECT_EQ(loss.code, Code::kPeerLost);
      ExpectHas(loss.text, "rank 1");
      ExpectHas(loss.text, "the loss is not finite");
    }
    const Result<void> later = fabric.Send((fabric.rank() + 1) % 3, 2, BytesOf(std::string("hello")));
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().code, Code::kPeerLost);
  });
}

TEST_P(FabricSuite, AMemberThatIsStillNeededAndLeavesIsLostToAll) {
  Run(GroupSpec{.size = 3}, [](std::unique_ptr<Fabric>& member) {
    if (member->rank() == 2) return member.reset();
    const Error loss = LossOf(*member, member->rank() == 0 ? 2 : 0, 1);  // rank 1 waits for one who waits for the lost
    EXPECT_EQ(loss.code, Code::kPeerLost);
    ExpectHas(loss.text, "rank 2");
  });
}

TEST_P(FabricSuite, AMemberThatHasDoneItsPartMayLeave) {
  Run(GroupSpec{.size = 3}, [](std::unique_ptr<Fabric>& member) {
    if (member->rank() == 0) {
      EXPECT_TRUE(member->Send(1, 1, BytesOf(std::string("goodbye"))).ok());
      return member.reset();
    }
    if (member->rank() == 1) {
      EXPECT_EQ(Get(*member, 0, 1), "goodbye");
    }
    for (Tag tag = 10; tag < 30; ++tag) {
      if (member->rank() == 1) {
        EXPECT_TRUE(member->Send(2, tag, BytesOf(std::string("still here"))).ok());
      } else {
        EXPECT_EQ(Get(*member, 1, tag), "still here");
      }
    }
  });
}

TEST_P(FabricSuite, WhatAMemberSentBeforeItLeftArrivesHoweverLongItIs) {
  for (int round = 0; round < 5; ++round)
    Run(GroupSpec{.size = 4}, [](std::unique_ptr<Fabric>& member) {
      std::vector<float> mine(1 << 18, 1.0f), sum(mine.size());
      for (int i = 1; i < 4; ++i) {
        const int to = (member->rank() + i) % 4, from = (member->rank() + 4 - i) % 4;
        const Transfer in = member->StartReceiveAdd(from, 1, sum).value();
        const Transfer out = member->StartSend(to, 1, AsBytes(mine)).value();
        ASSERT_TRUE(member->Wait(out).ok());
        const auto arrived = member->Wait(in);
        ASSERT_TRUE(arrived.ok()) << arrived.error().text;
      }
      EXPECT_EQ(sum, std::vector<float>(mine.size(), 3.0f));
      member.reset();
    });
}

TEST_P(FabricSuite, GenerationsDoNotMix) {
  if (!GetParam().two_generations) GTEST_SKIP() << "one group at a time";
  const auto speak = [&](std::uint64_t generation) {
    Run(GroupSpec{.size = 2, .generation = generation}, [&](std::unique_ptr<Fabric>& member) {
      const std::string text = Str("of generation ", generation);
      for (int i = 0; i < 20; ++i) {
        if (member->rank() == 0) {
          EXPECT_TRUE(member->Send(1, 1, BytesOf(text)).ok());
        } else {
          EXPECT_EQ(Get(*member, 0, 1), text);
        }
      }
    });
  };
  std::thread older([&] { speak(1); });
  speak(2);
  older.join();
}

TEST_P(FabricSuite, RunsPostedJobsInOrderAndLetsThemUseTheFabric) {
  Run(2, [](Fabric& fabric) {
    std::vector<std::string> said;
    std::atomic<int> left = 20;
    for (int i = 0; i < 20; ++i) {
      fabric.Post([&, i] {
        if (fabric.rank() == 0) {
          EXPECT_TRUE(fabric.Send(1, 8, BytesOf(Str("job ", i))).ok());
        } else {
          said.push_back(Get(fabric, 0, 8));
        }
        left.fetch_sub(1);
      });
    }
    while (left.load() > 0) Nap(fabric);
    for (std::size_t i = 0; i < said.size(); ++i) EXPECT_EQ(said[i], Str("job ", i));
    EXPECT_EQ(said.size(), fabric.rank() == 0 ? 0U : 20U);
  });
}

TEST_P(FabricSuite, EveryJobThatWasPostedHasRunWhenItsMemberIsGone) {
  Run(GroupSpec{.size = 2}, [](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    std::vector<int> ran;
    int failed = 0;
    for (int i = 0; i < 5; ++i) {
      fabric.Post([&, i] {
        std::string text(10, ' ');
        const auto never = fabric.StartReceive(1 - fabric.rank(), 1, BytesOf(text));  // the first waits for the end
        failed += !never.ok() || !fabric.Wait(never.value()).ok() ? 1 : 0;
        if (i == 4) fabric.Post([&] { ran.push_back(5); });
        ran.push_back(i);
      });
    }
    member.reset();
    EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(failed, 5);
  });
}

TEST_P(FabricSuite, ASimulatedClockDrivesEveryWaitAndNoRealTimePasses) {
  if (!GetParam().simulated) GTEST_SKIP() << "its members live by clocks of their own, not by one that is handed in";
  using std::chrono::minutes;
  base::SimulatedClock clock;
  Run(GroupSpec{.size = 2, .timeout = std::chrono::hours(2), .clock = &clock}, [&](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    std::string text(100, ' ');
    if (fabric.rank() == 1) {
      EXPECT_EQ(Get(fabric, 0, 2), "go");
      clock.Sleep(minutes(59));
      EXPECT_TRUE(fabric.Send(0, 3, BytesOf(std::string("after 59 minutes"))).ok());
      EXPECT_EQ(Get(fabric, 0, 4), "enough");
      return;
    }
    const auto begun = clock.Now();
    const std::uint64_t bytes = fabric.bytes_sent();
    const auto never = fabric.Wait(fabric.StartReceive(1, 1, BytesOf(text)).value(), minutes(60));
    EXPECT_EQ(never.error().code, Code::kTimeout);
    EXPECT_EQ(clock.Now() - begun, minutes(60));
    if (fabric.name() == "tcp") {
      EXPECT_GT(fabric.bytes_sent(), bytes) << "no heartbeats";
    }

    EXPECT_TRUE(fabric.Send(1, 2, BytesOf(std::string("go"))).ok());
    const Transfer late = fabric.StartReceive(1, 3, BytesOf(text)).value();
    EXPECT_EQ(fabric.WaitAny(std::span(&late, 1), minutes(30)).error().code, Code::kTimeout);
    EXPECT_TRUE(fabric.Wait(late, minutes(30)).ok());
    EXPECT_EQ(clock.Now() - begun, minutes(60 + 59));

    Collectives collectives(fabric);  // what is waited for here runs on the fabric's own thread
    const auto pending = collectives.Start([&](Tag) -> Result<void> {
      clock.Sleep(minutes(10));
      return {};
    });
    EXPECT_TRUE(collectives.Wait(pending).ok());
    EXPECT_EQ(clock.Now() - begun, minutes(60 + 59 + 10));
    EXPECT_TRUE(fabric.Send(1, 4, BytesOf(std::string("enough"))).ok());
  });
}

TEST_P(FabricSuite, SeveralThreadsOfAMemberMayUseItAtOnce) {
  Run(2, [](Fabric& fabric) {
    std::vector<base::Thread> threads;
    for (Tag tag = 1; tag <= 3; ++tag) {
      threads.emplace_back(fabric.clock(), [&fabric, tag] {
        for (int i = 0; i < 50; ++i) {
          const std::string text = Str("thread ", tag, " round ", i);
          if ((fabric.rank() + i) % 2 == 0) {
            EXPECT_TRUE(fabric.Send(1 - fabric.rank(), tag, BytesOf(text)).ok());
          } else {
            EXPECT_EQ(Get(fabric, 1 - fabric.rank(), tag), text);
          }
        }
      });
    }
    for (base::Thread& thread : threads) thread.Join();
  });
}

}  // namespace freshet::fabric
