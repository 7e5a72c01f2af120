#include "base/hollow.h"

#include <sys/mman.h>

#include "base/check.h"

namespace freshet::base {

void* Hollow() {
  static void* const got = [] {
    // Addresses alone: the system gives no page for them, and stops who touches one.
    void* const reserved =
        mmap(nullptr, kMostHollowBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return static_cast<void*>(nullptr);
    hollow::begin.store(reinterpret_cast<std::uintptr_t>(reserved), std::memory_order_relaxed);
    return reserved;
  }();
  return got;
}

std::span<float> HollowFloats(std::size_t count) {
  CHECK(Hollow() != nullptr && count <= kMostHollowBytes / sizeof(float));
  return {static_cast<float*>(Hollow()), count};
}

std::span<const std::byte> HollowBytes(std::size_t count) {
  CHECK(Hollow() != nullptr && count <= kMostHollowBytes);
  return {static_cast<const std::byte*>(Hollow()), count};
}

}  // namespace freshet::base
