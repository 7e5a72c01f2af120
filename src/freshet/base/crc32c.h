#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace freshet::base {

// CRC-32C (Castagnoli), as in iSCSI, ext4 and leveldb. Continue a sum by passing the earlier result.
// Uses the processor's instruction where there is one and a table elsewhere; both give the same sums.
std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);
std::uint32_t Crc32cByTable(std::span<const std::byte> bytes, std::uint32_t crc = 0);

template <class T>
std::uint32_t Crc32cOf(std::span<T> values, std::uint32_t crc = 0) {
  return Crc32c(std::as_bytes(values), crc);
}

}  // namespace freshet::base
