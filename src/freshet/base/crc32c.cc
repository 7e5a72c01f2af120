#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace freshet::base {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78u;  // the lowest bit stands for the highest power

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kTable = MakeTable();

#if defined(__x86_64__)
// The instruction takes three cycles, but another may begin in each: of long inputs, three lanes are summed side by
// side. A lane's sum is then moved past the lanes behind it, as if so many zeros had followed, by a table.
constexpr std::size_t kLaneBytes = 256;  // from 512 on, the processor does not see that memory is read in order

// The product of two polynomials modulo that of CRC-32C; the highest bit stands for 1, as in the sums.
constexpr std::uint32_t Product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0u);
  }
  return product;
}

using MoveTable = std::array<std::array<std::uint32_t, 256>, 4>;  // by the place of a byte and its value
constexpr MoveTable MakeMoveTable() {
  std::uint32_t move = 1u << 30;  // x, the move by one bit
  for (std::size_t bits = 1; bits < 8 * kLaneBytes; bits *= 2) move = Product(move, move);
  MoveTable table{};
  for (std::uint32_t place = 0; place < 4; ++place) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) table[place][byte] = Product(byte << 8 * place, move);
  }
  return table;
}
constexpr MoveTable kMove = MakeMoveTable();
static_assert((kLaneBytes & (kLaneBytes - 1)) == 0);  // what the squares of MakeMoveTable reach

std::uint32_t MovedPastALane(std::uint64_t sum) {
  return kMove[0][sum & 0xff] ^ kMove[1][sum >> 8 & 0xff] ^ kMove[2][sum >> 16 & 0xff] ^ kMove[3][sum >> 24 & 0xff];
}

std::uint64_t Word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t Crc32cByInstruction(std::span<const std::byte> bytes,
                                                                    std::uint32_t crc) {
  std::uint64_t sum = ~crc;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * kLaneBytes; at += 3 * kLaneBytes, left -= 3 * kLaneBytes) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < kLaneBytes; i += 8) {
      sum = __builtin_ia32_crc32di(sum, Word(at + i));
      second = __builtin_ia32_crc32di(second, Word(at + kLaneBytes + i));
      third = __builtin_ia32_crc32di(third, Word(at + 2 * kLaneBytes + i));
    }
    sum = MovedPastALane(MovedPastALane(sum) ^ second) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) sum = __builtin_ia32_crc32di(sum, Word(at));
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
