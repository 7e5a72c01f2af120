#include "fabric/codecs/positions.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace freshet::fabric {
namespace {

enum class Form : std::uint8_t { kListed = 0, kBits = 1, kMissing = 2 };

Error Corrupt(std::string_view what) {
  return {Code::kCorrupt, Str("positions of a peer's message: ", what, "; do all members run the same model?")};
}

std::size_t VarintBytes(std::uint32_t number) { return (std::bit_width(number | 1u) + 6) / 7; }

void AppendVarint(std::uint32_t number, std::vector<std::byte>& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<std::byte>(number | 0x80));
  out.push_back(static_cast<std::byte>(number));
}

Result<std::uint32_t> TakeVarint(std::span<const std::byte>& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (bytes.empty()) return Corrupt("they end within a number");
    const auto byte = static_cast<std::uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (number > UINT32_MAX) break;
      return static_cast<std::uint32_t>(number);
    }
  }
  return Corrupt("a number of more than 32 bits");
}

// Calls visit with every position that is not in `ascending`.
template <class Visit>
void VisitMissing(std::span<const std::uint32_t> ascending, std::size_t range, const Visit& visit) {
  std::uint32_t next = 0;
  for (const std::uint32_t position : ascending) {
    for (; next < position; ++next) visit(next);
    next = position + 1;
  }
  for (; next < range; ++next) visit(next);
}

std::vector<std::uint32_t> Missing(std::span<const std::uint32_t> ascending, std::size_t range) {
  std::vector<std::uint32_t> missing;
  missing.reserve(range - ascending.size());
  VisitMissing(ascending, range, [&](std::uint32_t position) { missing.push_back(position); });
  return missing;
}

template <class Visit>
void VisitGaps(std::span<const std::uint32_t> ascending, const Visit& visit) {
  std::uint32_t next = 0;
  for (const std::uint32_t position : ascending) {
    visit(position - next);
    next = position + 1;
  }
}

std::size_t GapBytes(std::span<const std::uint32_t> ascending) {
  std::size_t bytes = 0;
  VisitGaps(ascending, [&](std::uint32_t gap) { bytes += VarintBytes(gap); });
  return bytes;
}

Result<void> TakeGaps(std::span<const std::byte>& bytes, std::size_t range, std::size_t count,
                      std::vector<std::uint32_t>& positions) {
  positions.clear();
  positions.reserve(count);
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    next += TRY(TakeVarint(bytes));
    if (next >= range) return Corrupt(Str("position ", next, " of ", range));
    positions.push_back(static_cast<std::uint32_t>(next++));
  }
  return {};
}

Result<void> TakeBits(std::span<const std::byte>& bytes, std::size_t range, std::size_t count,
                      std::vector<std::uint32_t>& positions) {
  const std::size_t length = (range + 7) / 8;
  if (bytes.size() < length) return Corrupt(Str(bytes.size(), " bytes left of ", length));
  positions.clear();
  positions.reserve(count);
  for (std::size_t b = 0; b < length; ++b)
    for (auto byte = static_cast<unsigned>(bytes[b]); byte != 0; byte &= byte - 1)
      positions.push_back(static_cast<std::uint32_t>(8 * b) + static_cast<std::uint32_t>(std::countr_zero(byte)));
  bytes = bytes.subspan(length);
  if (positions.size() != count) return Corrupt(Str(positions.size(), " bits set of ", count));
  if (count > 0 && positions.back() >= range) return Corrupt(Str("position ", positions.back(), " of ", range));
  return {};
}

}  // namespace

void AppendPositions(std::span<const std::uint32_t> ascending, std::size_t range, std::vector<std::byte>& out) {
  const bool most = ascending.size() > range / 2;
  const std::vector<std::uint32_t> missing = most ? Missing(ascending, range) : std::vector<std::uint32_t>();
  const std::span<const std::uint32_t> fewer = most ? missing : ascending;
  const bool bits = (range + 7) / 8 < GapBytes(fewer);
  out.push_back(static_cast<std::byte>(bits ? Form::kBits : most ? Form::kMissing : Form::kListed));
  AppendVarint(static_cast<std::uint32_t>(ascending.size()), out);
  if (!bits) {
    VisitGaps(fewer, [&](std::uint32_t gap) { AppendVarint(gap, out); });
    return;
  }
  const std::size_t begin = out.size();
  out.resize(begin + (range + 7) / 8);
  for (const std::uint32_t position : ascending) out[begin + position / 8] |= std::byte{1} << (position % 8);
}

std::size_t ExpectedPositionBytes(std::size_t count, std::size_t range) {
  const std::size_t fewer = std::min(count, range - std::min(count, range));
  const double share = range == 0 ? 0 : static_cast<double>(fewer) / static_cast<double>(range);
  double each = 1;
  for (const int bits : {7, 14, 21, 28}) each += std::pow(1 - share, std::ldexp(1, bits));  // gaps that need one more
  const auto gaps = static_cast<std::size_t>(std::ceil(each * static_cast<double>(fewer)));
  return 1 + VarintBytes(static_cast<std::uint32_t>(count)) + std::min(gaps, (range + 7) / 8);
}

Result<void> TakePositions(std::span<const std::byte>& bytes, std::size_t range, std::size_t bytes_each,
                           std::vector<std::uint32_t>& positions) {
  if (bytes.empty()) return Corrupt("there are none");
  const auto form = static_cast<Form>(bytes.front());
  bytes = bytes.subspan(1);
  const std::size_t count = TRY(TakeVarint(bytes));
  if (count > range) return Corrupt(Str(count, " of ", range));
  if (count * bytes_each > bytes.size()) return Corrupt(Str(count, " announced, ", bytes.size(), " bytes left"));
  switch (form) {
    case Form::kListed:
      return TakeGaps(bytes, range, count, positions);
    case Form::kBits:
      return TakeBits(bytes, range, count, positions);
    case Form::kMissing: {
      if (range - count > bytes.size()) return Corrupt(Str(range - count, " missing, ", bytes.size(), " bytes left"));
      std::vector<std::uint32_t> missing;
      TRY(TakeGaps(bytes, range, range - count, missing));
      positions = Missing(missing, range);
      return {};
    }
  }
  return Corrupt(Str("form ", static_cast<int>(form)));
}

}  // namespace freshet::fabric
