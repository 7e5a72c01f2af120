#include "optimize/memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace freshet::optimize {
namespace {

constexpr std::size_t kPage = 4096;
std::size_t Up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void* HeapMemory::Reserve(std::size_t bytes) {
  void* const at = mmap(nullptr, Up(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

bool HeapMemory::Commit(void* at, std::size_t from, std::size_t to) {
  // Whole pages; the page that `from` lies in was committed with what came before it.
  const std::size_t first = from / kPage * kPage, last = Up(to);
  if (first == last) return true;
  char* const begin = static_cast<char*>(at) + first;
  if (mprotect(begin, last - first, PROT_READ | PROT_WRITE) != 0) return false;
  if (last - first >= (4u << 20)) madvise(begin, last - first, MADV_HUGEPAGE);  // a hint: fewer page faults
  return true;
}

void HeapMemory::Release(void* at, std::size_t bytes) { munmap(at, Up(bytes)); }

}  // namespace freshet::optimize
