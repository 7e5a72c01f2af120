#include "fabric/tcp/handshake.h"

#include <gtest/gtest.h>

#include <functional>

namespace freshet::fabric::tcp {
namespace {

Badge BadgeOf(int rank) {
  Badge badge{.rank = rank, .size = 3, .job = "a job", .token = {}, .generation = 4};
  badge.token.fill(std::byte{9});
  return badge;
}

// What the two sides end with, given who they think they are; `meddle` sees every message on its way.
struct Outcome {
  std::string dialer;  // the error, if any
  std::string acceptor;
};
using Meddle = std::function<void(int step, std::string& message)>;

Outcome Meet(const Badge& dialer_badge, const Badge& acceptor_badge, int to, const Meddle& meddle = {}) {
  Outcome outcome;
  Nonce one, two;
  one.fill(std::byte{1});
  two.fill(std::byte{2});
  Dialing dialing(dialer_badge, to, one);
  Accepting accepting(acceptor_badge, two);
  const auto carry = [&](int step, std::string message) {
    if (meddle) meddle(step, message);
    return message;
  };
  const auto challenge = accepting.Challenge(carry(0, dialing.Hello()));
  if (!challenge.ok()) return {"", challenge.error().text};
  const auto proof = dialing.Prove(carry(1, challenge.value()), {"host-b", "boot", "127.0.0.1", 77});
  if (!proof.ok()) return {proof.error().text, ""};
  const auto claim = accepting.Proven(carry(2, proof.value()));
  if (!claim.ok()) return {"", claim.error().text};
  outcome.acceptor = claim.value().refusal;
  const std::string welcome = accepting.Welcome(claim.value().refusal, {"host-a", "boot", "127.0.0.1", 76}, {});
  const auto welcomed = dialing.Welcomed(carry(3, welcome));
  if (!welcomed.ok()) outcome.dialer = welcomed.error().text;
  if (!welcomed.ok()) return outcome;
  EXPECT_EQ(welcomed.value().home.host, "host-a");
  EXPECT_EQ(claim.value().home.port, 77);
  EXPECT_EQ(claim.value().rank, dialer_badge.rank);
  const auto joined = accepting.Joined(carry(4, dialing.Join(true)));
  if (!joined.ok()) outcome.acceptor = joined.error().text;
  return outcome;
}

TEST(Handshake, MembersOfAGroupKnowEachOther) {
  const Outcome outcome = Meet(BadgeOf(2), BadgeOf(0), 0);
  EXPECT_EQ(outcome.dialer, "");
  EXPECT_EQ(outcome.acceptor, "");
}

TEST(Handshake, SaysToHoldersOfTheTokenWhatIsWrongWithThem) {
  struct Case {
    std::function<void(Badge&)> change;
    std::string said;
  };
  const Case cases[] = {
      {[](Badge& b) { b.job = "another job"; }, "belongs to the job"},
      {[](Badge& b) { b.generation = 3; }, "generation 4, you are of 3"},
      {[](Badge& b) { b.generation = 5; }, "generation 4, you are of 5"},
      {[](Badge& b) { b.size = 4; }, "has 3 members, you expect 4"},
      {[](Badge& b) { b.rank = 0; }, "rank 0 cannot join"},
      {[](Badge& b) { b.rank = 3; }, "rank 3 cannot join"},
      {[](Badge& b) { b.rank = -1; }, "cannot join"},
  };
  for (const Case& c : cases) {
    Badge changed = BadgeOf(2);
    c.change(changed);
    const Outcome outcome = Meet(changed, BadgeOf(0), 0);
    EXPECT_NE(outcome.dialer.find(c.said), std::string::npos) << c.said << ": " << outcome.dialer;
    EXPECT_NE(outcome.acceptor.find(c.said), std::string::npos) << c.said << ": " << outcome.acceptor;
  }
}

TEST(Handshake, AnotherTokenIsNoticedByTheDialer) {
  Badge other = BadgeOf(2);
  other.token[31] ^= std::byte{1};
  EXPECT_NE(Meet(other, BadgeOf(0), 0).dialer.find("another job token"), std::string::npos);
}

TEST(Handshake, AnotherTokenIsNoticedByTheAcceptorOfADialerThatDoesNotCare) {
  Badge other = BadgeOf(2);
  other.token[0] ^= std::byte{1};
  Nonce nonce{};
  Dialing dialing(other, 0, nonce);
  const Badge us = BadgeOf(0);
  Accepting accepting(us, nonce);
  ASSERT_TRUE(accepting.Challenge(dialing.Hello()).ok());
  const std::string body(20, 'x');
  std::string forged(kSealBytes, '\0');
  forged[0] = static_cast<char>(body.size());
  EXPECT_FALSE(accepting.Proven(forged + body).ok());
}

TEST(Handshake, WhoeverAnswersAtTheWrongRankIsNotTaken) {
  EXPECT_NE(Meet(BadgeOf(2), BadgeOf(0), 1).dialer.find("it is rank 0, not rank 1"), std::string::npos);
}

TEST(Handshake, AnyBitChangedOnTheWayEndsIt) {
  std::vector<std::size_t> sizes(5);
  Meet(BadgeOf(2), BadgeOf(0), 0,
       [&](int step, std::string& message) { sizes[static_cast<std::size_t>(step)] = message.size(); });
  for (int step = 0; step < 5; ++step) {
    for (std::size_t bit = 0; bit < sizes[static_cast<std::size_t>(step)] * 8; ++bit) {
      const Outcome outcome = Meet(BadgeOf(2), BadgeOf(0), 0, [&](int at, std::string& message) {
        if (at == step) message[bit / 8] = static_cast<char>(message[bit / 8] ^ (1 << (bit % 8)));
      });
      ASSERT_FALSE(outcome.dialer.empty() && outcome.acceptor.empty()) << "step " << step << " bit " << bit;
    }
  }
}

TEST(Handshake, AProofOfAnotherMeetingIsWorthNothing) {
  std::string recorded;
  Meet(BadgeOf(2), BadgeOf(0), 0, [&](int step, std::string& message) {
    if (step == 2) recorded = message;
  });
  Nonce one, fresh;
  one.fill(std::byte{1});
  fresh.fill(std::byte{77});
  const Badge ours = BadgeOf(0), theirs = BadgeOf(2);
  Dialing dialing(theirs, 0, one);
  Accepting accepting(ours, fresh);
  ASSERT_TRUE(accepting.Challenge(dialing.Hello()).ok());
  EXPECT_FALSE(accepting.Proven(recorded).ok());
}

TEST(Handshake, LongMessagesAreRefusedByTheirFirstBytes) {
  EXPECT_FALSE(SealedBytes(std::string(kSealBytes, '\xff')).ok());
  EXPECT_FALSE(SealedBytes("").ok());
  EXPECT_TRUE(SealedBytes(std::string(kSealBytes, '\0')).ok());
}

}  // namespace
}  // namespace freshet::fabric::tcp
