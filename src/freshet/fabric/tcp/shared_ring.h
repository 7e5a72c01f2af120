#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.h"
#include "base/result.h"
#include "fabric/tcp/handshake.h"

namespace freshet::fabric::tcp {

// What two processes see of one direction. Positions only rise; a byte's place is its position modulo the ring.
struct RingControl {
  alignas(64) std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> reader_sleeps;
  alignas(64) std::atomic<std::uint64_t> read;
  std::atomic<std::uint32_t> writer_sleeps;
};

// One direction of shared memory between two processes: a stream of bytes with one writer and one reader.
//
// Before a side sleeps it says so (Sleep), looks again, and is then woken by other means: the other side asks TakeWake
// after each step.
//
// Threads: one at a time on each side. Ownership: borrows the memory.
class RingWriter {
 public:
  RingWriter(RingControl& control, std::span<std::byte> memory) : control_(control), memory_(memory) {}
  // Copies as much as fits; kCorrupt when the other side has spoilt its position.
  Result<std::size_t> Write(std::span<const std::byte> bytes);
  bool Full() const;
  void Sleep(bool sleeping) { control_.writer_sleeps.store(sleeping); }
  // Whether the reader must be woken for what was written; asked once after writing.
  bool TakeWake() { return control_.reader_sleeps.load() != 0 && control_.reader_sleeps.exchange(0) != 0; }

 private:
  RingControl& control_;
  std::span<std::byte> memory_;
  std::uint64_t written_ = 0;  // what the memory says, which the other side could change
};

class RingReader {
 public:
  RingReader(RingControl& control, std::span<const std::byte> memory) : control_(control), memory_(memory) {}
  // What can be read in one piece, in place.
  Result<std::span<const std::byte>> Peek() const;
  void Consume(std::size_t bytes);
  bool Empty() const { return control_.written.load() == read_; }
  void Sleep(bool sleeping) { control_.reader_sleeps.store(sleeping); }
  bool TakeWake() { return control_.writer_sleeps.load() != 0 && control_.writer_sleeps.exchange(0) != 0; }

 private:
  RingControl& control_;
  std::span<const std::byte> memory_;
  std::uint64_t read_ = 0;
};

// The memory of two rings, one each way: an anonymous file that its maker offers and its peer opens through /proc,
// which succeeds for processes of one user on one host (and in one process namespace) alone.
class SharedMemory {
 public:
  // kIo where the system has none to give.
  static Result<std::unique_ptr<SharedMemory>> Make(std::size_t ring_bytes, const std::array<std::byte, 16>& secret);
  static Result<std::unique_ptr<SharedMemory>> Open(const Offer& offer);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Offer offer() const;
  RingWriter writer();
  RingReader reader();
  // The peer has opened it or will not: nobody else needs to find it.
  void CloseDescriptor() { file_.Close(); }

 private:
  SharedMemory(base::Descriptor file, std::span<std::byte> memory, std::size_t ring_bytes, bool maker);
  RingControl& Control(bool of_maker);
  std::span<std::byte> Ring(bool of_maker);

  base::Descriptor file_;
  const std::span<std::byte> memory_;
  const std::size_t ring_bytes_;
  const bool maker_;
};

}  // namespace freshet::fabric::tcp
