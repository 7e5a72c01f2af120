#include "fabric/tcp/shared_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace freshet::fabric::tcp {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::size_t kControlBytes = 4096;  // secret, then one RingControl for each direction
constexpr std::size_t kControlAt[2] = {1024, 2048};
constexpr std::uint64_t kMaxRingBytes = 1 << 30;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;  // so that nobody can cut off what we have mapped

Error SystemError(std::string_view doing) {
  return {Code::kIo, Str("cannot ", doing, " shared memory: ", std::strerror(errno))};
}

Result<std::span<std::byte>> Map(int file, std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return SystemError("map");
  return std::span(static_cast<std::byte*>(at), bytes);
}

std::size_t TotalBytes(std::size_t ring_bytes) { return kControlBytes + 2 * ring_bytes; }

}  // namespace

Result<std::size_t> RingWriter::Write(std::span<const std::byte> bytes) {
  const std::uint64_t used = written_ - control_.read.load(std::memory_order_acquire);
  if (used > memory_.size()) return Error{Code::kCorrupt, "the shared memory was spoilt"};
  const std::size_t count = std::min<std::size_t>(bytes.size(), memory_.size() - used);
  const std::size_t at = written_ & (memory_.size() - 1);
  const std::size_t first = std::min(count, memory_.size() - at);
  if (count > 0) std::memcpy(memory_.data() + at, bytes.data(), first);
  if (count > first) std::memcpy(memory_.data(), bytes.data() + first, count - first);
  written_ += count;
  control_.written.store(written_);  // in one order with reader_sleeps, see RingReader::Sleep
  return count;
}

bool RingWriter::Full() const { return written_ - control_.read.load() >= memory_.size(); }

Result<std::span<const std::byte>> RingReader::Peek() const {
  const std::uint64_t there = control_.written.load(std::memory_order_acquire) - read_;
  if (there > memory_.size()) return Error{Code::kCorrupt, "the shared memory was spoilt"};
  const std::size_t at = read_ & (memory_.size() - 1);
  return memory_.subspan(at, std::min<std::size_t>(there, memory_.size() - at));
}

void RingReader::Consume(std::size_t bytes) {
  read_ += bytes;
  control_.read.store(read_);
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::Make(std::size_t ring_bytes,
                                                         const std::array<std::byte, 16>& secret) {
  base::Descriptor file(::memfd_create("freshet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open()) return SystemError("make");
  if (::ftruncate(file.get(), static_cast<off_t>(TotalBytes(ring_bytes))) != 0) return SystemError("size");
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return SystemError("seal");
  const std::span<std::byte> memory = TRY(Map(file.get(), TotalBytes(ring_bytes)));
  std::memcpy(memory.data(), secret.data(), secret.size());
  for (const std::size_t at : kControlAt) new (memory.data() + at) RingControl{};
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(file), memory, ring_bytes, true));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::Open(const Offer& offer) {
  if (!std::has_single_bit(offer.bytes) || offer.bytes > kMaxRingBytes)
    return Error{Code::kInvalid, Str("shared memory of ", offer.bytes, " bytes is not taken")};
  const std::string path = Str("/proc/", offer.process, "/fd/", offer.descriptor);
  base::Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.open()) return SystemError("open the other process's");
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return SystemError("look at");
  if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid() ||
      static_cast<std::uint64_t>(facts.st_size) != TotalBytes(offer.bytes) ||
      (::fcntl(file.get(), F_GET_SEALS) & kSeals) != kSeals)
    return Error{Code::kInvalid, "what the other process offers is no shared memory of ours"};
  const std::span<std::byte> memory = TRY(Map(file.get(), TotalBytes(offer.bytes)));
  std::unique_ptr<SharedMemory> shared(new SharedMemory({}, memory, offer.bytes, false));
  if (std::memcmp(memory.data(), offer.secret.data(), offer.secret.size()) != 0)
    return Error{Code::kInvalid, "the shared memory found belongs to others"};
  return shared;
}

SharedMemory::SharedMemory(base::Descriptor file, std::span<std::byte> memory, std::size_t ring_bytes, bool maker)
    : file_(std::move(file)), memory_(memory), ring_bytes_(ring_bytes), maker_(maker) {}

SharedMemory::~SharedMemory() { ::munmap(memory_.data(), memory_.size()); }

Offer SharedMemory::offer() const {
  Offer offer{.bytes = ring_bytes_, .process = ::getpid(), .descriptor = file_.get(), .secret = {}};
  std::memcpy(offer.secret.data(), memory_.data(), offer.secret.size());
  return offer;
}

RingControl& SharedMemory::Control(bool of_maker) {
  return *std::launder(reinterpret_cast<RingControl*>(memory_.data() + kControlAt[of_maker ? 0 : 1]));
}
std::span<std::byte> SharedMemory::Ring(bool of_maker) {
  return memory_.subspan(kControlBytes + (of_maker ? 0 : ring_bytes_), ring_bytes_);
}
RingWriter SharedMemory::writer() { return {Control(maker_), Ring(maker_)}; }
RingReader SharedMemory::reader() { return {Control(!maker_), Ring(!maker_)}; }

}  // namespace freshet::fabric::tcp
