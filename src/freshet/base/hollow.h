#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace freshet::base {

// Memory that is only an address: it can be measured, cut and sent, and there is nothing behind it. A simulation that is
// about time alone puts it in the place of everything large. Who reads or writes what others lend asks first; who
// forgets to is stopped by the system.
//
// Nothing is kept there, so that everybody can be given the same.
//
// Threads: any.
inline constexpr std::size_t kMostHollowBytes = std::size_t{1} << 36;

namespace hollow {
// Where it begins; until somebody wants some, where no address is counted from.
inline std::atomic<std::uintptr_t> begin{0 - kMostHollowBytes};
}  // namespace hollow

inline bool IsHollow(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) - hollow::begin.load(std::memory_order_relaxed) < kMostHollowBytes;
}
inline bool IsHollow(std::span<const float> values) { return IsHollow(values.data()); }

void* Hollow();  // on a page of its own; nullptr when there is no room in the address space
// At most kMostHollowBytes, which there must be room for.
std::span<float> HollowFloats(std::size_t count);
std::span<const std::byte> HollowBytes(std::size_t count);

}  // namespace freshet::base
