#include "fabric/membership/membership.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::fabric {

using Kind = MembershipMessage::Kind;

Membership::Membership(Options options, Seat self, Roster first, Duration now)
    : options_(options), self_(std::move(self)), testimony_{.committed = std::move(first)} {
  CHECK(roster().generation == 0 || roster().Has(self_.id));
  if (roster().generation == 0) {
    begun_ = now;
    next_try_ = now;
  }
  SetWake(now);
}

Membership::Effects Membership::Take() { return std::exchange(effects_, {}); }

void Membership::SetHave(std::uint64_t step, std::uint64_t tier) {
  self_.step = step;
  self_.tier = tier;
}

MemberId Membership::Leader() const {
  for (const Seat& seat : roster().seats)
    if (!Missing(seat.id)) return seat.id;
  return self_.id;
}

// Among those who are there, counted from 0.
std::size_t Membership::Place() const {
  std::size_t place = 0;
  for (const Seat& seat : roster().seats) {
    if (seat.id == self_.id) return place;
    if (!Missing(seat.id)) ++place;
  }
  return place;
}

template <class Ids>
bool Membership::Suffice(const Ids& ids) const {
  std::size_t there = 0, unknown = 0;
  for (const Seat& seat : roster().seats) {
    if (ids.contains(seat.id))
      ++there;
    else if (!proofs_.contains(seat.id))
      ++unknown;
  }
  return unknown == 0 || 2 * there > roster().seats.size();
}

bool Membership::Needed() const {
  if (roster().generation == 0 || wanted_) return true;
  for (const Seat& seat : roster().seats)
    if (Missing(seat.id) || leaving_.contains(seat.id)) return true;
  return admits_ == Admits::kAll && !joiners_.empty() && roster().seats.size() < options_.most;
}

MembershipMessage Membership::Message(Kind kind) const {
  MembershipMessage message;
  message.kind = kind;
  message.from = self_.id;
  message.generation = roster().generation + 1;
  return message;
}

MembershipMessage Membership::Promise() const {
  MembershipMessage message = Message(Kind::kPromise);
  message.ballot = testimony_.next.promised;
  message.accepted = testimony_.next.accepted;
  message.roster = testimony_.next.value;
  message.seats = {self_};
  return message;
}

void Membership::Send(MemberId to, MembershipMessage message) {
  if (to != self_.id) effects_.send.push_back({to, std::move(message)});
}

void Membership::Stop(std::string why) {
  over_ = true;
  effects_.stopped = Error{Code::kPeerLost, std::move(why)};
  wake_ = Duration::max();
}

void Membership::SetWake(Duration now) {
  if (over_) return;
  wake_ = Duration::max();
  if (!begun_) return;
  wake_ = next_try_;
  if (roster().generation > 0) wake_ = std::min(wake_, *begun_ + options_.patience);
  wake_ = std::max(wake_, now);
}

// Something has changed: is there anything to do?
void Membership::Look(Duration now) {
  if (over_) return;
  if (!Needed()) {
    begun_.reset();
    proposal_.reset();
  } else if (!begun_) {
    Begin(now);
  }
  SetWake(now);
}

void Membership::Begin(Duration now) {
  begun_ = now;
  // Others wait for those before them, each a little longer.
  if (Leader() == self_.id)
    Propose(now);
  else
    next_try_ = now + options_.retry * static_cast<int>(1 + std::min<std::size_t>(Place(), 8));
}

void Membership::Propose(Duration now) {
  const std::uint64_t round = std::max(highest_round_, testimony_.next.promised.round) + 1;
  highest_round_ = round;
  proposal_ = Proposal{.ballot = {round, self_.id}, .promises = {}, .value = {}, .accepted = {}};
  testimony_.next.promised = proposal_->ballot;
  Remember();
  proposal_->promises[self_.id] = Promise();
  Ask(now);
  TryPropose(now);
}

void Membership::Ask(Duration now) {
  MembershipMessage prepare = Message(Kind::kPrepare);
  prepare.ballot = proposal_->ballot;
  for (const auto& [id, proof] : proofs_) prepare.proofs.push_back(proof);
  for (const Seat& seat : roster().seats)
    if (!proofs_.contains(seat.id)) Send(seat.id, prepare);
  next_try_ = now + options_.retry * static_cast<int>(1 + std::min<std::size_t>(Place(), 8));
}

// What was accepted last, by whomever; else those who have promised, and who wants in.
Roster Membership::Choose() const {
  Ballot last;
  Roster value;
  const auto consider = [&](const Ballot& accepted, const Roster& roster) {
    if (accepted.round == 0 || roster.generation != this->roster().generation + 1 || accepted < last) return;
    last = accepted;
    value = roster;
  };
  for (const auto& [id, promise] : proposal_->promises) consider(promise.accepted, promise.roster);
  for (const auto& [id, proof] : proofs_)
    if (roster().Has(id) && proof.testimony.committed.generation == roster().generation)
      consider(proof.testimony.next.accepted, proof.testimony.next.value);
  if (last.round > 0) return value;
  value.generation = roster().generation + 1;
  for (const Seat& seat : roster().seats) {
    const auto promise = proposal_->promises.find(seat.id);
    if (promise != proposal_->promises.end() && !leaving_.contains(seat.id))
      value.seats.push_back(promise->second.seats.at(0));
  }
  std::stable_sort(value.seats.begin(), value.seats.end(),
                   [](const Seat& a, const Seat& b) { return a.tier < b.tier; });
  const bool admits =
      admits_ == Admits::kAll || (admits_ == Admits::kWhenTooFew && value.seats.size() < options_.least);
  for (const auto& [id, seat] : joiners_)
    if (admits && value.seats.size() < options_.most && !proofs_.contains(id) && !value.Has(id))
      value.seats.push_back(seat);
  return value;
}

// Enough have promised: this is what it shall be.
void Membership::TryPropose(Duration now) {
  if (!proposal_ || proposal_->value || !Suffice(proposal_->promises)) return;
  // Those who are thought to be there are waited for, since they may be busy; of those who are missed, for a proof, which
  // says how they ended.
  Duration until{0};
  for (const Seat& seat : roster().seats) {
    if (proofs_.contains(seat.id) || proposal_->promises.contains(seat.id)) continue;
    until = std::max(until, suspects_.contains(seat.id) ? *begun_ + options_.retry
                                                        : std::max(next_try_, *begun_ + options_.hearing));
  }
  if (now < until) return;
  Roster value = Choose();
  if (value.seats.size() < options_.least || value.seats.empty()) return;  // perhaps somebody joins
  proposal_->value = std::move(value);
  testimony_.next.accepted = proposal_->ballot;
  testimony_.next.value = *proposal_->value;
  Remember();
  proposal_->accepted = {self_.id};
  MembershipMessage accept = Message(Kind::kAccept);
  accept.ballot = proposal_->ballot;
  accept.roster = *proposal_->value;
  for (const auto& [id, proof] : proofs_) accept.proofs.push_back(proof);
  for (const auto& [id, promise] : proposal_->promises) Send(id, accept);
  next_try_ = now + options_.retry * static_cast<int>(1 + std::min<std::size_t>(Place(), 8));
  TryDecide(now);
}

void Membership::TryDecide(Duration now) {
  if (!proposal_ || !proposal_->value || !Suffice(proposal_->accepted)) return;
  const Roster before = roster(), value = *proposal_->value;
  MembershipMessage commit = Message(Kind::kCommit);
  commit.generation = value.generation;
  commit.roster = value;
  for (const Seat& seat : before.seats)
    if (!proofs_.contains(seat.id)) Send(seat.id, commit);
  for (const Seat& seat : value.seats)
    if (!before.Has(seat.id)) Send(seat.id, commit);
  Decide(value, now);
}

void Membership::Decide(const Roster& decided, Duration now) {
  testimony_ = {.committed = decided, .next = {}};
  Remember();
  suspects_.clear();
  leaving_.clear();
  proposal_.reset();
  begun_.reset();
  wanted_ = false;
  if (admits_once_) admits_ = Admits::kNobody;
  highest_round_ = 0;
  std::erase_if(joiners_, [&](const auto& joiner) { return decided.Has(joiner.first); });
  std::erase_if(proofs_,
                [&](const auto& proof) { return !decided.Has(proof.first) && !joiners_.contains(proof.first); });
  for (const Seat& seat : decided.seats)
    if (auto ended = outsiders_.extract(seat.id); !ended.empty()) proofs_.insert(std::move(ended));
  if (!decided.Has(self_.id))
    return Stop(Str("the others went on without this worker, as generation ", decided.generation));
  effects_.decided = decided;
  Look(now);
}

void Membership::OnMessage(const MembershipMessage& message, Duration now) {
  if (over_) return;
  if (message.kind == Kind::kCommit) {
    const Roster& decided = message.roster;
    if (decided.generation > roster().generation && (roster().generation > 0 || decided.Has(self_.id)))
      Decide(decided, now);
    return;
  }
  if (message.kind == Kind::kJoin) {
    for (const Seat& seat : message.seats) OnJoin(seat, now);
    return;
  }
  if (roster().generation == 0) return;  // it takes no part yet
  if (message.generation <= roster().generation) {
    // Who asks is behind. (That a member of this roster was left out of an older one cannot be.)
    MembershipMessage commit = Message(Kind::kCommit);
    commit.generation = roster().generation;
    commit.roster = roster();
    if (message.kind == Kind::kPrepare || message.kind == Kind::kAccept) Send(message.from, std::move(commit));
    return;
  }
  if (message.generation > roster().generation + 1) {
    // This one is: whoever is told so says what was decided.
    MembershipMessage refused = Message(Kind::kRefused);
    if (message.kind == Kind::kPrepare || message.kind == Kind::kAccept) Send(message.from, std::move(refused));
    return;
  }
  Learn(message.proofs, now);
  highest_round_ = std::max(highest_round_, message.ballot.round);
  suspects_.erase(message.from);  // it is there
  switch (message.kind) {
    case Kind::kPrepare:
      return OnPrepare(message, now);
    case Kind::kAccept:
      return OnAccept(message, now);
    case Kind::kPromise:
      if (!proposal_ || proposal_->ballot != message.ballot || message.seats.size() != 1 ||
          message.seats[0].id != message.from || !roster().Has(message.from))
        return;
      proposal_->promises[message.from] = message;
      TryPropose(now);
      break;
    case Kind::kAccepted:
      if (!proposal_ || proposal_->ballot != message.ballot || !roster().Has(message.from)) return;
      proposal_->accepted.insert(message.from);
      TryDecide(now);
      break;
    case Kind::kRefused:
      break;  // another attempt comes with its time, above what was heard of
    case Kind::kJoin:
    case Kind::kCommit:
      break;
  }
  if (!over_) SetWake(now);
}

void Membership::OnPrepare(const MembershipMessage& message, Duration now) {
  Vote& vote = testimony_.next;
  if (!roster().Has(message.from)) return;
  if (message.ballot < vote.promised) {
    MembershipMessage refused = Message(Kind::kRefused);
    refused.ballot = vote.promised;
    return Send(message.from, std::move(refused));
  }
  vote.promised = message.ballot;
  Remember();
  if (proposal_ && proposal_->ballot < message.ballot) proposal_.reset();
  Send(message.from, Promise());
  // A change is under way, though this member may not know why.
  if (!begun_) begun_ = now;
  next_try_ = now + options_.retry * static_cast<int>(2 + std::min<std::size_t>(Place(), 8));
  SetWake(now);
}

void Membership::OnAccept(const MembershipMessage& message, Duration now) {
  Vote& vote = testimony_.next;
  if (!roster().Has(message.from) || message.roster.generation != roster().generation + 1) return;
  if (message.ballot < vote.promised) {
    MembershipMessage refused = Message(Kind::kRefused);
    refused.ballot = vote.promised;
    return Send(message.from, std::move(refused));
  }
  vote = {.promised = message.ballot, .accepted = message.ballot, .value = message.roster};
  Remember();
  if (proposal_ && proposal_->ballot < message.ballot) proposal_.reset();
  MembershipMessage accepted = Message(Kind::kAccepted);
  accepted.ballot = message.ballot;
  Send(message.from, std::move(accepted));
  if (!begun_) begun_ = now;
  next_try_ = now + options_.retry * static_cast<int>(2 + std::min<std::size_t>(Place(), 8));
  SetWake(now);
}

void Membership::Learn(const std::vector<Proof>& proofs, Duration now) {
  for (const Proof& proof : proofs)
    if (!over_) OnProof(proof, now);
}

void Membership::OnSuspect(MemberId id, Duration now) {
  if (over_ || id == self_.id || !roster().Has(id) || Missing(id)) return;
  suspects_.insert(id);
  if (begun_ && !proposal_ && Leader() == self_.id) Propose(now);
  TryPropose(now);
  if (!over_) Look(now);
}

void Membership::OnProof(const Proof& proof, Duration now) {
  if (over_ || proof.id == self_.id) return;
  joiners_.erase(proof.id);
  // The dead may have known of a decision that nobody here has heard of.
  const Roster& known = proof.testimony.committed;
  if (roster().generation > 0 && known.generation > roster().generation) Decide(known, now);
  if (over_) return;
  if (!roster().Has(proof.id)) {
    outsiders_.emplace(proof.id, proof);
    if (outsiders_.size() > kMostOutsiders) outsiders_.erase(outsiders_.begin());
    return Look(now);
  }
  if (!proofs_.emplace(proof.id, proof).second) return Look(now);
  suspects_.erase(proof.id);
  if (begun_ && !proposal_ && Leader() == self_.id) Propose(now);
  TryPropose(now);
  TryDecide(now);
  if (!over_) Look(now);
}

void Membership::OnJoin(const Seat& seat, Duration now) {
  if (over_ || roster().generation == 0 || seat.id == self_.id || proofs_.contains(seat.id)) return;
  if (outsiders_.contains(seat.id)) return;
  if (roster().Has(seat.id)) {  // it has missed that
    MembershipMessage commit = Message(Kind::kCommit);
    commit.generation = roster().generation;
    commit.roster = roster();
    return Send(seat.id, std::move(commit));
  }
  const bool fresh = joiners_.emplace(seat.id, seat).second;
  if (fresh && Leader() != self_.id) {
    MembershipMessage join = Message(Kind::kJoin);
    join.seats = {seat};
    Send(Leader(), std::move(join));
  }
  TryPropose(now);
  if (!over_) Look(now);
}

void Membership::OnLeave(MemberId id, Duration now) {
  if (over_ || !roster().Has(id)) return;
  leaving_.insert(id);
  Look(now);
}

void Membership::OnWanted(Duration now) {
  if (over_) return;
  wanted_ = true;
  Look(now);
}

void Membership::OnContact(MemberId id, Duration now) {
  if (over_ || roster().generation > 0) return;
  contacts_.insert(id);
  next_try_ = now;
  SetWake(now);
}

void Membership::OnTime(Duration now) {
  if (over_ || !begun_) return;
  if (roster().generation == 0) {
    if (now < next_try_) return;
    MembershipMessage join = Message(Kind::kJoin);
    join.seats = {self_};
    for (const MemberId id : contacts_) Send(id, join);
    next_try_ = now + options_.retry;
    return SetWake(now);
  }
  if (now >= *begun_ + options_.patience) {
    std::size_t there = 0;
    for (const Seat& seat : roster().seats)
      there += seat.id == self_.id || (proposal_ && proposal_->promises.contains(seat.id)) ? 1 : 0;
    if (proposal_ && Suffice(proposal_->promises) && there < options_.least) {
      if (now < *begun_ + options_.wait) {
        if (now >= next_try_) Propose(now);
        return SetWake(now);
      }
      too_few_ = true;
      return Stop(Str(there, there == 1 ? " worker is" : " workers are", " left, and at least ", options_.least,
                      " are needed"));
    }
    return Stop(Str("of ", roster().seats.size(), " workers, ", there,
                    " can be reached: that is not more than half, and of the others it is not proved that they ended"));
  }
  if (now >= next_try_) {
    TryPropose(now);  // with those who have answered
    if (!over_ && begun_ && now >= next_try_) {
      // The same question again, unless somebody else has asked: who is busy has not to answer each.
      const bool asking = proposal_ && !proposal_->value && highest_round_ == proposal_->ballot.round;
      asking ? Ask(now) : Propose(now);
    }
  }
  if (!over_) SetWake(now);
}

}  // namespace freshet::fabric
