#include "fabric/tcp/shared_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/random.h"
#include "fabric/protocol/landing.h"

namespace freshet::fabric::tcp {
namespace {

std::vector<std::byte> BytesOf(std::uint64_t seed, std::size_t count) {
  base::Random random(seed, "bytes");
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  return bytes;
}

TEST(SharedRing, IsAStreamHoweverItIsCut) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    auto made = SharedMemory::Make(4096, {}).value();
    auto opened = SharedMemory::Open(made->offer()).value();
    made->CloseDescriptor();
    const std::vector<std::byte> sent = BytesOf(seed, 20'000);
    std::vector<std::byte> received;
    RingWriter writer = made->writer();
    RingReader reader = opened->reader();
    base::Random random(seed, "cuts");
    for (std::size_t at = 0; received.size() < sent.size();) {
      const std::size_t most = std::min<std::size_t>(random.Below(6000), sent.size() - at);
      at += writer.Write(std::span(sent).subspan(at, most)).value();
      const auto there = reader.Peek().value();
      const auto taken = there.first(std::min<std::size_t>(there.size(), random.Below(3000)));
      received.insert(received.end(), taken.begin(), taken.end());
      reader.Consume(taken.size());
      EXPECT_EQ(reader.Empty(), received.size() == at);
    }
    EXPECT_EQ(received, sent);
  }
}

TEST(SharedRing, WhoSleepsIsWokenByTheNextStep) {
  auto made = SharedMemory::Make(4096, {}).value();
  auto opened = SharedMemory::Open(made->offer()).value();
  RingWriter writer = made->writer();
  RingReader reader = opened->reader();
  reader.Sleep(true);
  EXPECT_TRUE(reader.Empty());
  EXPECT_EQ(writer.Write(BytesOf(1, 5000)).value(), 4096u);
  EXPECT_TRUE(writer.TakeWake());
  EXPECT_FALSE(writer.TakeWake()) << "once is enough";
  EXPECT_TRUE(writer.Full());
  writer.Sleep(true);
  reader.Consume(100);
  EXPECT_TRUE(reader.TakeWake());
  EXPECT_FALSE(writer.Full());
}

TEST(SharedRing, OnlyTheMemoryThatWasOfferedIsTaken) {
  auto made = SharedMemory::Make(4096, {}).value();
  for (const auto& change : std::vector<void (*)(Offer&)>{
           [](Offer& o) { o.secret[3] = std::byte{1}; }, [](Offer& o) { o.bytes = 8192; },
           [](Offer& o) { o.bytes = 5000; }, [](Offer& o) { o.bytes = std::uint64_t{1} << 63; },
           [](Offer& o) { o.descriptor = 0; }, [](Offer& o) { o.process = 0x7fffffff; }}) {
    Offer offer = made->offer();
    change(offer);
    EXPECT_FALSE(SharedMemory::Open(offer).ok());
  }
}

TEST(Landing, AddsFloatsHoweverTheyAreCut) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    base::Random random(seed, "floats");
    std::vector<float> values(1 + random.Below(200)), sums(values.size(), 0.5f), wanted(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(random.Below(1000));
      wanted[i] = values[i] + 0.5f;
    }
    Landing landing{std::span(sums)};
    auto bytes = std::as_bytes(std::span(values));
    while (!bytes.empty()) {
      const std::size_t count = std::min<std::size_t>(bytes.size(), random.Below(13));
      landing.Put(bytes.first(count));
      bytes = bytes.subspan(count);
    }
    EXPECT_EQ(sums, wanted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace freshet::fabric::tcp
