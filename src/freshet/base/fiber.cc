#include "base/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define FRESHET_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FRESHET_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FRESHET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FRESHET_TSAN 1
#endif
#endif
// Jumps switch without the system's help, which would be told each time that no signal is masked. Sanitizers follow
// contexts only, and a fortified library takes a jump between stacks for a mistake.
#if !defined(FRESHET_ASAN) && !defined(FRESHET_TSAN) && !defined(_FORTIFY_SOURCE)
#define FRESHET_JUMPS 1
#endif
#ifdef FRESHET_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef FRESHET_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace freshet::base {
namespace {

std::size_t GuardBytes() {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  void* const memory = ::mmap(nullptr, GuardBytes() + kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  CHECK(memory != MAP_FAILED);
  memory_ = static_cast<std::byte*>(memory);
  CHECK(::mprotect(memory_, GuardBytes(), PROT_NONE) == 0);  // who runs over the end is stopped there
  CHECK(::getcontext(&inside_) == 0);
  inside_.uc_stack.ss_sp = memory_ + GuardBytes();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::Main), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
#ifdef FRESHET_TSAN
  inside_thread_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef FRESHET_TSAN
  __tsan_destroy_fiber(inside_thread_);
#endif
#ifdef FRESHET_ASAN
  __asan_unpoison_memory_region(memory_ + GuardBytes(), kStackBytes);
#endif
  ::munmap(memory_, GuardBytes() + kStackBytes);
}

void Fiber::Enter() {
  CHECK(!ended_);
#ifdef FRESHET_ASAN
  __sanitizer_start_switch_fiber(&outside_fake_, memory_ + GuardBytes(), kStackBytes);
#endif
#ifdef FRESHET_TSAN
  outside_thread_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inside_thread_, 0);
#endif
#ifdef FRESHET_JUMPS
  if (_setjmp(outside_point_) == 0) {
    if (begun_) _longjmp(inside_point_, 1);
    begun_ = true;
    ::setcontext(&inside_);
  }
#else
  CHECK(::swapcontext(&outside_, &inside_) == 0);
#endif
#ifdef FRESHET_ASAN
  __sanitizer_finish_switch_fiber(outside_fake_, nullptr, nullptr);
#endif
}

void Fiber::SwitchBack() {
#ifdef FRESHET_ASAN
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &inside_fake_, outside_bottom_, outside_bytes_);
#endif
#ifdef FRESHET_TSAN
  __tsan_switch_to_fiber(outside_thread_, 0);
#endif
#ifdef FRESHET_JUMPS
  if (_setjmp(inside_point_) == 0) _longjmp(outside_point_, 1);
#else
  CHECK(::swapcontext(&inside_, &outside_) == 0);
#endif
}

void Fiber::Leave() {
  SwitchBack();
#ifdef FRESHET_ASAN
  __sanitizer_finish_switch_fiber(inside_fake_, &outside_bottom_, &outside_bytes_);
#endif
}

void Fiber::Main(unsigned high, unsigned low) {
  Fiber& self = *reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
#ifdef FRESHET_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self.outside_bottom_, &self.outside_bytes_);
#endif
  self.body_();
  self.body_ = nullptr;
  self.ended_ = true;
  self.SwitchBack();
}

}  // namespace freshet::base
