// Groups whose members crash, freeze, are cut off, come back and join while they decide who belongs to them: whatever
// happens, each generation is decided once, and those who can go on do.

#include "fabric/membership/membership.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <queue>

#include "base/random.h"
#include "base/str.h"

namespace freshet::fabric {
namespace {

using namespace std::chrono_literals;
using Duration = base::Clock::Duration;

constexpr Duration kSilence = 300ms;  // after so much of it a member is suspected

std::uint64_t NumberIn(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A world of members that know nothing but membership. Everything in it follows from the seed.
class Town {
 public:
  Town(std::uint64_t seed, int members) : random_(seed, "town") {
    Roster first{.generation = 1, .seats = {}};
    for (int i = 0; i < members; ++i) first.seats.push_back({.id = next_id_++, .address = {}, .step = 0});
    decided_[1] = first;
    for (const Seat& seat : first.seats) Add(seat, first);
  }

  struct Person {
    std::unique_ptr<Membership> membership;
    bool dead = false, frozen = false;
    Testimony kept;                            // with its agent, which outlives it
    std::vector<std::function<void()>> later;  // what came while it was frozen
    std::optional<Error> stopped;
    Duration asked_for = Duration::max();
  };

  void At(Duration when, std::function<void()> what) { events_.push({when, ++sequence_, std::move(what)}); }
  Duration now() const { return now_; }
  base::Random& random() { return random_; }
  std::map<MemberId, Person>& people() { return people_; }
  const std::map<std::uint64_t, Roster>& decided() const { return decided_; }
  const std::string& trace() const { return trace_; }
  const std::string& violation() const { return violation_; }

  void Run(Duration until) {
    while (!events_.empty() && events_.top().when <= until) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      event.what();
    }
    now_ = until;
  }

  // Faults.
  void Crash(MemberId id, bool proved) {
    Person& person = people_.at(id);
    if (person.dead) return;
    Note(Str(id, proved ? " crashes" : " is gone"));
    person.dead = true;
    for (const auto& [other, they] : people_)
      if (other != id)
        At(now_ + (proved ? Delay() : kSilence + Delay()), [this, other = other, id] { Suspect(other, id); });
    if (!proved) return;
    const Proof proof{.id = id, .how = "killed by signal 9", .testimony = person.kept};
    for (const auto& [other, they] : people_)
      if (other != id)
        At(now_ + 5ms + Delay(), [this, other = other, id, proof] {
          if (Reaches(id, other)) Tell(other, [proof](Membership& m, Duration now) { m.OnProof(proof, now); });
        });
  }
  void Freeze(MemberId id, Duration lasts) {
    Person& person = people_.at(id);
    if (person.dead || person.frozen) return;
    Note(Str(id, " freezes for ", base::Seconds(lasts)));
    person.frozen = true;
    for (const auto& [other, they] : people_)
      if (other != id && lasts > kSilence)
        At(now_ + kSilence + Delay(), [this, other = other, id] {
          if (people_.at(id).frozen) Suspect(other, id);
        });
    At(now_ + lasts, [this, id] {
      Person& thawed = people_.at(id);
      Note(Str(id, " goes on"));
      thawed.frozen = false;
      for (auto& what : std::exchange(thawed.later, {})) what();
      Wake(id);
    });
  }
  // Nothing gets from these to the others, and perhaps back.
  void Cut(const std::set<MemberId>& side, bool one_way, Duration lasts) {
    Note(Str("cut for ", base::Seconds(lasts)));
    const std::uint64_t cut = ++cuts_made_;
    cuts_[cut] = {side, one_way};
    At(now_ + kSilence + Delay(), [this, cut] {
      if (cuts_.contains(cut)) SuspectAcross();
    });
    At(now_ + lasts, [this, cut] {
      Note("cut is over");
      cuts_.erase(cut);
    });
  }
  MemberId Join() {
    const MemberId id = next_id_++;
    Note(Str(id, " wants in"));
    Add({.id = id, .address = {}, .step = 0}, {});
    for (const auto& [other, person] : people_)
      if (other != id) people_.at(id).membership->OnContact(other, now_);
    After(id);
    return id;
  }
  // A member with its connections closed though it lives.
  void Disconnect(MemberId one, MemberId other) {
    Note(Str(one, " and ", other, " lose their connection"));
    At(now_ + Delay(), [this, one, other] { Suspect(one, other); });
    At(now_ + Delay(), [this, one, other] { Suspect(other, one); });
  }

 private:
  struct Event {
    Duration when;
    std::uint64_t sequence;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::pair(when, sequence) > std::pair(other.when, other.sequence);
    }
  };
  struct CutOff {
    std::set<MemberId> side;
    bool one_way = false;
  };

  Duration Delay() { return std::chrono::microseconds(50 + random_.Below(random_.Below(20) == 0 ? 50'000 : 500)); }
  void Note(const std::string& line) { trace_ += Str(base::Seconds(now_), " ", line, "\n"); }
  bool Reaches(MemberId from, MemberId to) const {
    for (const auto& [number, cut] : cuts_) {
      const bool out = cut.side.contains(from) && !cut.side.contains(to);
      const bool in = !cut.side.contains(from) && cut.side.contains(to);
      if (out || (in && !cut.one_way)) return false;
    }
    return true;
  }

  void Add(const Seat& seat, const Roster& roster) {
    Person& person = people_[seat.id];
    person.kept.committed = roster;
    person.membership = std::make_unique<Membership>(
        Membership::Options{.retry = 150ms, .patience = 4s, .least = 1, .most = 16}, seat, roster, now_);
    After(seat.id);
  }
  void Tell(MemberId id, const std::function<void(Membership&, Duration)>& what) {
    Person& person = people_.at(id);
    if (person.dead) return;
    if (person.frozen) return person.later.push_back([this, id, what] { Tell(id, what); });
    what(*person.membership, now_);
    After(id);
  }
  void Suspect(MemberId who, MemberId of) {
    Tell(who, [of](Membership& m, Duration now) { m.OnSuspect(of, now); });
  }
  void SuspectAcross() {
    for (const auto& [one, person] : people_)
      for (const auto& [other, they] : people_)
        if (one != other && !Reaches(other, one)) Suspect(one, other);
  }
  void Wake(MemberId id) {
    Person& person = people_.at(id);
    if (person.dead || person.frozen) return;
    if (person.membership->wake() <= now_)
      Tell(id, [](Membership& m, Duration now) { m.OnTime(now); });
    else
      After(id);
  }
  // What a member wants done.
  void After(MemberId id) {
    Person& person = people_.at(id);
    Membership::Effects effects = person.membership->Take();
    if (effects.remember) person.kept = *effects.remember;
    if (effects.decided) {
      const Roster& roster = *effects.decided;
      const auto [known, fresh] = decided_.emplace(roster.generation, roster);
      if (fresh) {
        std::string line = Str("generation ", roster.generation, ":");
        for (const Seat& seat : roster.seats) line += Str(" ", seat.id);
        Note(line);
      }
      if (!(known->second == roster)) violation_ = Str("generation ", roster.generation, " was decided twice");
      // Who was left out finds its connections closed, or silent.
      for (const auto& [other, they] : people_)
        if (other != id && !roster.Has(other) && they.membership->roster().Has(id))
          At(now_ + kSilence + Delay(), [this, other = other, id] { Suspect(other, id); });
      // Whoever is silent, or gone, is so in the next generation, too.
      for (const Seat& seat : roster.seats) {
        if (seat.id == id) continue;
        const Person& other = people_.at(seat.id);
        if (other.dead || other.frozen || !Reaches(seat.id, id))
          At(now_ + kSilence + Delay(), [this, id, seat] {
            const Person& then = people_.at(seat.id);
            if (then.dead || then.frozen || !Reaches(seat.id, id)) Suspect(id, seat.id);
          });
      }
    }
    if (effects.stopped) {
      person.stopped = effects.stopped;
      Note(Str(id, " stops: ", effects.stopped->text));
    }
    for (Membership::Effects::Outgoing& out : effects.send) {
      Note(Str("  to ", out.to, ": ", out.message.ToText()));
      At(now_ + Delay(), [this, id, out = std::move(out)] {
        if (Reaches(id, out.to) && people_.contains(out.to) && !people_.at(out.to).dead)
          Tell(out.to, [message = out.message](Membership& m, Duration now) { m.OnMessage(message, now); });
      });
    }
    const Duration wake = person.membership->wake();
    if (wake == Duration::max() || person.asked_for == wake) return;
    person.asked_for = wake;
    At(std::max(wake, now_), [this, id, wake] {
      Person& then = people_.at(id);
      if (then.asked_for == wake) then.asked_for = Duration::max();
      Wake(id);
    });
  }

  base::Random random_;
  Duration now_{0};
  std::uint64_t sequence_ = 0, cuts_made_ = 0;
  MemberId next_id_ = 1;
  std::priority_queue<Event> events_;
  std::map<MemberId, Person> people_;
  std::map<std::uint64_t, CutOff> cuts_;
  std::map<std::uint64_t, Roster> decided_;
  std::string trace_, violation_;
};

// How all ended: the newest generation, and who of it is alive and knows it.
struct Ending {
  Roster newest;
  int there = 0, living = 0, stopped = 0;
};

Ending EndingOf(Town& town) {
  Ending ending{.newest = town.decided().rbegin()->second};
  for (const auto& [id, person] : town.people()) {
    if (person.dead) continue;
    ++ending.living;
    if (person.stopped)
      ++ending.stopped;
    else if (person.membership->roster() == ending.newest)
      ++ending.there;
  }
  return ending;
}

TEST(Membership, AProvedDeathIsFollowedByTheRestAtOnce) {
  Town town(1, 5);
  town.At(1s, [&] { town.Crash(3, true); });
  town.Run(2s);
  const Ending ending = EndingOf(town);
  EXPECT_EQ(ending.newest.generation, 2u) << town.trace();
  EXPECT_EQ(ending.newest.seats.size(), 4u);
  EXPECT_EQ(ending.there, 4);
}

TEST(Membership, AMajorityNeedsNoProof) {
  Town town(2, 5);
  town.At(1s, [&] {
    town.Crash(1, false);  // who would propose
    town.Crash(4, false);
  });
  town.Run(8s);
  const Ending ending = EndingOf(town);
  EXPECT_EQ(ending.there, 3) << town.trace();
  EXPECT_EQ(ending.newest.seats.size(), 3u);
}

TEST(Membership, WithProofsOneAloneGoesOn) {
  Town town(3, 4);
  for (const MemberId id : {1, 2, 4}) town.At(1s + id * 1ms, [&town, id] { town.Crash(id, true); });
  town.Run(8s);
  const Ending ending = EndingOf(town);
  EXPECT_EQ(ending.newest.seats.size(), 1u) << town.trace();
  EXPECT_EQ(ending.there, 1);
}

TEST(Membership, AMinorityThatOnlySuspectsStops) {
  Town town(4, 5);
  town.At(1s, [&] { town.Cut({1, 2}, false, 60s); });
  town.Run(10s);
  const Ending ending = EndingOf(town);
  EXPECT_EQ(ending.newest.seats.size(), 3u) << town.trace();
  EXPECT_EQ(ending.there, 3);
  EXPECT_EQ(ending.stopped, 2);
}

TEST(Membership, OfTwoEqualHalvesNeitherGoesOn) {
  Town town(5, 4);
  town.At(1s, [&] { town.Cut({1, 2}, false, 60s); });
  town.Run(10s);
  const Ending ending = EndingOf(town);
  EXPECT_EQ(ending.newest.generation, 1u) << town.trace();
  EXPECT_EQ(ending.stopped, 4);
}

TEST(Membership, WhoWantsInIsTakenAlongAndGetsTheLastRank) {
  Town town(6, 2);
  town.At(1s, [&] { town.Join(); });
  town.Run(3s);
  const Ending ending = EndingOf(town);
  ASSERT_EQ(ending.newest.seats.size(), 3u) << town.trace();
  EXPECT_EQ(ending.newest.seats[2].id, 3u);
  EXPECT_EQ(ending.there, 3);
}

TEST(Membership, WhatMembersHaveIsKnownToAll) {
  Town town(7, 3);
  for (auto& [id, person] : town.people()) person.membership->SetHave(100 + id, 0);
  town.At(1s, [&] { town.Crash(1, true); });
  town.Run(2s);
  const Ending ending = EndingOf(town);
  ASSERT_EQ(ending.newest.seats.size(), 2u);
  EXPECT_EQ(ending.newest.seats[0].step, 102u);
  EXPECT_EQ(ending.newest.seats[1].step, 103u);
}

TEST(Membership, WhoIsOfALaterTierComesBehindTheOthersButBeforeWhoIsLetIn) {
  Town town(8, 4);
  for (auto& [id, person] : town.people()) person.membership->SetHave(1, id == 2 ? 1 : 0);
  town.At(1s, [&] { town.Join(); });
  town.At(1s, [&] { town.Crash(1, true); });
  town.Run(3s);
  const Ending ending = EndingOf(town);
  std::vector<MemberId> order;
  for (const Seat& seat : ending.newest.seats) order.push_back(seat.id);
  EXPECT_EQ(order, (std::vector<MemberId>{3, 4, 2, 5})) << town.trace();
}

// It is not forgotten that one of them ended, though it was none yet when that was proved.
TEST(Membership, WhoIsLetInAfterItHasEndedIsLeftOutAgainAtOnce) {
  const Roster first{.generation = 1, .seats = {{.id = 1}, {.id = 2}}};
  std::map<MemberId, std::unique_ptr<Membership>> members;
  for (const MemberId id : {1, 2})
    members[id] = std::make_unique<Membership>(Membership::Options(), Seat{.id = id}, first, 0s);
  Duration now = 1ms;
  std::optional<MembershipMessage> held;  // who has accepted is heard last
  const auto deliver = [&](bool all) {
    for (bool any = true; any;) {
      any = false;
      for (const MemberId id : {1, 2})
        for (const auto& out : members[id]->Take().send) {
          if (!all && out.message.kind == MembershipMessage::Kind::kAccepted)
            held = out.message;
          else if (members.contains(out.to))
            members[out.to]->OnMessage(out.message, now);
          any = true;
        }
    }
  };
  members[1]->OnJoin({.id = 3}, now);
  for (const MemberId id : {1, 2}) members[id]->OnWanted(now);
  deliver(false);
  ASSERT_TRUE(held.has_value());
  for (const MemberId id : {1, 2}) members[id]->OnProof({.id = 3, .how = "killed by signal 9"}, now += 1ms);
  members[1]->OnMessage(*held, now += 1ms);
  EXPECT_TRUE(members[1]->roster().Has(3));
  EXPECT_EQ(members[1]->roster().generation, 2u);
  EXPECT_TRUE(members[1]->changing());
  now += 1ms;
  deliver(true);
  for (const MemberId id : {1, 2}) {
    EXPECT_FALSE(members[id]->roster().Has(3));
    EXPECT_EQ(members[id]->roster().generation, 3u);
  }
}

TEST(Membership, WhoHasEndedIsNotLetInWhenItsWishIsHeardLater) {
  Membership one({}, {.id = 1}, {.generation = 1, .seats = {{.id = 1}, {.id = 2}}}, 0s);
  one.OnProof({.id = 3, .how = "killed by signal 9"}, 1ms);
  one.OnJoin({.id = 3}, 2ms);
  EXPECT_FALSE(one.changing());
  one.OnJoin({.id = 4}, 3ms);
  EXPECT_TRUE(one.changing());
}

// What the dead had accepted counts: a proof without that could decide a generation twice.
TEST(Membership, ADecisionOfTheDeadStands) {
  const Roster first{.generation = 1, .seats = {{.id = 1}, {.id = 2}, {.id = 3}}};
  const Roster second{.generation = 2, .seats = {{.id = 1}, {.id = 2}, {.id = 9}}};
  Membership three({}, {.id = 3}, first, 0s);
  const Vote vote{.promised = {1, 1}, .accepted = {1, 1}, .value = second};
  three.OnProof({.id = 1, .how = "died", .testimony = {.committed = first, .next = vote}}, 1ms);
  EXPECT_FALSE(three.Take().decided.has_value());
  three.OnProof({.id = 2, .how = "died", .testimony = {.committed = first, .next = vote}}, 2ms);
  const auto effects = three.Take();
  EXPECT_FALSE(effects.decided.has_value());
  ASSERT_TRUE(effects.stopped.has_value());  // it was left out
  EXPECT_EQ(three.roster(), second);
}

// Nobody else may be left who knows of it.
TEST(Membership, WhatTheDeadKnewToBeDecidedIsDecided) {
  const Roster first{.generation = 1, .seats = {{.id = 1}, {.id = 2}, {.id = 3}}};
  const Roster second{.generation = 2, .seats = {{.id = 1}, {.id = 3}}};
  Membership three({}, {.id = 3}, first, 0s);
  three.OnProof({.id = 1, .how = "died", .testimony = {.committed = second, .next = {}}}, 1ms);
  EXPECT_EQ(three.roster().generation, 3u);  // the second, and at once the next, without the dead
  ASSERT_EQ(three.roster().seats.size(), 1u);
  EXPECT_EQ(three.roster().seats[0].id, 3u);
}

TEST(Membership, AWishForAChangeIsEnough) {
  const Roster first{.generation = 1, .seats = {{.id = 1}}};
  Membership alone({}, {.id = 1}, first, 0s);
  alone.OnWanted(1ms);
  EXPECT_EQ(alone.roster().generation, 2u);
  EXPECT_EQ(alone.Take().decided, alone.roster());
}

// Of five the last is missed, and the fourth is busy: it is waited for, by the same question again, but not for ever.
TEST(Membership, WhoIsBusyIsWaitedForWhoIsMissedIsNot) {
  const Roster first{.generation = 1, .seats = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}, {.id = 5}}};
  for (const bool answers : {true, false}) {
    Membership one({}, {.id = 1}, first, 0s);
    one.OnSuspect(5, 0s);
    const Ballot asked = one.Take().send.at(0).message.ballot;
    const auto promise = [&](MemberId id, Duration now) {
      MembershipMessage message;
      message.kind = MembershipMessage::Kind::kPromise;
      message.from = id;
      message.generation = 2;
      message.ballot = asked;
      message.seats = {{.id = id}};
      one.OnMessage(message, now);
    };
    promise(2, 1ms);
    promise(3, 1ms);
    std::optional<Roster> wanted;
    Duration at = 1ms;
    const auto look = [&] {
      for (const auto& out : one.Take().send) {
        if (out.message.kind == MembershipMessage::Kind::kPrepare) {
          EXPECT_EQ(out.message.ballot, asked);
        } else if (!wanted && out.message.kind == MembershipMessage::Kind::kAccept) {
          wanted = out.message.roster;
          at = one.wake();
        }
      }
    };
    for (Duration now = 10ms; now < 2s && !wanted; now += 10ms) {
      if (one.wake() <= now) one.OnTime(now);
      look();
      if (answers && now == 500ms) promise(4, now);
      look();
    }
    ASSERT_TRUE(wanted.has_value());
    EXPECT_EQ(wanted->Has(4), answers);
    EXPECT_FALSE(wanted->Has(5));
    EXPECT_EQ(at < 800ms, answers);
  }
}

// Members of every number, several faults each, also while a change is under way.
TEST(Membership, WhateverHappensEachGenerationIsDecidedOnceAndWhoCanGoesOn) {
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = std::getenv("FRESHET_SEED") != nullptr ? 1 : NumberIn("FRESHET_SEEDS", 1000);
  std::map<std::string, std::uint64_t> injected;
  std::uint64_t went_on = 0, all_stopped = 0, generations = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(Str("seed ", seed, "; to see it again: FRESHET_SEED=", seed,
                     " fabric_test --gtest_filter='Membership.Whatever*'"));
    base::Random random(seed, "faults");
    const int members = static_cast<int>(3 + random.Below(14));
    Town town(seed, members);
    const auto faults = 1 + random.Below(6);
    Duration last = 0s;
    std::size_t unproved = 0;
    for (std::uint64_t i = 0; i < faults; ++i) {
      // Often close together, so that one comes while the one before is dealt with.
      last += random.Below(2) == 0 ? std::chrono::microseconds(random.Below(20'000))
                                   : std::chrono::microseconds(random.Below(2'000'000));
      const auto kind = random.Below(8);
      const auto somebody = [&town](std::uint64_t draw) {
        std::vector<MemberId> living;
        for (const auto& [id, person] : town.people())
          if (!person.dead) living.push_back(id);
        return living.empty() ? MemberId{1} : living[draw % living.size()];
      };
      const std::uint64_t draw = random.Below(std::uint64_t{1} << 62), other = random.Below(std::uint64_t{1} << 62);
      const Duration lasts = std::chrono::milliseconds(random.Below(3000));
      switch (kind) {
        case 0:
        case 1:
          ++injected["crash"];
          town.At(last, [&town, somebody, draw] { town.Crash(somebody(draw), true); });
          break;
        case 2:
          ++injected["gone"];
          ++unproved;
          town.At(last, [&town, somebody, draw] { town.Crash(somebody(draw), false); });
          break;
        case 3:
          ++injected["freeze"];
          town.At(last, [&town, somebody, draw, lasts] { town.Freeze(somebody(draw), lasts); });
          break;
        case 4:
        case 5:
          ++injected["cut"];
          town.At(last, [&town, draw, other, lasts] {
            std::set<MemberId> side;
            for (const auto& [id, person] : town.people())
              if (base::Hash64("side", draw ^ id) % 2 == 0) side.insert(id);
            town.Cut(side, other % 3 == 0, lasts);
          });
          break;
        case 6:
          ++injected["join"];
          town.At(last, [&town] { town.Join(); });
          break;
        default:
          ++injected["disconnect"];
          town.At(last, [&town, somebody, draw, other] {
            if (somebody(draw) != somebody(other)) town.Disconnect(somebody(draw), somebody(other));
          });
      }
    }
    town.Run(last + 3s + 10s);
    const Ending ending = EndingOf(town);
    generations += ending.newest.generation;
    EXPECT_EQ(town.violation(), "");
    // Everybody who lives is of the newest generation, or has stopped; those of it who live know it.
    int expected = 0;
    for (const auto& [id, person] : town.people()) {
      if (person.dead || person.stopped) continue;
      if (person.membership->roster().generation == 0) continue;  // nobody was left to join
      ++expected;
      EXPECT_EQ(person.membership->roster(), ending.newest) << id;
      EXPECT_FALSE(person.membership->changing()) << id;
      for (const Seat& seat : ending.newest.seats) EXPECT_FALSE(town.people().at(seat.id).dead) << id << " " << seat.id;
    }
    went_on += expected > 0 ? 1 : 0;
    all_stopped += expected == 0 ? 1 : 0;
    if (HasFailure()) {
      if (seeds == 1) std::fputs(town.trace().c_str(), stdout);
      return;
    }
  }
  std::string counts;
  for (const auto& [name, count] : injected) counts += Str(" ", name, " ", count);
  std::printf("injected:%s; %llu runs went on, %llu stopped, %llu generations\n", counts.c_str(),
              static_cast<unsigned long long>(went_on), static_cast<unsigned long long>(all_stopped),
              static_cast<unsigned long long>(generations));
  if (seeds >= 100) {
    EXPECT_GT(went_on, seeds * 6 / 10);
  }
}

}  // namespace
}  // namespace freshet::fabric
