#pragma once

#include <cstddef>

namespace freshet::optimize {

// Where parameters live. Address space is reserved once and given memory later, from the front, so that what grows
// never moves. Other kinds (shared, pinned, device) implement the same calls.
//
// Threads: any.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* Reserve(
      std::size_t bytes) = 0;  // on a page of its own; nullptr when there is no room in the address space
  // Makes [at + from, at + to), and perhaps the rest of its last page, usable and zero. False when the system has no
  // memory left.
  virtual bool Commit(void* at, std::size_t from, std::size_t to) = 0;
  virtual void Release(void* at, std::size_t bytes) = 0;
};

class HeapMemory final : public Memory {
 public:
  void* Reserve(std::size_t bytes) override;
  bool Commit(void* at, std::size_t from, std::size_t to) override;
  void Release(void* at, std::size_t bytes) override;
};

// Parameters of which only the size is of interest (base/hollow.h).
class HollowMemory final : public Memory {
 public:
  void* Reserve(std::size_t bytes) override;
  bool Commit(void* at, std::size_t from, std::size_t to) override;
  void Release(void* at, std::size_t bytes) override;
};

}  // namespace freshet::optimize
