#include "fabric/tcp/bootstrap.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "base/random.h"
#include "base/scratch_testing.h"
#include "fabric/tcp/tcp_testing.h"

namespace freshet::fabric {
namespace {

using tcp::Deadline;

void ExpectError(const Members& members, int rank, const std::string& part) {
  const auto& member = members[static_cast<std::size_t>(rank)];
  ASSERT_FALSE(member.ok());
  EXPECT_NE(member.error().text.find(part), std::string::npos) << member.error().text;
}

TEST(Bootstrap, BringsGroupsOfManySizesTogether) {
  for (int size = 1; size <= 6; ++size) {
    base::SystemClock clock;
    const Members members = ConnectAll(size, clock);
    for (int rank = 0; rank < size; ++rank) {
      const auto& member = members[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(member.ok()) << member.error().text;
      for (int other = 0; other < size; ++other) EXPECT_EQ(member.value()->host(other), Str("host-", other));
    }
  }
}

TEST(Bootstrap, RefusesWhoDoesNotBelongAndSaysWhy) {
  struct Case {
    std::function<void(TcpOptions&)> change;  // of rank 1
    std::string said;
  };
  const Case cases[] = {
      {[](TcpOptions& o) { o.token[5] = std::byte{1}; }, "another job token"},
      {[](TcpOptions& o) { o.job = "another"; }, "belongs to the job"},
      {[](TcpOptions& o) { o.generation = 8; }, "the group is at generation 0, you are of 8"},
      {[](TcpOptions& o) { o.size = 3; }, "has 2 members, you expect 3"},
  };
  std::vector<std::thread> all;  // at once, since rank 0 waits in vain in each of them
  for (const Case& c : cases) {
    for (const bool tls : {false, true}) {
      all.emplace_back([&c, tls] {
        base::SystemClock clock;
        const Members members = ConnectAll(2, clock, [&](TcpOptions& options) {
          options.connect_timeout = std::chrono::seconds(options.rank == 0 ? 3 : 30);
          options.tls = tls;
          if (options.rank == 1) c.change(options);
        });
        ExpectError(members, 1, c.said);
        ExpectError(members, 0, "missing rank 1");
      });
    }
  }
  for (std::thread& one : all) one.join();
}

TEST(Bootstrap, BringsGroupsTogetherUnderTls) {
  base::SystemClock clock;
  const Members members = ConnectAll(4, clock, [](TcpOptions& options) { options.tls = true; });
  for (const auto& member : members) ASSERT_TRUE(member.ok()) << member.error().text;
}

TEST(Bootstrap, AMixtureOfTlsAndNoneIsRefusedWithAWordOnBothSides) {
  std::vector<std::thread> both;
  for (const bool first : {true, false}) {
    both.emplace_back([first] {
      base::SystemClock clock;
      const Members members = ConnectAll(2, clock, [&](TcpOptions& options) {
        options.connect_timeout = std::chrono::seconds(options.rank == 0 ? 3 : 30);
        options.tls = (options.rank == 0) == first;
      });
      ExpectError(members, 1, first ? "it works with TLS and we without it" : "it works without TLS and we with it");
      ExpectError(members, 0, first ? "(1 came without TLS" : "(1 came with TLS");
    });
  }
  for (std::thread& one : both) one.join();
}

TEST(Bootstrap, ASecondMemberOfTheSameRankIsRefused) {
  base::SystemClock clock;
  const Members members = ConnectAll(3, clock, [&](TcpOptions& options) {
    options.connect_timeout = std::chrono::milliseconds(options.rank == 0 ? 500 : 5000);
    if (options.rank == 2) options.rank = 1;
  });
  const bool first = members[1].error().text.find("there is a rank 1 already") != std::string::npos;
  const bool second = members[2].error().text.find("there is a rank 1 already") != std::string::npos;
  EXPECT_TRUE(first != second) << members[1].error().text << "\n" << members[2].error().text;
  ExpectError(members, 0, "missing rank 2");
}

// What strangers say to the port, until told to stop.
void Disturb(int port, std::uint64_t seed, const std::atomic<bool>& stop) {
  base::SystemClock clock;
  base::Random random(seed, "strangers");
  std::vector<base::Descriptor> idle;
  while (!stop) {
    auto socket = tcp::Connect({"127.0.0.1", port}, Deadline(clock, std::chrono::milliseconds(200)));
    if (!socket.ok()) continue;
    std::string words(random.Below(300), '\0');
    for (char& letter : words) letter = static_cast<char>(random.Next());
    if (random.Below(2) == 0) words = "FRSHTCP1" + words;
    ::send(socket.value().get(), words.data(), words.size(), MSG_NOSIGNAL);
    if (random.Below(3) == 0) idle.push_back(std::move(socket).value());
    if (idle.size() > 100) idle.clear();
  }
}

TEST(Bootstrap, StrangersAtThePortDoNotDisturbTheGroup) {
  base::SystemClock clock;
  std::atomic<bool> stop = false;
  std::vector<std::thread> strangers;
  Members members = ConnectAll(3, clock, [&](TcpOptions& options) {
    if (options.rank != 0) {
      if (options.rank == 1) clock.Sleep(std::chrono::milliseconds(200));
      return;
    }
    options.listening = [&strangers, &stop, told = options.listening](int port) {
      for (std::uint64_t seed = 0; seed < 2; ++seed)
        strangers.emplace_back([&stop, port, seed] { Disturb(port, seed, stop); });
      return told(port);
    };
  });
  for (const auto& member : members) EXPECT_TRUE(member.ok()) << member.error().text;
  EXPECT_GT(members[0].value()->statistics().strangers, 0u);
  stop = true;
  for (std::thread& stranger : strangers) stranger.join();
}

TEST(Bootstrap, NobodyListensOnceTheGroupStands) {
  base::SystemClock clock;
  int port = 0;
  const Members members = ConnectAll(2, clock, [&](TcpOptions& options) {
    if (options.rank != 0) return;
    options.listening = [&port, told = options.listening](int number) {
      port = number;
      return told(number);
    };
  });
  ASSERT_TRUE(members[0].ok());
  EXPECT_FALSE(tcp::Connect({"127.0.0.1", port}, Deadline(clock, std::chrono::seconds(1))).ok());
}

TEST(Bootstrap, AMemberThatLeavesBeforeAllAreThereIsNotWaitedFor) {
  base::SystemClock clock;
  const Members members = ConnectAll(3, clock, [&](TcpOptions& options) {
    options.connect_timeout = std::chrono::seconds(20);
    if (options.rank == 2) options.job = "another";                                   // never comes
    if (options.rank == 1) options.connect_timeout = std::chrono::milliseconds(300);  // comes, and does not wait
  });
  ExpectError(members, 0, "rank 1 (host-1) left before all were there");
}

TEST(Bootstrap, WhoIsToldToStopDoesNotWaitForTheOthers) {
  base::SystemClock clock;
  std::atomic<bool> stop{false};
  std::thread later([&] {
    clock.Sleep(std::chrono::milliseconds(50));
    stop = true;
  });
  const Members members = ConnectAll(3, clock, [&](TcpOptions& options) {
    options.connect_timeout = std::chrono::seconds(60);
    options.stop = &stop;
    if (options.rank == 2) options.job = "another";  // never comes
  });
  later.join();
  EXPECT_FALSE(members[0].ok());
  EXPECT_FALSE(members[1].ok());
}

TEST(JobToken, IsKeptInAFileOfItsOwner) {
  const base::ScratchDirectory scratch;
  const std::string path = scratch / "token";
  ASSERT_TRUE(tcp::MakeTokenFile(path).ok());
  EXPECT_TRUE(tcp::ReadTokenFile(path).ok());
  EXPECT_FALSE(tcp::MakeTokenFile(path).ok()) << "an old token is not overwritten";
  ::chmod(path.c_str(), 0644);
  const auto read = tcp::ReadTokenFile(path);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().text.find("chmod 600"), std::string::npos);
  EXPECT_EQ(tcp::ReadTokenFile(scratch / "none").error().code, Code::kNotFound);
}

TEST(Address, IsAHostAndAPort) {
  EXPECT_EQ(tcp::ParseAddress("[::1]:80").value().host, "::1");
  EXPECT_EQ(tcp::ParseAddress("node-3:65535").value().port, 65535);
  for (const char* wrong : {"", ":", "host", "host:", ":80", "host:65536", "host:-1", "host:8x"})
    EXPECT_FALSE(tcp::ParseAddress(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace freshet::fabric
