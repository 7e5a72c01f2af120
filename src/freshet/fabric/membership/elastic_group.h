#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "fabric/fabric.h"
#include "fabric/membership/envelope.h"
#include "fabric/membership/membership.h"
#include "fabric/membership/post.h"

namespace freshet::fabric {

// A member's place in a group that outlives its members. At any time there is one generation, with a fabric of its own, on
// which members work as on any other. When that fails, or somebody wants in, each leaves what it is doing, says what it has
// (Regroup), and goes on in the next generation.
//
// Threads:   one works and regroups; a thread of its own takes letters and, when the others are about to change, makes the
//            fabric fail.
// Blocking:  Begin and Regroup, until this member belongs to a generation whose members have met; each wait is bounded.
// Ownership: borrows post and clock.
// Failure:   kPeerLost when the others went on without this member, or too few are left (Membership says which).
class ElasticGroup {
 public:
  // The fabric of a generation, in which this member has that rank. When `stop` is set it may give up: those who are
  // waited for may not come.
  using Connect =
      std::function<Result<std::unique_ptr<Fabric>>(const Roster& roster, int rank, const std::atomic<bool>& stop)>;
  struct Options {
    Membership::Options membership = {};
    std::vector<std::string> contacts = {};               // where members may be found, for who wants in
    std::function<void(const Testimony&)> remember = {};  // keeps it where it survives this process
    // To who asks how it goes, and perhaps wishes something; from the thread of its own.
    std::function<std::string(const Roster& roster, const std::string& order)> answer = {};
    int attempts = 20;                                        // to meet in a generation that was decided
    base::Clock::Duration let_in = std::chrono::seconds(30);  // who wants in waits so long
  };
  // `first`: as Membership has it.
  ElasticGroup(Options options, Seat self, Roster first, Post& post, Connect connect, base::Clock& clock);
  ~ElasticGroup();
  ElasticGroup(const ElasticGroup&) = delete;
  ElasticGroup& operator=(const ElasticGroup&) = delete;

  Result<void> Begin();
  Fabric& fabric() { return *fabric_; }
  Roster roster() const;
  int rank() const;
  std::size_t least() const { return options_.membership.least; }  // members

  // How this one ended, as far as it is proved; "" else.
  std::string HowEnded(MemberId id) const;

  // Somebody wants in, and there is room: members should agree to regroup.
  bool change_wanted() const;
  // This member is out of its step and has finished `step`; it stands behind those of lower tiers. Those who want in are let
  // in only if it admits them, and come last. In order: nothing has failed, and the others are about to do the same.
  // `without`: all have agreed that it is left out.
  using Admits = Membership::Admits;
  Result<void> Regroup(std::uint64_t step, std::uint64_t tier, Admits admits = Admits::kAll, bool in_order = false,
                       std::optional<MemberId> without = {});
  // All others are known to have ended, but for too few to go on with.
  bool too_few() const;

 private:
  void TakeLetters();
  void Handle(const Envelope& envelope) REQUIRES(mutex_);
  void Note(const Envelope& envelope) REQUIRES(mutex_);
  void Dispatch() REQUIRES(mutex_);
  void Send(MemberId to, const MembershipMessage& message) REQUIRES(mutex_);
  Result<void> Settle();
  bool Stale(const Envelope& envelope) const REQUIRES(mutex_);

  const Options options_;
  const Seat self_;
  Post& post_;
  const Connect connect_;
  base::Clock& clock_;

  mutable base::Mutex mutex_;
  std::unique_ptr<base::Condition> arrived_;
  Membership membership_ GUARDED_BY(mutex_);
  std::deque<Envelope> waiting_ GUARDED_BY(mutex_);  // letters that only somebody who has left its step may answer
  std::map<MemberId, std::string> addresses_ GUARDED_BY(mutex_), ends_ GUARDED_BY(mutex_);
  std::optional<Roster> decided_ GUARDED_BY(mutex_);
  std::optional<Error> stopped_ GUARDED_BY(mutex_);
  bool parked_ GUARDED_BY(mutex_) = true;  // it has left its step
  bool change_wanted_ GUARDED_BY(mutex_) = false, ending_ GUARDED_BY(mutex_) = false;
  base::Clock::Duration ask_again_ GUARDED_BY(mutex_){0};  // to be let in
  std::atomic<bool> came_up_{false};                       // something, while it waits for the others to connect

  std::unique_ptr<Fabric> fabric_;  // changes only while parked
  base::Thread postman_;
};

}  // namespace freshet::fabric
