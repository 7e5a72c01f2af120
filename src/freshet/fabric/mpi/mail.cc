#include "fabric/mpi/mail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fabric/mpi/call.h"

namespace freshet::fabric::mpi {
namespace {

constexpr std::uint32_t kMagic = 0x4d'46'52'31;  // "1RFM" in memory: this form of notes
constexpr std::size_t kSlots = 32;
constexpr std::size_t kSpare = 64;  // packets kept for the next notes

// The head of a note as it travels: between processes of one build, as it lies in memory.
struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t type = 0;
  std::uint64_t generation = 0;
  std::uint64_t tag = 0;
  std::uint64_t id = 0;
  std::uint64_t argument = 0;
};
constexpr std::size_t kPacketBytes = sizeof(Head) + kEagerBytes;

}  // namespace

Mail::Mail(MPI_Comm communicator, std::uint64_t generation) : communicator_(communicator), generation_(generation) {
  int size = 0;
  CHECK(MPI_Comm_size(communicator, &size) == MPI_SUCCESS);
  out_.resize(static_cast<std::size_t>(size));
}

Mail::~Mail() {
  if (abandoned_) return;
  bool all = true;
  for (Slot& slot : slots_) all = TakeBack(slot.request) && all;
  if (!all || unsent_ > 0) Abandon();
}

// The memory that MPI may still read or write is never given back.
void Mail::Abandon() {
  abandoned_ = true;
  for (Slot& slot : slots_) (void)slot.packet.release();
  for (auto& queue : out_)
    for (Outgoing& outgoing : queue) (void)outgoing.packet.release();
}

Result<void> Mail::Open() {
  slots_.resize(kSlots);
  for (Slot& slot : slots_) {
    slot.packet = NewPacket();
    TRY(Post(slot));
  }
  return {};
}

Result<void> Mail::Post(Slot& slot) {
  return Called(MPI_Irecv(slot.packet.get(), static_cast<int>(kPacketBytes), MPI_BYTE, MPI_ANY_SOURCE, kMailTag,
                          communicator_, &slot.request),
                "MPI_Irecv");
}

Mail::Packet Mail::NewPacket() {
  if (spare_.empty()) return Packet(new std::byte[kPacketBytes]);
  Packet packet = std::move(spare_.back());
  spare_.pop_back();
  return packet;
}

Result<void> Mail::Send(int to, const Note& note, std::span<const std::byte> payload) {
  payload = payload.first(std::min(payload.size(), kEagerBytes));
  const Head head{.type = static_cast<std::uint32_t>(note.type),
                  .generation = generation_,
                  .tag = note.tag,
                  .id = note.id,
                  .argument = note.argument};
  Outgoing outgoing{MPI_REQUEST_NULL, NewPacket()};
  std::memcpy(outgoing.packet.get(), &head, sizeof head);
  if (!payload.empty()) std::memcpy(outgoing.packet.get() + sizeof head, payload.data(), payload.size());
  const std::size_t bytes = sizeof head + payload.size();
  TRY(Called(MPI_Isend(outgoing.packet.get(), static_cast<int>(bytes), MPI_BYTE, to, kMailTag, communicator_,
                       &outgoing.request),
             "MPI_Isend"));
  bytes_sent_ += bytes;
  ++unsent_;
  out_[static_cast<std::size_t>(to)].push_back(std::move(outgoing));
  return {};
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the packet is the queue's now

Result<void> Mail::Turn() {
  if (unsent_ == 0) return {};
  for (auto& queue : out_) {
    while (!queue.empty() && TRY(Ended(queue.front().request))) {
      if (spare_.size() < kSpare) spare_.push_back(std::move(queue.front().packet));
      queue.pop_front();
      --unsent_;
    }
  }
  return {};
}

Result<std::optional<Mail::Letter>> Mail::Receive() {
  while (true) {
    if (std::exchange(taken_, false)) {
      Slot& emptied = slots_[first_];
      first_ = (first_ + 1) % slots_.size();
      TRY(Post(emptied));
    }
    Slot& slot = slots_[first_];
    MPI_Status status;
    if (!TRY(Ended(slot.request, &status))) return std::optional<Letter>();
    int bytes = 0;
    TRY(Called(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count"));
    taken_ = true;
    const auto letter = Read(status.MPI_SOURCE, {slot.packet.get(), static_cast<std::size_t>(bytes)});
    if (letter.has_value()) return letter;
  }
}

// Nothing for a note of another generation.
std::optional<Mail::Letter> Mail::Read(int from, std::span<const std::byte> bytes) const {
  Head head;
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  const bool known = head.type >= 1 && head.type <= static_cast<std::uint32_t>(NoteType::kWake);
  if (bytes.size() < sizeof head || head.magic != kMagic || !known) return Letter{.from = from, .good = false};
  if (head.generation != generation_) return std::nullopt;
  return Letter{.from = from,
                .note = {static_cast<NoteType>(head.type), head.tag, head.id, head.argument},
                .payload = bytes.subspan(sizeof head)};
}

}  // namespace freshet::fabric::mpi
