#include "fabric/tcp/tcp_fabric.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/random.h"
#include "fabric/fabric_suite_testing.h"
#include "fabric/tcp/tcp_testing.h"

namespace freshet::fabric {
namespace {

FabricFactory TcpFactory(std::string name, bool shared_memory, bool tls = false) {
  FabricFactory factory{.name = std::move(name), .run = {}, .most_members = 5, .seeds = tls ? 5 : 10};
  factory.run = [shared_memory, tls](const GroupSpec& spec, const MemberBody& body) {
    base::SystemClock system;
    base::Clock& clock = spec.clock != nullptr ? *spec.clock : static_cast<base::Clock&>(system);
    std::optional<base::SimulatedClock::Participant> here;
    if (spec.clock != nullptr) here.emplace(*spec.clock);
    Members members = ConnectAll(spec.size, clock, [&](TcpOptions& options) {
      if (spec.clock != nullptr) options.heartbeat = std::chrono::minutes(5);
      options.generation = spec.generation;
      options.wait_timeout = spec.timeout;
      options.on_loss = spec.on_loss;
      options.shared_memory = shared_memory;
      options.tls = tls;
      options.ring_bytes = 64 * 1024;  // so that messages wrap around
      if (!spec.hosts.empty()) options.host = spec.hosts[static_cast<std::size_t>(options.rank)];
    });
    std::vector<std::unique_ptr<Fabric>> fabrics;
    for (auto& member : members) {
      ASSERT_TRUE(member.ok()) << member.error().text;
      fabrics.push_back(std::move(member).value());
    }
    RunAll(fabrics, clock, body);
  };
  return factory;
}

INSTANTIATE_TEST_SUITE_P(Tcp, FabricSuite,
                         ::testing::Values(TcpFactory("Sockets", false), TcpFactory("SharedMemory", true),
                                           TcpFactory("Tls", false, true)),
                         NameOfFactory);

// The bytes of message `number` from one rank to another.
std::vector<std::byte> MessageOf(std::uint64_t seed, int from, int number) {
  base::Random random(seed, static_cast<std::uint64_t>(from * 1000 + number));
  constexpr std::size_t kSizes[] = {0, 1, 63, 4096, 32'768, 32'769, 65'536, 262'145, 700'001};
  std::vector<std::byte> bytes(kSizes[random.Below(std::size(kSizes))]);
  const std::uint64_t first = random.Next();
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((first + i * 0x9E3779B9) >> 7);
  return bytes;
}

TEST(TcpFabric, CarriesMessagesOfAllSizesInBothDirectionsUnchanged) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::SystemClock clock;
    Members members = ConnectAll(3, clock, [&](TcpOptions& options) {
      options.shared_memory = seed % 2 == 0;
      options.tls = seed > 3;
      options.ring_bytes = 8192 << (2 * seed);
    });
    std::vector<std::thread> threads;
    for (auto& member : members) {
      ASSERT_TRUE(member.ok()) << member.error().text;
      threads.emplace_back([&] {
        Fabric& fabric = *member.value();
        constexpr int kMessages = 12;
        std::vector<std::vector<std::byte>> out, in;
        std::vector<Transfer> transfers;
        for (int number = 0; number < kMessages; ++number) out.push_back(MessageOf(seed, fabric.rank(), number));
        in.resize(kMessages * 3);
        for (int number = 0; number < kMessages; ++number) {
          for (int peer = 0; peer < 3; ++peer) {
            if (peer == fabric.rank()) continue;
            std::vector<std::byte>& room = in[static_cast<std::size_t>(peer * kMessages + number)];
            room.resize(700'001);
            const auto start_send = [&] {
              transfers.push_back(fabric.StartSend(peer, 1, out[static_cast<std::size_t>(number)]).value());
            };
            if (number % 2 == 0) start_send();
            transfers.push_back(fabric.StartReceive(peer, 1, room).value());
            if (number % 2 == 1) start_send();
          }
        }
        for (const Transfer transfer : transfers) ASSERT_TRUE(fabric.Wait(transfer).ok());
        for (int peer = 0; peer < 3; ++peer) {
          for (int number = 0; number < kMessages && peer != fabric.rank(); ++number) {
            const std::vector<std::byte> sent = MessageOf(seed, peer, number);
            std::vector<std::byte>& room = in[static_cast<std::size_t>(peer * kMessages + number)];
            room.resize(sent.size());
            ASSERT_EQ(room, sent);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(TcpFabric, LongMessagesOfOneHostDoNotGoThroughTheSocket) {
  base::SystemClock clock;
  Members members = ConnectAll(2, clock);
  ASSERT_TRUE(members[0].ok() && members[1].ok());
  std::vector<std::byte> bytes(10'000'000), into(bytes.size());
  std::thread receiver([&] { EXPECT_TRUE(members[1].value()->Receive(0, 1, into).ok()); });
  EXPECT_TRUE(members[0].value()->Send(1, 1, bytes).ok());
  receiver.join();
  const TcpFabric::Statistics statistics = members[0].value()->statistics();
  EXPECT_EQ(statistics.near, 2);
  EXPECT_EQ(statistics.sharing, 1);
  EXPECT_EQ(statistics.bytes_shared, bytes.size());
  EXPECT_LT(statistics.bytes_sent, 100'000u);
}

TEST(TcpFabric, ManyShortMessagesThatNobodyWantsYetBlockNobody) {
  base::SystemClock clock;
  Members members = ConnectAll(2, clock);
  ASSERT_TRUE(members[0].ok() && members[1].ok());
  const std::vector<std::byte> bytes(20'000, std::byte{3});
  std::vector<std::byte> into(bytes.size());
  std::vector<Transfer> sends;
  for (int i = 0; i < 1000; ++i) sends.push_back(members[0].value()->StartSend(1, 1, bytes).value());  // 20 MB
  sends.push_back(members[0].value()->StartSend(1, 2, bytes).value());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(members[1].value()->Receive(0, 1, into).ok());
  ASSERT_TRUE(members[1].value()->Receive(0, 2, into).ok());
  for (const Transfer send : sends) ASSERT_TRUE(members[0].value()->Wait(send).ok());
}

TEST(TcpFabric, ASendNobodyTookInTimeIsTakenBack) {
  base::SystemClock clock;
  Members members = ConnectAll(2, clock);
  ASSERT_TRUE(members[0].ok() && members[1].ok());
  std::vector<std::byte> bytes(1'000'000, std::byte{1}), into(bytes.size());
  const Transfer send = members[0].value()->StartSend(1, 1, bytes).value();
  const auto waited = members[0].value()->Wait(send, std::chrono::milliseconds(20));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::kTimeout);
  std::thread sender([&] {
    bytes.assign(bytes.size(), std::byte{2});
    EXPECT_TRUE(members[0].value()->Send(1, 1, bytes).ok());
  });
  // Whether the offer was still there or not, what comes first and whole is the second message.
  auto received = members[1].value()->Receive(0, 1, into);
  if (!received.ok()) received = members[1].value()->Receive(0, 1, into);
  EXPECT_TRUE(received.ok()) << received.error().text;
  EXPECT_EQ(into, bytes);
  sender.join();
}

TEST(TcpFabric, AMemberAloneNeedsNobody) {
  base::SystemClock clock;
  const auto alone = TcpFabric::Connect(TestOptions(0, 1), clock);
  ASSERT_TRUE(alone.ok()) << alone.error().text;
  EXPECT_EQ(alone.value()->size(), 1);
  EXPECT_FALSE(alone.value()->StartSend(0, 1, {}).ok());
}

TEST(TcpOptions, SaysAllThatIsWrongAtOnce) {
  TcpOptions options = TestOptions(5, 3);
  options.rendezvous = "nowhere";
  options.ring_bytes = 5;
  const Result<void> checked = options.Validate();
  ASSERT_FALSE(checked.ok());
  for (const char* part : {"rank 5", "nowhere", "ring"})
    EXPECT_NE(checked.error().text.find(part), std::string::npos) << checked.error().text;
}

}  // namespace
}  // namespace freshet::fabric
