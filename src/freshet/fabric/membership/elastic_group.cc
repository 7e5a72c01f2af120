#include "fabric/membership/elastic_group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::fabric {

using Kind = MembershipMessage::Kind;

ElasticGroup::ElasticGroup(Options options, Seat self, Roster first, Post& post, Connect connect, base::Clock& clock)
    : options_(std::move(options)),
      self_(std::move(self)),
      post_(post),
      connect_(std::move(connect)),
      clock_(clock),
      arrived_(clock.NewCondition()),
      membership_(options_.membership, self_, first, clock.Now()) {
  for (const Seat& seat : first.seats) addresses_[seat.id] = seat.address;
  if (first.generation > 0) {
    if (options_.remember) options_.remember({.committed = first});
    decided_ = std::move(first);
  }
  postman_ = base::Thread(clock, [this] { TakeLetters(); });
}

ElasticGroup::~ElasticGroup() {
  {
    const base::Lock lock(mutex_);
    ending_ = true;
  }
  post_.Wake();
  postman_.Join();
}

Roster ElasticGroup::roster() const {
  const base::Lock lock(mutex_);
  return membership_.roster();
}

int ElasticGroup::rank() const {
  const Roster roster = this->roster();
  const auto seat =
      std::find_if(roster.seats.begin(), roster.seats.end(), [&](const Seat& s) { return s.id == self_.id; });
  CHECK(seat != roster.seats.end());
  return static_cast<int>(seat - roster.seats.begin());
}

bool ElasticGroup::too_few() const {
  const base::Lock lock(mutex_);
  return membership_.too_few();
}

bool ElasticGroup::change_wanted() const {
  const base::Lock lock(mutex_);
  return change_wanted_ && membership_.roster().seats.size() < options_.membership.most;
}

// Can it be answered whatever this member is doing? Who is behind is told what was decided; that somebody ended who was
// left out before changes nothing.
bool ElasticGroup::Stale(const Envelope& envelope) const {
  if (envelope.proof) {
    const Roster& roster = membership_.roster();
    return !roster.Has(envelope.proof->id) && envelope.proof->testimony.committed.generation <= roster.generation;
  }
  return envelope.message && envelope.message->kind != Kind::kJoin &&
         envelope.message->generation <= membership_.roster().generation;
}

void ElasticGroup::TakeLetters() {
  while (true) {
    const std::optional<std::string> letter = post_.Receive(base::Clock::Duration::max());
    const base::Lock lock(mutex_);
    if (ending_) return;
    if (!letter) continue;
    Result<Envelope> envelope = Envelope::Decode(*letter);
    if (!envelope.ok() || (envelope.value().to != 0 && envelope.value().to != self_.id)) continue;
    if (const auto& question = envelope.value().question) {
      if (options_.answer)
        post_.Send(question->reply_to,
                   Envelope{.answer = options_.answer(membership_.roster(), question->order)}.Encode());
      continue;
    }
    if (envelope.value().answer) continue;  // nothing was asked
    Note(envelope.value());
    if (Stale(envelope.value())) {
      Handle(envelope.value());
      continue;
    }
    const bool join = envelope.value().message && envelope.value().message->kind == Kind::kJoin;
    if (join && !parked_) change_wanted_ = true;
    waiting_.push_back(std::move(envelope).value());
    if (!join) came_up_ = true;
    if (parked_)
      arrived_->NotifyAll();
    else if (!join)
      fabric_->Abort({Code::kPeerLost, "the group changes"});
  }
}

void ElasticGroup::Note(const Envelope& envelope) {
  if (envelope.proof) ends_[envelope.proof->id] = envelope.proof->how;
  if (!envelope.message) return;
  for (const Seat& seat : envelope.message->seats) addresses_[seat.id] = seat.address;
  for (const Proof& proof : envelope.message->proofs) ends_[proof.id] = proof.how;
}

std::string ElasticGroup::HowEnded(MemberId id) const {
  const base::Lock lock(mutex_);
  const auto found = ends_.find(id);
  return found == ends_.end() ? "" : found->second;
}

void ElasticGroup::Handle(const Envelope& envelope) {
  if (envelope.message)
    membership_.OnMessage(*envelope.message, clock_.Now());
  else
    membership_.OnProof(*envelope.proof, clock_.Now());
  Dispatch();
}

void ElasticGroup::Send(MemberId to, const MembershipMessage& message) {
  const auto address = addresses_.find(to);
  if (address == addresses_.end()) return;
  post_.Send(address->second, Envelope{.to = to, .message = message}.Encode());
}

void ElasticGroup::Dispatch() {
  Membership::Effects effects = membership_.Take();
  if (effects.remember && options_.remember) options_.remember(*effects.remember);
  for (const auto& out : effects.send) Send(out.to, out.message);
  if (effects.decided) {
    for (const Seat& seat : effects.decided->seats) addresses_[seat.id] = seat.address;
    decided_ = std::move(effects.decided);
  }
  if (effects.stopped) stopped_ = std::move(effects.stopped);
}

Result<void> ElasticGroup::Begin() { return Settle(); }

Result<void> ElasticGroup::Regroup(std::uint64_t step, std::uint64_t tier, Admits admits, bool in_order,
                                   std::optional<MemberId> without) {
  {
    const base::Lock lock(mutex_);
    parked_ = true;
    membership_.SetHave(step, tier);
    membership_.SetAdmits(admits);
    if (const auto missed = fabric_ != nullptr ? fabric_->Missed() : std::nullopt)
      membership_.OnSuspect(membership_.roster().seats.at(static_cast<std::size_t>(*missed)).id, clock_.Now());
    if (without) membership_.OnLeave(*without, clock_.Now());
    membership_.OnWanted(clock_.Now());
    Dispatch();
  }
  if (fabric_ != nullptr && !in_order) fabric_->Abort({Code::kPeerLost, "the group changes"});
  fabric_ = nullptr;
  return Settle();
}

// Until there is a generation in which all have met.
Result<void> ElasticGroup::Settle() {
  const auto give_up = clock_.Now() + options_.let_in;
  for (int attempt = 0; attempt < options_.attempts; ++attempt) {
    Roster roster;
    {
      const base::Lock lock(mutex_);
      while (!stopped_ && (!decided_ || !waiting_.empty())) {
        if (!waiting_.empty()) {
          const Envelope envelope = std::move(waiting_.front());
          waiting_.pop_front();
          Handle(envelope);
          continue;
        }
        const bool outside = membership_.roster().generation == 0;
        if (outside && clock_.Now() >= give_up)
          return Error{Code::kPeerLost, Str("nobody let this worker in, of ", Join(options_.contacts, ", "))};
        if (outside && clock_.Now() >= ask_again_) {
          MembershipMessage join;
          join.kind = Kind::kJoin;
          join.from = self_.id;
          join.seats = {self_};
          for (const std::string& contact : options_.contacts)
            post_.Send(contact, Envelope{.to = 0, .message = join}.Encode());
          ask_again_ = clock_.Now() + options_.membership.retry;
        }
        arrived_->WaitUntil(mutex_, outside ? ask_again_ : membership_.wake());
        if (!outside && clock_.Now() >= membership_.wake()) {
          membership_.OnTime(clock_.Now());
          Dispatch();
        }
      }
      if (stopped_) return *stopped_;
      roster = *std::exchange(decided_, std::nullopt);
      change_wanted_ = false;
      came_up_ = !waiting_.empty();
    }
    auto fabric = connect_(roster, rank(), came_up_);
    const base::Lock lock(mutex_);
    if (fabric.ok() && waiting_.empty() && !membership_.changing() && !stopped_ && !decided_) {
      fabric_ = std::move(fabric).value();
      parked_ = false;
      return {};
    }
    // Something came up meanwhile, or they did not all meet.
    if (fabric.ok()) fabric.value()->Abort({Code::kPeerLost, "the group changes"});
    if (!stopped_ && !decided_) {
      membership_.OnWanted(clock_.Now());
      Dispatch();
    }
  }
  return Error{Code::kPeerLost, Str("no generation came together in ", options_.attempts, " attempts")};
}

}  // namespace freshet::fabric
