#include "optimize/memory.h"

#include <sys/mman.h>

#include <cstdint>

#include "base/hollow.h"

namespace freshet::optimize {
namespace {

// Everything is in pages of 2 MB where the system grants them: fewer faults, and far fewer misses of the TLB when a
// sparse model is touched all over.
constexpr std::size_t kPage = 2 << 20;
std::size_t Up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void* HeapMemory::Reserve(std::size_t bytes) {
  const std::size_t wanted = Up(bytes);
  void* const got = mmap(nullptr, wanted + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  // Give back what lies before and after the aligned part.
  char* const begin = static_cast<char*>(got);
  char* const aligned = reinterpret_cast<char*>(Up(reinterpret_cast<std::uintptr_t>(begin)));
  const auto before = static_cast<std::size_t>(aligned - begin);
  if (before > 0) munmap(begin, before);
  munmap(aligned + wanted, kPage - before);
  return aligned;
}

bool HeapMemory::Commit(void* at, std::size_t from, std::size_t to) {
  // Small pages while it is small; the page that `from` lies in was committed with what came before it.
  constexpr std::size_t kSmallPage = 4096;
  const std::size_t first = from / kSmallPage * kSmallPage;
  const std::size_t last = to < kPage ? (to + kSmallPage - 1) / kSmallPage * kSmallPage : Up(to);
  if (first == last) return true;
  char* const begin = static_cast<char*>(at) + first;
  if (mprotect(begin, last - first, PROT_READ | PROT_WRITE) != 0) return false;
  if (to >= kPage) madvise(static_cast<char*>(at), last, MADV_HUGEPAGE);  // a hint
  return true;
}

void HeapMemory::Release(void* at, std::size_t bytes) { munmap(at, Up(bytes)); }

void* HollowMemory::Reserve(std::size_t bytes) { return bytes <= base::kMostHollowBytes ? base::Hollow() : nullptr; }
bool HollowMemory::Commit(void*, std::size_t, std::size_t) { return true; }
void HollowMemory::Release(void*, std::size_t) {}

}  // namespace freshet::optimize
