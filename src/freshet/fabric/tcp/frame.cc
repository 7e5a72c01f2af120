#include "fabric/tcp/frame.h"

#include "base/crc32c.h"
#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::uint32_t kMagic = 0x31465246;  // "FRF1"
constexpr std::size_t kCrcAt = kHeaderBytes - 4;
constexpr std::uint8_t kUnchecked = 1;

}  // namespace

std::size_t MaxPayload(FrameType type) {
  switch (type) {
    case FrameType::kEager:
      return kEagerBytes;
    case FrameType::kData:
      return kPieceBytes;
    case FrameType::kAbort:
      return kTextBytes;
    default:
      return 0;
  }
}

HeaderBytes Encode(const Header& header) {
  HeaderBytes bytes{};
  Store(&bytes[0], kMagic);
  Store(&bytes[4], static_cast<std::uint8_t>(header.type));
  Store(&bytes[5], static_cast<std::uint8_t>(header.checked ? 0 : kUnchecked));
  Store(&bytes[8], header.generation);
  Store(&bytes[16], header.sequence);
  Store(&bytes[24], header.tag);
  Store(&bytes[32], header.id);
  Store(&bytes[40], header.length);
  Store(&bytes[48], header.argument);
  Store(&bytes[56], header.payload_crc);
  Store(&bytes[kCrcAt], base::Crc32c(std::span(bytes).first<kCrcAt>()));
  return bytes;
}

Result<Header> Decode(std::span<const std::byte, kHeaderBytes> bytes) {
  if (Load<std::uint32_t>(&bytes[0]) != kMagic) return Error{Code::kCorrupt, "a frame does not begin with our magic"};
  if (Load<std::uint32_t>(&bytes[kCrcAt]) != base::Crc32c(bytes.first<kCrcAt>()))
    return Error{Code::kCorrupt, "the checksum of a frame's header does not match"};
  const auto type = Load<std::uint8_t>(&bytes[4]);
  const auto flags = Load<std::uint8_t>(&bytes[5]);
  if (type < 1 || type > static_cast<std::uint8_t>(FrameType::kWake) || flags > kUnchecked ||
      Load<std::uint16_t>(&bytes[6]) != 0)
    return Error{Code::kCorrupt, Str("a frame of unknown type ", int{type}, " and flags ", int{flags})};
  Header header;
  header.type = static_cast<FrameType>(type);
  header.checked = flags == 0;
  header.generation = Load<std::uint64_t>(&bytes[8]);
  header.sequence = Load<std::uint64_t>(&bytes[16]);
  header.tag = Load<std::uint64_t>(&bytes[24]);
  header.id = Load<std::uint64_t>(&bytes[32]);
  header.length = Load<std::uint64_t>(&bytes[40]);
  header.argument = Load<std::uint64_t>(&bytes[48]);
  header.payload_crc = Load<std::uint32_t>(&bytes[56]);
  if (header.length > MaxPayload(header.type))
    return Error{Code::kCorrupt, Str("a frame of type ", int{type}, " promises ", header.length, " bytes, it may have ",
                                     MaxPayload(header.type))};
  return header;
}

}  // namespace freshet::fabric::tcp
