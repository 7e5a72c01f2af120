#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "fabric/protocol/note.h"

namespace freshet::fabric::tcp {

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::size_t kEagerBytes = 32 * 1024;  // the longest message sent without asking
inline constexpr std::size_t kPieceBytes = 1 << 20;    // longer ones travel in pieces of this size
inline constexpr std::size_t kTextBytes = 1024;        // of a reason

using FrameType = NoteType;

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
