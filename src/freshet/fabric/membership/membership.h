#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/membership/message.h"

namespace freshet::fabric {

// How one member finds out, with the others, who belongs to the next generation of its group. Logic alone: it is told what
// happened and when, and says what to send and what was decided.
//
// The members of the last generation decide on the next, each generation once (a ballot of promises and acceptances, as in
// Lamport's "The Part-Time Parliament"). A roster is decided when it was accepted by more than half of them, or by all of
// whom it is not proved that they ended. Both are sound together since a proof carries what the dead had said: who counts
// on proofs alone knows everything that anybody could have accepted. A minority that can prove nothing stops.
//
// The first of those who are there proposes; should it not get through, others do. Who joins is taken along with the next
// change; who was left out though it lives learns so and is fenced.
//
// Threads: one at a time. Blocking: never. Ownership: owns everything.
class Membership {
 public:
  using Duration = base::Clock::Duration;
  struct Options {
    Duration retry = std::chrono::milliseconds(200);    // for an answer, before another attempt
    Duration hearing = std::chrono::milliseconds(800);  // for all of whom nothing is known, before it goes on without
    Duration patience = std::chrono::seconds(5);        // for a change to be decided, before this member stops
    Duration wait = std::chrono::seconds(0);            // or longer, for others to come when too few are left
    std::size_t least = 1, most = 1 << 20;              // members of a group
  };

  // A member of a first roster, which all were given; or, with a roster of generation 0, one that wants in.
  Membership(Options options, Seat self, Roster first, Duration now);

  // What happened.
  void OnMessage(const MembershipMessage& message, Duration now);
  void OnSuspect(MemberId id, Duration now);  // it is silent, or its connection has ended
  void OnProof(const Proof& proof, Duration now);
  void OnJoin(const Seat& seat, Duration now);
  void OnLeave(MemberId id, Duration now);               // it is to be left out of the next generation
  void OnWanted(Duration now);                           // there shall be one, though nobody may be missing
  void OnTime(Duration now);                             // at wake() or later
  void SetHave(std::uint64_t step, std::uint64_t tier);  // what this member has finished, and where it stands
  // Whether it proposes those who want in. Until it is said once it always does, then only for the next generation.
  enum class Admits { kNobody, kWhenTooFew, kAll };
  void SetAdmits(Admits admits) {
    admits_ = admits;
    admits_once_ = true;
  }
  // Somebody who may know of the group, for who wants in.
  void OnContact(MemberId id, Duration now);

  // What follows from it, since the last call: first remember, then send.
  struct Effects {
    std::optional<Testimony> remember;
    struct Outgoing {
      MemberId to = 0;
      MembershipMessage message;
    };
    std::vector<Outgoing> send;
    std::optional<Roster> decided;  // this member belongs to it
    std::optional<Error> stopped;   // kPeerLost: it does not take part any more, and why
  };
  Effects Take();
  Duration wake() const { return wake_; }  // Duration::max(): never

  const Roster& roster() const { return testimony_.committed; }
  bool changing() const { return begun_.has_value(); }
  bool over() const { return over_; }
  bool too_few() const { return too_few_; }  // it is over since all others are known to have ended, but for too few

 private:
  struct Proposal {
    Ballot ballot;
    std::map<MemberId, MembershipMessage> promises;  // of members, this one's among them
    std::optional<Roster> value;                     // the second half
    std::set<MemberId> accepted;
  };

  bool Needed() const;
  bool Missing(MemberId id) const { return suspects_.contains(id) || proofs_.contains(id); }
  MemberId Leader() const;  // the first who is there
  std::size_t Place() const;
  // Do these suffice to decide?
  template <class Ids>
  bool Suffice(const Ids& ids) const;

  void Look(Duration now);
  void Begin(Duration now);
  void Propose(Duration now);
  void Ask(Duration now);
  void TryPropose(Duration now);
  void TryDecide(Duration now);
  Roster Choose() const;
  void Decide(const Roster& roster, Duration now);
  void Stop(std::string why);
  void Send(MemberId to, MembershipMessage message);
  MembershipMessage Message(MembershipMessage::Kind kind) const;
  MembershipMessage Promise() const;
  void Remember() { effects_.remember = testimony_; }
  void SetWake(Duration now);

  void OnPrepare(const MembershipMessage& message, Duration now);
  void OnAccept(const MembershipMessage& message, Duration now);
  void Learn(const std::vector<Proof>& proofs, Duration now);

  const Options options_;
  Seat self_;
  Testimony testimony_;
  std::set<MemberId> suspects_, leaving_;  // of this roster
  std::map<MemberId, Proof> proofs_;
  // Of who belonged to no roster that this member knows. It may be let in all the same, by what was asked or proposed before.
  static constexpr std::size_t kMostOutsiders = 1024;
  std::map<MemberId, Proof> outsiders_;
  std::map<MemberId, Seat> joiners_;
  std::set<MemberId> contacts_;
  std::optional<Proposal> proposal_;
  std::uint64_t highest_round_ = 0;  // heard of
  std::optional<Duration> begun_;    // a change was needed since then
  Duration next_try_{0};             // of a proposal, or of joining
  Duration wake_ = Duration::max();
  bool wanted_ = false, over_ = false, too_few_ = false, admits_once_ = false;
  Admits admits_ = Admits::kAll;
  Effects effects_;
};

}  // namespace freshet::fabric
