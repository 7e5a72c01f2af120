#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "fabric/fabric.h"

namespace freshet::fabric::tcp {

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kEagerBytes = 32 * 1024;   // the longest message sent without asking
inline constexpr std::size_t kPieceBytes = 256 * 1024;  // longer ones travel in pieces of this size
inline constexpr std::size_t kTextBytes = 1024;         // of a reason

// What a frame says. Payloads follow kEager, kData and kAbort alone.
enum class FrameType : std::uint8_t {
  kEager = 1,      // a whole short message: tag; id of the send; argument: nothing
  kRequest = 2,    // I have a message for you: tag; id of the send; argument: its bytes
  kClear = 3,      // send it: id of the send; argument: id of the receive
  kData = 4,       // the next piece of it: id of the receive; argument: its place in
                   // the message
  kRefuse = 5,     // it does not fit: id of the send; argument: the room there was
  kCancel = 6,     // the sender gave up: id of the send
  kCredit = 7,     // short messages were taken: argument: bytes
  kHeartbeat = 8,  // I am alive
  kAbort = 9,      // the group is over: argument: the rank that is lost; the payload
                   // says why
  kGoodbye = 10,   // I leave in order; nothing follows
  kWake = 11,      // look at the shared memory
};

// The head of every frame, 64 bytes, little-endian; docs/formats.md has the layout.
struct Header {
  FrameType type = FrameType::kHeartbeat;
  bool checked = true;  // payload_crc was computed
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;  // counts the frames of a connection
  Tag tag = 0;
  std::uint64_t id = 0;
  std::uint64_t length = 0;  // of the payload
  std::uint64_t argument = 0;
  std::uint32_t payload_crc = 0;

  bool operator==(const Header&) const = default;
};

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes Encode(const Header& header);

// kCorrupt for anything that is not a header of ours: magic, checksum, type, or a payload longer than its type may
// have. So nothing is ever allocated or read by a length that was not checked.
Result<Header> Decode(std::span<const std::byte, kHeaderBytes> bytes);

// The longest payload of a type.
std::size_t MaxPayload(FrameType type);

}  // namespace freshet::fabric::tcp
