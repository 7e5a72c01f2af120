#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/simulated_clock.h"
#include "fabric/tcp/engine.h"
#include "fabric/tcp/wire.h"

namespace {

using namespace freshet;
using namespace freshet::fabric;
using namespace freshet::fabric::tcp;

// A member's engine whose only peer sends these bytes: it takes them or loses the peer, and keeps what it promises.
void FeedEngine(std::span<const std::byte> bytes) {
  base::ManualClock clock;
  TcpOptions options;
  options.size = 2;
  options.max_message_bytes = 1 << 20;
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  std::vector<Link> links(2);
  links[1].conduit = Conduit(base::Descriptor(ends[0]));
  Engine engine(options, std::move(links), clock);

  std::vector<std::byte> room(1000);
  std::vector<float> sums(100);
  const auto receive = engine.StartReceive(Operation::Kind::kReceive, 1, 1, Landing(std::span(room))).value();
  const auto add = engine.StartReceive(Operation::Kind::kReceiveAdd, kAnyRank, 2, Landing(std::span(sums))).value();
  const auto borrow = engine.StartReceive(Operation::Kind::kBorrow, 1, 3, Landing()).value();
  const std::vector<std::byte> long_one(100'000);
  const auto send = engine.StartSend(1, 4, long_one, 0).value();

  (void)!::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
  for (int i = 0; i < 10; ++i) engine.Turn();
  ::close(ends[1]);
  for (int i = 0; i < 10; ++i) engine.Turn();
  for (const auto id : {receive, add, borrow, send}) {
    CHECK(engine.Done(id));
    const auto taken = engine.Take(id);
    if (taken.ok()) CHECK(taken.value().bytes <= options.max_message_bytes);
  }
}

// Makes the frames' checksums and numbers right, so that what is behind them is reached.
void Mend(std::vector<std::byte>& bytes) {
  std::uint64_t sequence = 0;
  for (std::size_t at = 0; at + kHeaderBytes <= bytes.size();) {
    const auto type = static_cast<std::uint8_t>(1 + Load<std::uint8_t>(&bytes[at + 4]) % 11);
    std::uint64_t length = Load<std::uint8_t>(&bytes[at + 40]) % (MaxPayload(static_cast<FrameType>(type)) + 1);
    length = std::min<std::uint64_t>(length, bytes.size() - at - kHeaderBytes);
    Header header{.type = static_cast<FrameType>(type), .sequence = sequence++, .length = length};
    header.tag = Load<std::uint8_t>(&bytes[at + 24]) % 5;
    header.id = Load<std::uint8_t>(&bytes[at + 32]) % 6;
    header.argument = Load<std::uint64_t>(&bytes[at + 48]);
    header.payload_crc = base::Crc32c(std::span(bytes).subspan(at + kHeaderBytes, length));
    const HeaderBytes encoded = Encode(header);
    std::memcpy(&bytes[at], encoded.data(), encoded.size());
    at += kHeaderBytes + length;
  }
}

// The same as what a peer of this host puts into the memory it shares, where one receive waits for 500 bytes.
void FeedLane(std::span<const std::byte> bytes) {
  base::ManualClock clock;
  TcpOptions options;
  options.size = 2;
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const auto memory = SharedMemory::Make(4096, {}).value();
  std::vector<Link> links(2);
  links[1].conduit = Conduit(base::Descriptor(ends[0]));
  links[1].shared = SharedMemory::Open(memory->offer()).value();
  Engine engine(options, std::move(links), clock);
  std::vector<std::byte> room(1000);
  const auto receive = engine.StartReceive(Operation::Kind::kReceive, 1, 1, Landing(std::span(room))).value();
  const HeaderBytes request = Encode({.type = FrameType::kRequest, .tag = 1, .id = 9, .argument = 500});
  CHECK(::send(ends[1], request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
  RingWriter writer = memory->writer();
  for (int i = 0; i < 30; ++i) {
    engine.Turn();
    bytes = bytes.subspan(writer.Write(bytes).value());
  }
  ::close(ends[1]);
  for (int i = 0; i < 10; ++i) engine.Turn();
  CHECK(engine.Done(receive));
  const auto taken = engine.Take(receive);
  if (taken.ok()) CHECK(taken.value().bytes == 500);
}

}  // namespace

// Any bytes as what a peer sends: raw, with checksums made right, and through shared memory.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 65'536) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  FeedEngine(bytes);
  std::vector<std::byte> mended(bytes.begin(), bytes.end());
  Mend(mended);
  FeedEngine(mended);
  FeedLane(bytes);
  return 0;
}
