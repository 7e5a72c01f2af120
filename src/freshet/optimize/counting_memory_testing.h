#pragma once

#include <cstdint>

#include "optimize/memory.h"

namespace freshet::optimize {

// Memory that counts what it was asked for.
class CountingMemory final : public Memory {
 public:
  void* Reserve(std::size_t bytes) override {
    reserved += bytes;
    return heap_.Reserve(bytes);
  }
  bool Commit(void* at, std::size_t from, std::size_t to) override {
    committed += to - from;
    return heap_.Commit(at, from, to);
  }
  void Release(void* at, std::size_t bytes) override { heap_.Release(at, bytes); }

  std::uint64_t reserved = 0, committed = 0;  // bytes: of the address space, and such as can be used

 private:
  HeapMemory heap_;
};

}  // namespace freshet::optimize
