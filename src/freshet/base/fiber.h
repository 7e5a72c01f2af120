#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace freshet::base {

// A function with a stack of its own, which can be left in its midst and gone on with later. Sanitizers are told.
//
// Threads: all on one. Ownership: a fiber that was begun has to come to its end before it is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Goes on with it from outside, until it leaves or ends.
  void Enter();
  // From inside: back to who entered.
  void Leave();
  bool ended() const { return ended_; }

 private:
  static void Main(unsigned high, unsigned low);
  void SwitchBack();

  static constexpr std::size_t kStackBytes = 1 << 20;  // reserved; what is not used is not there

  std::function<void()> body_;
  bool ended_ = false;
  std::byte* memory_ = nullptr;
  ucontext_t inside_{}, outside_{};
  jmp_buf inside_point_{}, outside_point_{};  // where to jump to, once it was begun
  bool begun_ = false;

  // What sanitizers know of the two stacks.
  void* inside_fake_ = nullptr;
  void* outside_fake_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
  void* inside_thread_ = nullptr;
  void* outside_thread_ = nullptr;
};

}  // namespace freshet::base
