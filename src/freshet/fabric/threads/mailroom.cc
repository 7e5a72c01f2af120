#include "fabric/threads/mailroom.h"

#include <algorithm>
#include <cstring>

#include "fabric/collectives/sum.h"
#include "fabric/threads/group.h"

namespace freshet::fabric {
namespace {

constexpr int kIndexBits = 24;  // of a transfer's id: which slot; the rest counts

}  // namespace

Result<Transfer> Mailroom::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  TRY(Allowed(to));
  if (to == kAnyRank) return Error{Code::kInvalid, Str("rank ", rank_, " sends to rank ", to, ": name another member")};
  if (group_.reports() && group_.gone(to)) return group_.WhyGone(to);
  Slot* slot = nullptr;
  {
    const base::Lock lock(mutex_);
    slot = NewSlot();
    slot->sends = true;
    slot->use = Use::kCopy;
    slot->peer = to;
    slot->tag = tag;
    slot->bytes = const_cast<std::byte*>(bytes.data());  // only ever read: a send's bytes are nobody's destination
    slot->size = bytes.size();
    slot->state.store(State::kOpen, std::memory_order_relaxed);
  }
  const Transfer transfer{slot->id};
  CountSent(bytes.size());
  Mailroom& theirs = group_.mail(to);
  slot->next = theirs.inbox_.load(std::memory_order_relaxed);
  while (!theirs.inbox_.compare_exchange_weak(slot->next, slot)) {
  }
  group_.bell(to).Ring();
  return transfer;
}

Result<Transfer> Mailroom::Receive(const From& from, Tag tag, std::span<std::byte> into, Use use) {
  TRY(Allowed(from));
  Transfer transfer;
  {
    const base::Lock lock(mutex_);
    EmptyInbox();
    Slot* const slot = NewSlot();
    slot->sends = false;
    slot->use = use;
    slot->peer = from.rank();
    if (from.among().has_value()) slot->among.assign(from.among()->begin(), from.among()->end());
    slot->tag = tag;
    slot->bytes = into.data();
    slot->size = into.size();
    slot->parcel = Match(*slot);
    slot->state.store(slot->parcel != nullptr ? State::kTaken : State::kOpen, std::memory_order_relaxed);
    if (slot->parcel == nullptr) {
      open_.push_back(slot);
    } else {
      matched_.push_back(slot);
      matched_count_.fetch_add(1);
    }
    transfer.id = slot->id;
  }
  Serve();
  return transfer;
}

Result<Arrived> Mailroom::Wait(Transfer transfer, base::Clock::Duration timeout) {
  Slot* slot = nullptr;
  {
    const base::Lock lock(mutex_);
    slot = Find(transfer);
  }
  if (slot == nullptr)
    return Error{Code::kInvalid, Str("rank ", rank_, " waits for a transfer that is over or never was: wait once")};
  if (timeout.count() <= 0) timeout = group_.options().timeout;
  const auto ready = [&] {
    Serve();
    return Ready(*slot);
  };
  (void)group_.bell(rank_).Await(ready, group_.patience(), group_.clock(), timeout);
  if (Final(slot->state.load())) return Finish(slot);
  if (const std::optional<int> lost = LossFor(*slot)) {
    (void)Cancel(slot);
    return Arrived{.from = *lost, .bytes = 0, .view = {}};
  }
  Error why = WhyNot(*slot, timeout);
  if (!Cancel(slot)) return Finish(slot);
  return why;
}

Result<std::size_t> Mailroom::WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout) {
  if (transfers.empty()) return Error{Code::kInvalid, Str("rank ", rank_, " waits for none of no transfers")};
  std::vector<const Slot*> slots;
  {
    const base::Lock lock(mutex_);
    for (const Transfer transfer : transfers) slots.push_back(Find(transfer));
  }
  std::size_t which = 0;
  const auto ready = [&] {
    Serve();
    which = 0;
    while (which < slots.size() && slots[which] != nullptr && !Ready(*slots[which])) ++which;
    return which < slots.size();
  };
  if (timeout.count() <= 0) timeout = group_.options().timeout;
  if (group_.bell(rank_).Await(ready, group_.patience(), group_.clock(), timeout)) return which;
  const std::string others = slots.size() > 1 ? Str(", or for ", slots.size() - 1, " other transfers") : "";
  return Error{Code::kTimeout, Str(Doing(*slots.front()), others, ": none ended within ",
                                   Fixed(base::Seconds(timeout), 1), " s; are they still running?")};
}

bool Mailroom::Done(Transfer transfer) {
  Serve();
  const base::Lock lock(mutex_);
  const Slot* const slot = Find(transfer);
  return slot == nullptr || Ready(*slot);
}

Result<Transfer> Mailroom::StartLoss(const From& of, std::size_t known) {
  TRY(Allowed(of));
  const base::Lock lock(mutex_);
  Slot* const slot = NewSlot();
  slot->sends = false;
  slot->use = Use::kLoss;
  slot->peer = of.rank();
  if (of.among().has_value()) slot->among.assign(of.among()->begin(), of.among()->end());
  slot->known = known;
  slot->state.store(State::kOpen, std::memory_order_relaxed);
  return Transfer{slot->id};
}

void Mailroom::Release(Transfer lent) {
  Slot* parcel = nullptr;
  {
    const base::Lock lock(mutex_);
    Slot* const slot = Find(lent);
    if (slot == nullptr || slot->sends || slot->use != Use::kLend || slot->parcel == nullptr) return;
    parcel = slot->parcel;
    Free(slot);
  }
  End(parcel, State::kDone);
}

void Mailroom::Close() {
  Serve();
  std::vector<Slot*> sends;
  std::vector<Transfer> lent;
  {
    const base::Lock lock(mutex_);
    for (Slot& slot : slots_) {
      const State state = slot.state.load();
      if (slot.sends && (state == State::kOpen || state == State::kTaken)) sends.push_back(&slot);
      if (!slot.sends && state == State::kDone && slot.parcel != nullptr) lent.push_back({slot.id});
    }
    open_.clear();
  }
  for (const Transfer transfer : lent) Release(transfer);
  for (Slot* slot : sends) (void)Cancel(slot);
}

Mailroom::Slot* Mailroom::NewSlot() {
  if (free_.empty()) {
    CHECK(slots_.size() < std::size_t{1} << kIndexBits);
    const std::uint64_t index = slots_.size();
    free_.push_back(&slots_.emplace_back());
    free_.back()->id = index;
  }
  Slot* const slot = free_.back();
  free_.pop_back();
  constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
  slot->id = (next_id_++ << kIndexBits) | (slot->id & kIndexMask);
  slot->owner = rank_;
  slot->among.clear();
  slot->parcel = nullptr;
  slot->arrived = {};
  return slot;
}

Mailroom::Slot* Mailroom::Find(Transfer transfer) {
  const std::uint64_t index = transfer.id & ((std::uint64_t{1} << kIndexBits) - 1);
  if (index >= slots_.size() || slots_[index].id != transfer.id) return nullptr;
  const State state = slots_[index].state.load();
  return state == State::kFree || state == State::kCancelled ? nullptr : &slots_[index];
}

void Mailroom::Free(Slot* slot) {
  slot->state.store(State::kFree, std::memory_order_relaxed);
  free_.push_back(slot);
}

Mailroom::Slot* Mailroom::Match(const Slot& receive) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Slot* const parcel = *it;
    if (parcel->tag != receive.tag || !Takes(receive, parcel->owner)) {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
    State open = State::kOpen;
    if (!Breaks(parcel->owner) && parcel->state.compare_exchange_strong(open, State::kTaken)) return parcel;
  }
  return nullptr;
}

void Mailroom::EmptyInbox() {
  Slot* newest = inbox_.exchange(nullptr);
  Slot* oldest = nullptr;
  while (newest != nullptr) {
    Slot* const next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  for (Slot* parcel = oldest; parcel != nullptr;) {
    Slot* const next = parcel->next;  // read now: a parcel that was taken may be gone
    const auto receive = std::find_if(open_.begin(), open_.end(), [&](const Slot* slot) {
      return slot->tag == parcel->tag && Takes(*slot, parcel->owner);
    });
    State open = State::kOpen;
    if (receive == open_.end()) {
      waiting_.push_back(parcel);
    } else if (!Breaks(parcel->owner) && parcel->state.compare_exchange_strong(open, State::kTaken)) {
      (*receive)->parcel = parcel;
      (*receive)->state.store(State::kTaken);
      matched_.push_back(*receive);
      matched_count_.fetch_add(1);
      open_.erase(receive);
    }
    parcel = next;
  }
}

void Mailroom::Serve() {
  while (inbox_.load() != nullptr || matched_count_.load() > 0) {
    Slot* receive = nullptr;
    {
      const base::Lock lock(mutex_);
      EmptyInbox();
      if (matched_.empty()) return;
      receive = matched_.front();
      matched_.pop_front();
      matched_count_.fetch_sub(1);
    }
    Deliver(receive);
  }
}

void Mailroom::Deliver(Slot* receive) {
  Slot* const parcel = receive->parcel;
  const bool floats = parcel->size % sizeof(float) == 0;
  const bool fits =
      receive->use == Use::kLend || (parcel->size <= receive->size && (receive->use == Use::kCopy || floats));
  receive->arrived = {.from = parcel->owner, .bytes = parcel->size, .view = {}};
  if (fits && receive->use == Use::kLend) {
    receive->arrived.view = {parcel->bytes, parcel->size};
  } else {
    receive->parcel = nullptr;
    if (fits && receive->use == Use::kAdd) {
      Add({reinterpret_cast<float*>(receive->bytes), parcel->size / sizeof(float)},
          reinterpret_cast<const float*>(parcel->bytes));
    } else if (fits && parcel->size > 0) {
      std::memcpy(receive->bytes, parcel->bytes, parcel->size);
    }
    End(parcel, fits ? State::kDone : State::kTooLong);
  }
  receive->state.store(fits ? State::kDone : State::kTooLong);
  group_.bell(rank_).Ring();
}

void Mailroom::End(Slot* slot, State state) const {
  const int owner = slot->owner;
  slot->state.store(state);  // from here on the slot is its owner's
  group_.bell(owner).Ring();
}

bool Mailroom::Takes(const Slot& receive, int from) {
  if (receive.peer != kAnyRank) return receive.peer == from;
  return receive.among.empty() || std::find(receive.among.begin(), receive.among.end(), from) != receive.among.end();
}

// It takes messages back then, perhaps earlier ones first: those after them must not come either.
bool Mailroom::Breaks(int sender) const { return group_.failed() || group_.gone(sender); }

bool Mailroom::Unreachable(const Slot& slot) const {
  if (slot.use == Use::kLoss) return false;
  return slot.peer == kAnyRank ? group_.AllGone(rank_, slot.among) : group_.gone(slot.peer);
}

bool Mailroom::Lost(const Slot& slot) const {
  // What was taken before the other left still comes to its end, so look at the state last.
  return (Unreachable(slot) || group_.failed() || group_.gone(rank_)) && slot.state.load() == State::kOpen;
}

bool Mailroom::Ready(const Slot& slot) const {
  return Final(slot.state.load()) || Lost(slot) || LossFor(slot).has_value();
}

// The lost member that such a wait is for.
std::optional<int> Mailroom::LossFor(const Slot& slot) const {
  if (slot.use != Use::kLoss || !group_.reports()) return std::nullopt;
  std::size_t seen = 0;
  for (const Loss& loss : group_.LossesBut(rank_))
    if (Takes(slot, loss.rank) && seen++ >= slot.known) return loss.rank;
  return std::nullopt;
}

bool Mailroom::Cancel(Slot* slot) {
  {
    const base::Lock lock(mutex_);
    State open = State::kOpen;
    if (slot->sends) {
      // Stays out of use for good: it may still lie in the peer's inbox.
      if (slot->state.compare_exchange_strong(open, State::kCancelled)) return true;
    } else if (slot->state.load() == State::kOpen) {
      open_.remove(slot);
      Free(slot);
      return true;
    }
  }
  // Bytes are on the move, or are lent: that has an end, and memory in use cannot be given back before it.
  const auto ended = [&] {
    Serve();
    return Final(slot->state.load());
  };
  constexpr base::Clock::Duration kAgain = std::chrono::seconds(1);
  while (!group_.bell(rank_).Await(ended, group_.patience(), group_.clock(), kAgain)) {
  }
  return false;
}

Result<Arrived> Mailroom::Finish(Slot* slot) {
  const base::Lock lock(mutex_);
  const State state = slot->state.load();
  Arrived arrived = slot->arrived;
  if (slot->sends) arrived = {.from = rank_, .bytes = slot->size, .view = {}};
  const std::string doing = state == State::kTooLong ? Doing(*slot) : "";
  const bool lent = !slot->sends && slot->use == Use::kLend && state == State::kDone;
  if (!lent) Free(slot);
  if (state != State::kTooLong) return arrived;
  return Error{Code::kInvalid, Str(doing, ": the message has ", arrived.bytes,
                                   " bytes, and its receiver has not room for "
                                   "as many (or they are no whole floats to "
                                   "add): agree on the size, or borrow")};
}

Error Mailroom::WhyNot(const Slot& slot, base::Clock::Duration timeout) {
  if (group_.failed()) return group_.failure();
  if (group_.gone(rank_)) return group_.WhyGone(rank_);
  if (Unreachable(slot)) {
    if (slot.peer != kAnyRank) {
      Error gone = group_.LeftWhile(slot.peer, Doing(slot));
      return group_.reports() ? gone : group_.Fail(std::move(gone));
    }
    if (group_.reports()) return {Code::kPeerLost, Str("all it could come from are gone: ", Doing(slot))};
    return group_.Fail({Code::kPeerLost, Str("all others are gone: they left while ", Doing(slot))});
  }
  return {Code::kTimeout,
          Str(Doing(slot), ": that did not end within ", Fixed(base::Seconds(timeout), 1), " s; is it still running?")};
}

std::string Mailroom::Doing(const Slot& slot) const {
  std::string who = slot.peer == kAnyRank ? "any rank" : group_.Who(slot.peer);
  for (std::size_t i = 0; i < slot.among.size(); ++i)
    who = Str(i == 0 ? "any of " : Str(who, ", "), group_.Who(slot.among[i]));
  if (slot.use == Use::kLoss) return Str(group_.Who(rank_), " waited for the loss of ", who);
  if (slot.sends)
    return Str(group_.Who(rank_), " sent ", HumanBytes(static_cast<double>(slot.size)), " to ", who, " (tag ", slot.tag,
               ")");
  return Str(group_.Who(rank_), " waited for a message from ", who, " (tag ", slot.tag, ")");
}

Result<void> Mailroom::Allowed(const From& peer) const {
  if (group_.failed()) return group_.failure();
  if (group_.gone(rank_)) return group_.WhyGone(rank_);
  const int one = peer.rank();
  const std::span<const int> ranks = peer.among().value_or(std::span(&one, 1));
  if (ranks.empty()) return Error{Code::kInvalid, Str("rank ", rank_, " means nobody: name at least one rank")};
  for (const int rank : ranks) {
    if (rank == kAnyRank && !peer.among().has_value()) continue;
    if (rank < 0 || rank >= group_.size())
      return Error{Code::kInvalid, Str("rank ", rank, " in a group of ", group_.size(), ": ranks begin at 0")};
    if (rank == rank_) return Error{Code::kInvalid, Str("rank ", rank_, " means itself: name another member")};
  }
  return {};
}

}  // namespace freshet::fabric
