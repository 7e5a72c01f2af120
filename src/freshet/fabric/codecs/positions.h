#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace freshet::fabric {

// Which of [0, range) are meant, in the fewest bytes of three forms: the gaps between those that are, a bit for each,
// or the gaps between those that are not. So naming most of them costs no more than naming few, and all of them
// nothing.
//
//   form    1 byte: 0 listed, 1 bits, 2 missing
//   count   varint: how many are meant
//   body    varints: the first position, then each less the one before less 1; or (range + 7) / 8 bytes, lowest bit
//           first
void AppendPositions(std::span<const std::uint32_t> ascending, std::size_t range, std::vector<std::byte>& out);

// How many bytes so many positions take on the average, when any are as likely as others.
std::size_t ExpectedPositionBytes(std::size_t count, std::size_t range);

// Takes positions from the front of a peer's bytes, which are not believed: what does not fit is kCorrupt. Each
// position is followed by at least `bytes_each` further on, so that a count cannot ask for more memory than was sent.
Result<void> TakePositions(std::span<const std::byte>& bytes, std::size_t range, std::size_t bytes_each,
                           std::vector<std::uint32_t>& positions);

}  // namespace freshet::fabric
