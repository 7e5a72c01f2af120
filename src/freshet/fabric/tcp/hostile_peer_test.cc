// A member that holds the token and speaks nonsense: whatever it promises, nothing is allocated or read by it, and it
// is lost by an error that says what it did.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/simulated_clock.h"
#include "fabric/tcp/engine.h"
#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::uint64_t kMost = 1 << 20;

// A member's engine, and its peer by hand.
class HostilePeer : public ::testing::Test {
 protected:
  HostilePeer() {
    int ends[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    far_ = base::Descriptor(ends[1]);
    TcpOptions options;
    options.size = 2;
    options.max_message_bytes = kMost;
    std::vector<Link> links(2);
    links[1].conduit = Conduit(base::Descriptor(ends[0]));
    links[1].shared = SharedMemory::Open(memory_->offer()).value();
    engine_.emplace(options, std::move(links), clock_);
    receive_ = engine_->StartReceive(Operation::Kind::kReceive, 1, 1, Landing(std::span(room_))).value();
  }

  // A frame's header, whose payload never comes.
  void Say(Header header) {
    header.sequence = sequence_++;
    const HeaderBytes bytes = Encode(header);
    ASSERT_EQ(::send(far_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    for (int i = 0; i < 5; ++i) engine_->Turn();
  }
  // Through the shared memory: a message of `length` for a receive.
  void Write(std::uint64_t id, std::uint64_t length) {
    std::array<std::byte, 16> head;
    Store(&head[0], id);
    Store(&head[8], length);
    ASSERT_EQ(memory_->writer().Write(head).value(), head.size());
    for (int i = 0; i < 5; ++i) engine_->Turn();
  }
  void ExpectLost(const std::string& part) {
    ASSERT_TRUE(engine_->failure().has_value());
    EXPECT_EQ(engine_->failure()->code, Code::kPeerLost);
    EXPECT_NE(engine_->failure()->text.find(part), std::string::npos) << engine_->failure()->text;
    EXPECT_FALSE(engine_->Take(receive_).ok());
  }

  base::ManualClock clock_;
  base::Descriptor far_;
  std::unique_ptr<SharedMemory> memory_ = SharedMemory::Make(4096, {}).value();
  std::vector<std::byte> room_ = std::vector<std::byte>(50'000);
  std::optional<Engine> engine_;
  std::uint64_t receive_ = 0;
  std::uint64_t sequence_ = 0;
};

TEST_F(HostilePeer, PromisesAShortMessageThatIsLong) {
  Say({.type = FrameType::kEager, .tag = 1, .id = 5, .length = kEagerBytes + 1});
  ExpectLost("promises 32769 bytes");
}

TEST_F(HostilePeer, PromisesAReasonWithoutEnd) {
  Say({.type = FrameType::kAbort, .length = std::uint64_t{1} << 62});
  ExpectLost("promises");
}

TEST_F(HostilePeer, OffersMoreThanAnybodyTakes) {
  Say({.type = FrameType::kRequest, .tag = 1, .id = 5, .argument = kMost + 1});
  ExpectLost("it offers a message of 1048577 bytes");
}

TEST_F(HostilePeer, SendsAPieceBeyondItsMessage) {
  Say({.type = FrameType::kRequest, .tag = 1, .id = 5, .argument = 40'000});
  Say({.type = FrameType::kData, .id = receive_, .length = 40'001});
  ExpectLost("does not continue its message");
}

TEST_F(HostilePeer, SendsAPieceOutOfItsPlace) {
  Say({.type = FrameType::kRequest, .tag = 1, .id = 5, .argument = 40'000});
  Say({.type = FrameType::kData, .id = receive_, .length = 100, .argument = ~std::uint64_t{0} - 10});
  ExpectLost("does not continue its message");
}

TEST_F(HostilePeer, PutsMoreIntoSharedMemoryThanItAnnounced) {
  Say({.type = FrameType::kRequest, .tag = 1, .id = 5, .argument = 40'000});
  Write(receive_, ~std::uint64_t{0});
  ExpectLost("came where 40000 were announced");
}

TEST_F(HostilePeer, OffersMessagesNobodyAskedForWithoutEnd) {
  for (int i = 0; i < 70'000 && !engine_->failure().has_value(); ++i)
    Say({.type = FrameType::kRequest, .tag = 2, .id = 5, .argument = 100});
  ExpectLost("more than anybody here receives");
}

}  // namespace
}  // namespace freshet::fabric::tcp
