#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>

#include "fabric/tcp/tcp_testing.h"

namespace freshet::fabric {
namespace {

// The thread sanitizer cannot start threads in the child of a process that has had some.
#if defined(__SANITIZE_THREAD__)
constexpr bool kCanFork = false;
#else
constexpr bool kCanFork = true;
#endif

class TcpDeath : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanFork) GTEST_SKIP() << "not under the thread sanitizer";
  }
};

// Other members as processes of their own, so that they can be killed and frozen.
class Processes {
 public:
  Processes() { CHECK(::pipe(ports_) == 0); }
  ~Processes() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
    ::close(ports_[0]);
    ::close(ports_[1]);
  }
  pid_t operator[](int rank) const { return children_[static_cast<std::size_t>(rank - 1)]; }

  // Becomes rank 0 of a group whose other members run `body`. Called before this process has other threads.
  std::unique_ptr<TcpFabric> Start(int size, const std::function<void(TcpOptions&)>& change,
                                   const std::function<void(TcpFabric&)>& body) {
    for (int rank = 1; rank < size; ++rank) {
      const pid_t child = ::fork();
      if (child == 0) {
        int port = 0;
        if (::read(ports_[0], &port, sizeof port) == sizeof port) Live(rank, size, port, change, body);
        ::_exit(0);
      }
      children_.push_back(child);
    }
    TcpOptions options = TestOptions(0, size);
    change(options);
    options.listening = [&](int port) -> Result<void> {
      for (int rank = 1; rank < size; ++rank) CHECK(::write(ports_[1], &port, sizeof port) == sizeof port);
      return {};
    };
    auto connected = TcpFabric::Connect(options, clock_);
    CHECK(connected.ok());
    return std::move(connected).value();
  }

 private:
  void Live(int rank, int size, int port, const std::function<void(TcpOptions&)>& change,
            const std::function<void(TcpFabric&)>& body) {
    TcpOptions options = TestOptions(rank, size);
    change(options);
    options.rendezvous = Str("127.0.0.1:", port);
    auto connected = TcpFabric::Connect(options, clock_);
    if (connected.ok()) body(*connected.value());
  }

  base::SystemClock clock_;
  int ports_[2];
  std::vector<pid_t> children_;
};

// Passes four megabytes around until something happens, and says what.
Error Circulate(Fabric& fabric) {
  std::vector<std::byte> out(4'000'000), in(out.size());
  const int next = (fabric.rank() + 1) % fabric.size(), last = (fabric.rank() + fabric.size() - 1) % fabric.size();
  while (true) {
    auto receive = fabric.StartReceive(last, 1, in);
    if (!receive.ok()) return receive.error();
    auto send = fabric.StartSend(next, 1, out);
    if (!send.ok()) return send.error();
    auto received = fabric.Wait(receive.value());
    auto sent = fabric.Wait(send.value());
    if (!received.ok()) return received.error();
    if (!sent.ok()) return sent.error();
  }
}

// Rank 0 learns that `rank` is lost, and from rank 1, which is not the neighbour of all, that it names the same.
void ExpectLossOf(int rank, int signal, bool shared_memory, bool tls = false) {
  Processes others;
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const auto change = [&](TcpOptions& options) {
    options.shared_memory = shared_memory;
    options.tls = tls;
    options.heartbeat = std::chrono::milliseconds(50);
    options.heartbeat_misses = 10;
  };
  auto fabric = others.Start(4, change, [&](TcpFabric& member) {
    const Error loss = Circulate(member);
    if (member.rank() != 1) return;
    EXPECT_GT(::write(said[1], loss.text.data(), loss.text.size()), 0);
  });
  std::thread killer([&] {
    base::SystemClock().Sleep(std::chrono::milliseconds(100));
    ::kill(others[rank], signal);
  });
  const Error loss = Circulate(*fabric);
  killer.join();
  EXPECT_EQ(loss.code, Code::kPeerLost);
  const std::string name = Str("rank ", rank, " (host-", rank, ") is gone");
  EXPECT_NE(loss.text.find(name), std::string::npos) << loss.text;
  char text[1000];
  const ssize_t count = ::read(said[0], text, sizeof text);
  ASSERT_GT(count, 0);
  EXPECT_NE(std::string_view(text, static_cast<std::size_t>(count)).find(name), std::string::npos)
      << std::string_view(text, static_cast<std::size_t>(count));
  EXPECT_EQ(fabric->StartSend(1, 1, {}).error().code, Code::kPeerLost);
  ::close(said[0]);
  ::close(said[1]);
}

TEST_F(TcpDeath, AKilledMemberIsNamedByAll) { ExpectLossOf(3, SIGKILL, false); }
TEST_F(TcpDeath, AKilledMemberThatSharesMemoryIsNamedByAll) { ExpectLossOf(2, SIGKILL, true); }
TEST_F(TcpDeath, AFrozenMemberIsNamedByAll) { ExpectLossOf(2, SIGSTOP, false); }
TEST_F(TcpDeath, AFrozenMemberThatSharesMemoryIsNamedByAll) { ExpectLossOf(3, SIGSTOP, true); }
TEST_F(TcpDeath, AKilledMemberUnderTlsIsNamedByAll) { ExpectLossOf(3, SIGKILL, false, true); }
TEST_F(TcpDeath, AFrozenMemberUnderTlsIsNamedByAll) { ExpectLossOf(2, SIGSTOP, false, true); }

// Sends back what rank 0 sends, until that ends.
void Echo(Fabric& fabric) {
  std::vector<std::byte> bytes(20'000'000);
  while (true) {
    const Result<Arrived> arrived = fabric.Receive(0, 1, bytes);
    if (!arrived.ok() || !fabric.Send(0, 2, std::span(bytes).first(arrived.value().bytes)).ok()) return;
  }
}

// Rank 2 is lost in the middle of a long message, which is reported, and rank 0 goes on with rank 1.
void ExpectReportOf(int signal, bool shared_memory, bool tls = false) {
  Processes others;
  const auto change = [&](TcpOptions& options) {
    options.shared_memory = shared_memory;
    options.tls = tls;
    options.heartbeat = std::chrono::milliseconds(50);
    options.on_loss = OnLoss::kReport;
  };
  auto fabric = others.Start(3, change, [](TcpFabric& member) { Echo(member); });
  const std::vector<std::byte> out(20'000'000, std::byte{7});
  std::vector<std::byte> in(out.size());
  const Transfer half_way = fabric->StartSend(2, 1, out).value();
  (void)fabric->WaitAny(std::span(&half_way, 1), std::chrono::milliseconds(1));
  ::kill(others[2], signal);
  const Result<Arrived> lost = fabric->Wait(fabric->StartLoss(kAnyRank, 0).value());
  ASSERT_TRUE(lost.ok()) << lost.error().text;
  EXPECT_EQ(lost.value().from, 2);
  (void)fabric->Wait(half_way);  // it may have been over before
  EXPECT_EQ(fabric->StartSend(2, 1, out).error().code, Code::kPeerLost);
  for (int i = 0; i < 3; ++i) {
    std::fill(in.begin(), in.end(), std::byte{0});
    ASSERT_TRUE(fabric->Send(1, 1, out).ok());
    const Result<Arrived> echo = fabric->Receive(1, 2, in);
    ASSERT_TRUE(echo.ok()) << echo.error().text;
    EXPECT_EQ(in, out);
  }
  ASSERT_EQ(fabric->Lost().size(), 1U);
  EXPECT_FALSE(fabric->Lost()[0].left);
  EXPECT_NE(fabric->Lost()[0].why.text.find("rank 2 (host-2) is gone"), std::string::npos)
      << fabric->Lost()[0].why.text;
}

TEST_F(TcpDeath, AReportedDeathLeavesTheOthersAtWork) { ExpectReportOf(SIGKILL, false); }
TEST_F(TcpDeath, AReportedDeathOfOneThatSharesMemoryLeavesTheOthersAtWork) { ExpectReportOf(SIGKILL, true); }
TEST_F(TcpDeath, AReportedDeathUnderTlsLeavesTheOthersAtWork) { ExpectReportOf(SIGKILL, false, true); }
TEST_F(TcpDeath, AReportedSilenceLeavesTheOthersAtWork) { ExpectReportOf(SIGSTOP, true); }

TEST_F(TcpDeath, IsNoticedByWhoComputesAndDoesNotWait) {
  Processes others;
  auto fabric = others.Start(
      2, [](TcpOptions&) {}, [](TcpFabric&) { ::pause(); });
  std::byte byte;
  const Transfer transfer = fabric->StartReceive(1, 7, std::span(&byte, 1)).value();
  ::kill(others[1], SIGKILL);
  base::SystemClock clock;
  while (fabric->StartSend(1, 1, {}).ok()) clock.Sleep(std::chrono::milliseconds(1));
  const auto waited = fabric->Wait(transfer);
  ASSERT_FALSE(waited.ok());
  EXPECT_NE(waited.error().text.find("rank 0 was waiting for 1 B from rank 1 (host-1) (tag 7)"), std::string::npos)
      << waited.error().text;
}

TEST_F(TcpDeath, AMemberThatComputesForLongIsNotTakenForFrozen) {
  Processes others;
  const auto change = [](TcpOptions& options) {
    options.heartbeat = std::chrono::milliseconds(20);
    options.heartbeat_misses = 15;
  };
  auto fabric = others.Start(2, change, [](TcpFabric& member) {
    base::SystemClock().Sleep(std::chrono::milliseconds(800));
    std::byte byte{};
    EXPECT_TRUE(member.Send(0, 1, std::span(&byte, 1)).ok());
  });
  std::byte byte;
  const auto arrived = fabric->Receive(1, 1, std::span(&byte, 1));
  EXPECT_TRUE(arrived.ok()) << arrived.error().text;
}

}  // namespace
}  // namespace freshet::fabric
