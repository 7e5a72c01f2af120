#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace freshet::base {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kTable = MakeTable();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t Crc32cByInstruction(std::span<const std::byte> bytes,
                                                                    std::uint32_t crc) {
  std::uint64_t sum = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    sum = __builtin_ia32_crc32di(sum, word);
  }
  auto narrow = static_cast<std::uint32_t>(sum);
  for (; left > 0; ++at, --left) narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(*at));
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t Crc32cByTable(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return Crc32cByInstruction(bytes, crc);
#endif
  return Crc32cByTable(bytes, crc);
}

}  // namespace freshet::base
