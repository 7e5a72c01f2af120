#include "fabric/tcp/tcp_post.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "fabric/collectives/collectives.h"
#include "fabric/launch/environment.h"
#include "fabric/membership/elastic_group.h"
#include "fabric/tcp/socket.h"
#include "fabric/tcp/tcp_fabric.h"

namespace freshet::fabric {
namespace {

using namespace std::chrono_literals;

TcpPost::Options Mine(std::byte token = std::byte{0x5a}) {
  TcpPost::Options options;
  options.job = "a test";
  options.token.fill(token);
  return options;
}

class TcpPostTest : public testing::Test {
 protected:
  std::unique_ptr<TcpPost> Open(TcpPost::Options options = Mine()) {
    return TcpPost::Open(std::move(options), clock_).value();
  }
  // What comes to `to` within a second, while others move what they send.
  std::optional<std::string> Next(TcpPost& to, const std::vector<TcpPost*>& others) {
    std::atomic<bool> over = false;
    std::vector<std::jthread> movers;
    for (TcpPost* const other : others)
      movers.emplace_back([this, other, &over] {
        while (!over) (void)other->Receive(clock_.Now() + 20ms);
      });
    auto letter = to.Receive(clock_.Now() + 1s);
    over = true;
    return letter;
  }

  base::SystemClock clock_;
};

// Who has told how a worker ended, and ends itself.
TEST_F(TcpPostTest, WhatWasSentAtTheLastMomentIsDelivered) {
  const auto other = Open();
  for (int time = 0; time < 20; ++time) {
    std::jthread sender([&] {
      const auto one = Open();
      one->Send(other->address(), "the end");
      one->Send("127.0.0.1:1", "to nobody");
      one->Flush(clock_.Now() + 5s);
    });
    EXPECT_EQ(other->Receive(clock_.Now() + 5s), "the end");
  }
}

TEST_F(TcpPostTest, LettersArriveWholeWhateverTheirLength) {
  const auto one = Open(), other = Open();
  for (const std::size_t bytes : {0, 1, 1000, 1 << 20}) {
    std::string letter(bytes, 'x');
    if (bytes > 0) letter.back() = 'y';
    one->Send(other->address(), letter);
    EXPECT_EQ(Next(*other, {one.get()}), letter);
  }
  EXPECT_EQ(other->strangers(), 0u);
}

TEST_F(TcpPostTest, WhoHasAnotherTokenOrJobIsAStranger) {
  const auto mine = Open();
  TcpPost::Options elsewhere = Mine();
  elsewhere.job = "another";
  for (const auto& wrong : {Open(Mine(std::byte{1})), Open(elsewhere)}) {
    wrong->Send(mine->address(), "hello");
    EXPECT_EQ(Next(*mine, {wrong.get()}), std::nullopt);
  }
  EXPECT_EQ(mine->strangers(), 2u);
}

// What one connection said is worth nothing to another.
TEST_F(TcpPostTest, ALetterThatIsSentAgainIsRefused) {
  const auto mine = Open();
  const auto dial = [&] {
    auto socket = tcp::Connect(tcp::ParseAddress(mine->address()).value(), tcp::Deadline(clock_, 1s)).value();
    return tcp::Conduit(std::move(socket));
  };
  tcp::Nonce nonce;
  std::string sealed;
  std::optional<std::string> first, second;
  std::jthread receiver([&] {
    first = mine->Receive(clock_.Now() + 2s);
    second = mine->Receive(clock_.Now() + 300ms);
  });
  for (int time = 0; time < 2; ++time) {
    tcp::Conduit conduit = dial();
    const std::string drawn = tcp::ReceiveAll(conduit, nonce.size(), tcp::Deadline(clock_, 1s)).value();
    if (time == 0) {
      std::memcpy(nonce.data(), drawn.data(), nonce.size());
      sealed = tcp::SealLetter(Mine().token, "a test", nonce, "once");
    }
    ASSERT_TRUE(tcp::SendAll(conduit, sealed, tcp::Deadline(clock_, 1s)).ok());
    if (time == 1) std::this_thread::sleep_for(100ms);
  }
  receiver.join();
  EXPECT_EQ(first, "once");
  EXPECT_EQ(second, std::nullopt);
  EXPECT_EQ(mine->strangers(), 1u);
}

TEST_F(TcpPostTest, StrangersWhoSayNothingOrTooMuchDoNotKeepOthersOut) {
  TcpPost::Options options = Mine();
  options.patience = 200ms;
  options.guests = 4;
  const auto mine = Open(options), other = Open();
  std::vector<base::Descriptor> silent;
  for (int i = 0; i < 10; ++i)
    silent.push_back(tcp::Connect(tcp::ParseAddress(mine->address()).value(), tcp::Deadline(clock_, 1s)).value());
  auto loud = tcp::Connect(tcp::ParseAddress(mine->address()).value(), tcp::Deadline(clock_, 1s)).value();
  const std::string noise(4000, '\xff');
  ASSERT_GT(::send(loud.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
  other->Send(mine->address(), "let me in");
  std::optional<std::string> letter;
  for (int i = 0; i < 5 && !letter; ++i) letter = Next(*mine, {other.get()});
  EXPECT_EQ(letter, "let me in");
  EXPECT_GE(mine->strangers(), 8u);
}

TEST_F(TcpPostTest, NobodyIsWaitedForWhereNobodyIs) {
  const auto mine = Open();
  mine->Send("127.0.0.1:1", "hello?");
  mine->Send("no address", "hello?");
  const auto begun = clock_.Now();
  EXPECT_EQ(mine->Receive(clock_.Now() + 50ms), std::nullopt);
  EXPECT_LT(clock_.Now() - begun, 900ms);
  std::jthread waker([&] {
    std::this_thread::sleep_for(20ms);
    mine->Wake();
  });
  EXPECT_EQ(mine->Receive(clock_.Now() + 30s), std::nullopt);
  EXPECT_LT(clock_.Now() - begun, 10s);
}

// A group over TCP of which one leaves without a word: the others go on, in a generation without it.
TEST_F(TcpPostTest, CarriesAGroupThatOutlivesAMember) {
  constexpr std::size_t kMembers = 4;
  constexpr int kSteps = 200, kLast = 50;
  const std::string job = Str("elastic ", ::getpid());
  std::vector<std::unique_ptr<TcpPost>> posts;
  Roster first{.generation = 1, .seats = {}};
  for (std::size_t i = 0; i < kMembers; ++i) {
    TcpPost::Options options = Mine();
    options.job = job;
    posts.push_back(Open(options));
    first.seats.push_back({.id = i + 1, .address = posts[i]->address(), .step = 0});
  }
  std::vector<int> steps(kMembers, 0);
  std::vector<std::size_t> sizes(kMembers, 0);
  std::vector<std::jthread> members;
  for (std::size_t i = 0; i < kMembers; ++i)
    members.emplace_back([&, i] {
      const auto connect = [&](const Roster& roster, int rank,
                               const std::atomic<bool>& stop) -> Result<std::unique_ptr<Fabric>> {
        TcpOptions options;
        options.stop = &stop;
        options.rank = rank;
        options.size = static_cast<int>(roster.seats.size());
        options.generation = roster.generation;
        options.job = job;
        options.token = Mine().token;
        options.connect_timeout = 5s;
        options.rendezvous = Str("127.0.0.1:", PortOf(Str(job, " ", roster.generation)));
        return std::unique_ptr<Fabric>(TRY(TcpFabric::Connect(options, clock_)));
      };
      ElasticGroup group({.membership = {.retry = 100ms, .patience = 10s}}, first.seats[i], first, *posts[i], connect,
                         clock_);
      const auto begun = group.Begin();
      ASSERT_TRUE(begun.ok()) << begun.error().text;
      while (steps[i] < kSteps) {
        Collectives collectives(group.fabric());
        bool stays = true;
        while (stays && steps[i] < kSteps) {
          if (i == 2 && steps[i] == kLast) return;
          std::vector<float> values(100, 1.0f);
          stays = collectives.AllReduce(values, Algorithm::kRing).ok();
          if (stays) ++steps[i];
        }
        if (stays && !collectives.Barrier().ok()) stays = steps[i] >= kSteps;
        if (stays) break;
        const auto regrouped = group.Regroup(static_cast<std::uint64_t>(steps[i]), 0);
        ASSERT_TRUE(regrouped.ok()) << regrouped.error().text;
        // Who is behind by one has nothing to catch up with but the number.
        std::uint64_t most = 0;
        for (const Seat& seat : group.roster().seats) most = std::max(most, seat.step);
        steps[i] = static_cast<int>(most);
      }
      sizes[i] = group.roster().seats.size();
    });
  members.clear();
  EXPECT_EQ(steps, (std::vector<int>{kSteps, kSteps, kLast, kSteps}));
  for (const std::size_t i : {0, 1, 3}) EXPECT_EQ(sizes[i], kMembers - 1);
}

}  // namespace
}  // namespace freshet::fabric
