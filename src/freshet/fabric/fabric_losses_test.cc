// What every fabric does when members are lost and the group goes on, and waiting for several things at once.

#include <set>

#include "fabric/fabric_suite_testing.h"
#include "fabric/subset.h"

namespace freshet::fabric {
namespace {

using std::chrono::milliseconds;

// A message of up to 100 bytes and its sender.
struct Letter {
  int from = kAnyRank;
  std::string text;
};

// Started receives have their room here.
class Inbox {
 public:
  explicit Inbox(Fabric& fabric) : fabric_(fabric) {}
  Transfer Start(const From& from, Tag tag) { return fabric_.StartReceive(from, tag, BytesOf(room_)).value(); }
  Letter Wait(Transfer transfer) {
    const Result<Arrived> arrived = fabric_.Wait(transfer);
    if (!arrived.ok()) return {kAnyRank, arrived.error().text};
    return {arrived.value().from, room_.substr(0, arrived.value().bytes)};
  }

 private:
  Fabric& fabric_;
  std::string room_ = std::string(100, ' ');
};

Letter Get(Fabric& fabric, const From& from, Tag tag) {
  Inbox inbox(fabric);
  return inbox.Wait(inbox.Start(from, tag));
}

void Say(Fabric& fabric, int to, Tag tag, const std::string& text) {
  const Result<void> said = fabric.Send(to, tag, BytesOf(text));
  EXPECT_TRUE(said.ok()) << said.error().text;
}

// The error of a transfer with a member that is lost, at its start or its end.
Error ErrorOf(Fabric& fabric, const From& from, Tag tag) {
  std::string room(100, ' ');
  const Result<Arrived> arrived = fabric.Receive(from, tag, BytesOf(room));
  EXPECT_FALSE(arrived.ok());
  return arrived.ok() ? Error{Code::kInvalid, "it succeeded"} : arrived.error();
}

void ExpectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << " lacks: " << part;
}

}  // namespace

TEST_P(FabricSuite, AReportedLossFailsTransfersWithTheLostAndTheOthersGoOn) {
  Run(GroupSpec{.size = 3, .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    if (fabric.rank() == 2) {
      EXPECT_EQ(Get(fabric, 0, 1).text, "give up");
      EXPECT_EQ(Get(fabric, 1, 1).text, "give up");
      fabric.Abort({Code::kDiverged, "the loss is not finite"});
      EXPECT_EQ(ErrorOf(fabric, 0, 2).code, Code::kPeerLost);
      return;
    }
    const int other = 1 - fabric.rank();
    Inbox anyone(fabric), one_of_two(fabric), only_lost(fabric);
    const int both[] = {other, 2}, lost[] = {2};
    const Transfer from_anyone = anyone.Start(kAnyRank, 3), from_two = one_of_two.Start(From(both), 4);
    const Transfer from_lost = only_lost.Start(From(lost), 5), loss = fabric.StartLoss(kAnyRank, 0).value();
    EXPECT_TRUE(fabric.Lost().empty());
    Say(fabric, 2, 1, "give up");

    const Error error = ErrorOf(fabric, 2, 6);
    EXPECT_EQ(error.code, Code::kPeerLost);
    ExpectHas(error.text, "rank 2");
    ExpectHas(error.text, "the loss is not finite");
    EXPECT_EQ(only_lost.Wait(from_lost).from, kAnyRank);
    EXPECT_EQ(fabric.Wait(loss).value().from, 2);
    EXPECT_EQ(fabric.Send(2, 7, BytesOf(std::string("anybody?"))).error().code, Code::kPeerLost);

    const std::string first = "still here", second = "and here";  // they live until the transfers are over
    const Transfer sent = fabric.StartSend(other, 3, BytesOf(first)).value();
    EXPECT_EQ(anyone.Wait(from_anyone).from, other);
    EXPECT_TRUE(fabric.Wait(sent).ok());
    const Transfer more = fabric.StartSend(other, 4, BytesOf(second)).value();
    EXPECT_EQ(one_of_two.Wait(from_two).text, second);
    EXPECT_TRUE(fabric.Wait(more).ok());

    const std::vector<Loss> losses = fabric.Lost();
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].rank, 2);
    EXPECT_FALSE(losses[0].left);
    ExpectHas(losses[0].why.text, "the loss is not finite");
    EXPECT_TRUE(fabric.Lost(1).empty());
  });
}

TEST_P(FabricSuite, LossesAreToldInOrderAndWakeWhoWaitsForThem) {
  Run(GroupSpec{.size = 4, .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    if (fabric.rank() > 0) {
      EXPECT_EQ(Get(fabric, 0, 1).text, "leave");
      return member.reset();
    }
    for (std::size_t known = 0; known < 3; ++known) {
      const int leaves = static_cast<int>(3 - known);
      const int others[] = {1};
      Inbox inbox(fabric);
      const Transfer message = inbox.Start(kAnyRank, 2), none = fabric.StartLoss(From(others), 1).value();
      const Transfer waits[] = {message, none, fabric.StartLoss(kAnyRank, known).value()};
      EXPECT_FALSE(fabric.Done(waits[2]));
      Say(fabric, leaves, 1, "leave");
      const Result<std::size_t> woken = fabric.WaitAny(std::span(waits).last(1));
      ASSERT_TRUE(woken.ok()) << woken.error().text;
      EXPECT_EQ(fabric.Wait(waits[2]).value().from, leaves);
      const std::vector<Loss> losses = fabric.Lost(known);
      ASSERT_EQ(losses.size(), 1U);
      EXPECT_EQ(losses[0].rank, leaves);
      EXPECT_TRUE(losses[0].left);
      EXPECT_EQ(fabric.Done(message), known == 2);  // it can come from nobody now
      EXPECT_FALSE(fabric.Done(none));
      const Code code = fabric.Wait(message, milliseconds(1)).error().code;
      EXPECT_EQ(code, known == 2 ? Code::kPeerLost : Code::kTimeout);
    }
    EXPECT_EQ(fabric.Lost().size(), 3U);
    EXPECT_EQ(fabric.Wait(fabric.StartLoss(2, 0).value()).value().from, 2);  // known already: at once
  });
}

TEST_P(FabricSuite, WhoLeavesAGroupThatReportsIsLostToNobodyElse) {
  Run(GroupSpec{.size = 3, .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    if (fabric.rank() == 2) return member.reset();
    const int other = 1 - fabric.rank();
    EXPECT_EQ(ErrorOf(fabric, 2, 1).code, Code::kPeerLost);
    std::vector<float> mine(300'000, static_cast<float>(fabric.rank() + 1)), theirs(mine.size());
    const Transfer in = fabric.StartReceive(other, 2, AsBytes(theirs)).value();
    const Transfer out = fabric.StartSend(other, 2, AsBytes(mine)).value();
    EXPECT_TRUE(fabric.Wait(out).ok());
    ASSERT_TRUE(fabric.Wait(in).ok());
    EXPECT_EQ(theirs, std::vector<float>(mine.size(), static_cast<float>(other + 1)));
  });
}

TEST_P(FabricSuite, AReportedLossEndsTheEnginesOwnSumsAndNothingElse) {
  Run(GroupSpec{.size = 3, .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    Fabric& fabric = *member;
    if (fabric.rank() == 2) return member.reset();
    EXPECT_EQ(fabric.Wait(fabric.StartLoss(2, 0).value()).value().from, 2);
    std::vector<float> values(10'000, 1.0F);
    if (fabric.has_native()) {
      EXPECT_EQ(fabric.NativeAllReduce(values).error().code, Code::kPeerLost);
    }
    if (fabric.rank() == 0) return Say(fabric, 1, 1, "still here");
    EXPECT_EQ(Get(fabric, 0, 1).text, "still here");
  });
}

TEST_P(FabricSuite, WaitsForAnyOfSeveralAndLeavesTheOthersAsTheyAre) {
  Run(3, [](Fabric& fabric) {
    if (fabric.rank() > 0) {
      EXPECT_EQ(Get(fabric, 0, 9).text, "now");
      return Say(fabric, 0, static_cast<Tag>(fabric.rank()), Str("from ", fabric.rank()));
    }
    Inbox inboxes[] = {Inbox(fabric), Inbox(fabric)};
    std::vector<Transfer> waits = {inboxes[0].Start(1, 1), inboxes[1].Start(2, 2)};
    const Result<std::size_t> none = fabric.WaitAny(waits, milliseconds(10));
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::kTimeout);
    ExpectHas(none.error().text, "rank 1");
    Say(fabric, 2, 9, "now");
    const Result<std::size_t> second = fabric.WaitAny(waits);
    ASSERT_TRUE(second.ok()) << second.error().text;
    EXPECT_EQ(second.value(), 1U);
    EXPECT_TRUE(fabric.Done(waits[1]));
    EXPECT_FALSE(fabric.Done(waits[0]));
    EXPECT_EQ(inboxes[1].Wait(waits[1]).text, "from 2");
    waits.pop_back();
    Say(fabric, 1, 9, "now");
    EXPECT_EQ(fabric.WaitAny(waits).value(), 0U);
    EXPECT_EQ(inboxes[0].Wait(waits[0]).text, "from 1");
    EXPECT_EQ(fabric.WaitAny({}).error().code, Code::kInvalid);
  });
}

TEST_P(FabricSuite, ReceivesFromTheMembersOfASetAlone) {
  Run(4, [](Fabric& fabric) {
    const std::string text = Str("from ", fabric.rank());
    if (fabric.rank() == 2) {  // the first to send, and not meant
      const Transfer sent = fabric.StartSend(0, 1, BytesOf(text)).value();
      for (const int other : {1, 3}) Say(fabric, other, 2, "your turn");
      EXPECT_TRUE(fabric.Wait(sent).ok());
    } else if (fabric.rank() > 0) {
      EXPECT_EQ(Get(fabric, 2, 2).text, "your turn");
      Say(fabric, 0, 1, text);
    } else {
      const int odd[] = {1, 3};
      std::set<int> seen;
      for (int i = 0; i < 2; ++i) {
        const Letter letter = Get(fabric, From(odd), 1);
        EXPECT_EQ(letter.text, Str("from ", letter.from));
        EXPECT_TRUE(seen.insert(letter.from).second);
      }
      EXPECT_EQ(seen, (std::set<int>{1, 3}));
      EXPECT_EQ(Get(fabric, kAnyRank, 1).from, 2);
      const int wrong[] = {1, 4}, self[] = {0};
      for (const From& from : {From(wrong), From(self), From(std::span<const int>())})
        EXPECT_EQ(ErrorOf(fabric, from, 1).code, Code::kInvalid);
    }
  });
}

TEST_P(FabricSuite, ASubsetCountsItsOwnMembersAndLosses) {
  Run(GroupSpec{.size = 4, .on_loss = OnLoss::kReport}, [](std::unique_ptr<Fabric>& member) {
    if (member->rank() == 0) return member.reset();
    if (member->rank() == 2) {
      EXPECT_EQ(Get(*member, 1, 1).text, "leave");
      return member.reset();
    }
    EXPECT_EQ(member->Wait(member->StartLoss(0, 0).value()).value().from, 0);
    Subset some(*member, {1, 2, 3}, Tag{1} << 40);
    EXPECT_TRUE(some.Lost().empty());
    const int last[] = {2};
    if (some.rank() == 2) return Say(some, 0, 2, "third of three");
    EXPECT_EQ(Get(some, From(last), 2).from, 2);
    const Transfer loss = some.StartLoss(kAnyRank, 0).value();
    EXPECT_FALSE(some.Done(loss));
    Say(*member, 2, 1, "leave");
    EXPECT_EQ(some.WaitAny(std::span(&loss, 1)).value(), 0U);
    EXPECT_EQ(some.Wait(loss).value().from, 1);
    ASSERT_EQ(some.Lost().size(), 1U);
    EXPECT_EQ(some.Lost()[0].rank, 1);
  });
}

}  // namespace freshet::fabric
