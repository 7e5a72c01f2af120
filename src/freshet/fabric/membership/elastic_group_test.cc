// Groups that outlive their members, in simulated worlds: whatever happens to members, those who go on have the same, and
// nothing was done twice or left out.

#include "fabric/membership/elastic_group.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/crc32c.h"
#include "fabric/collectives/collectives.h"
#include "fabric/sim/world.h"

namespace freshet::fabric {
namespace {

using namespace std::chrono_literals;
using sim::Fault;
using sim::World;
using FaultKind = Fault::Kind;

constexpr std::uint64_t kSteps = 60;

std::uint64_t NumberIn(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What members have: how many steps they made, and all that came of them.
struct Have {
  std::uint64_t step = 0, sum = 0;
};

struct Ended {
  bool ran = false, dead = false;
  std::optional<Error> error;
  Have have;
  std::size_t members = 0;
  std::uint64_t generation = 0;
  base::Clock::Duration at{0};
};

MemberId IdOf(const World::Member& member) {
  return static_cast<MemberId>(member.rank()) + 1 + 1000 * static_cast<MemberId>(member.life());
}

// One step: all add up how far they are, and tell whether somebody wants in. (Were somebody elsewhere, the sum would tell.)
Result<bool> Step(ElasticGroup& group, Collectives& collectives, Have& have) {
  const auto size = static_cast<std::uint64_t>(group.fabric().size());
  std::vector<float> values = {static_cast<float>(have.step), group.change_wanted() ? 1.0f : 0.0f};
  TRY(collectives.AllReduce(values, Algorithm::kRing));
  EXPECT_EQ(values[0], static_cast<float>(have.step * size));
  have.sum = have.sum * 31 + have.step;
  ++have.step;
  return values[1] > 0;
}

// Who is behind gets what the first who is ahead has.
Result<void> Share(ElasticGroup& group, Collectives& collectives, Have& have) {
  const Roster roster = group.roster();
  const auto ahead = std::max_element(roster.seats.begin(), roster.seats.end(),
                                      [](const Seat& a, const Seat& b) { return a.step < b.step; });
  if (std::all_of(roster.seats.begin(), roster.seats.end(), [&](const Seat& s) { return s.step == ahead->step; }))
    return {};
  for (const Seat& seat : roster.seats)  // nobody is two steps behind but those who are new
    EXPECT_TRUE(seat.step + 1 >= ahead->step || seat.id >= 1000) << seat.step << " " << ahead->step;
  Have theirs = have;
  TRY(collectives.Broadcast(std::as_writable_bytes(std::span(&theirs, 1)),
                            static_cast<int>(ahead - roster.seats.begin())));
  have = theirs;
  return {};
}

Result<void> Work(ElasticGroup& group, World::Member& member, Have& have) {
  TRY(group.Begin());
  while (true) {  // a generation
    Collectives collectives(group.fabric());
    bool stays = Share(group, collectives, have).ok();
    while (stays && have.step < kSteps) {
      member.Compute(1ms);
      const auto step = Step(group, collectives, have);
      stays = step.ok() && !step.value();
    }
    // Nobody leaves who may be asked for what it has.
    if (stays && collectives.Barrier().ok()) return {};
    TRY(group.Regroup(have.step, 0));
  }
}

std::vector<Ended> RunWorld(int size, std::uint64_t seed, std::vector<Fault> faults, std::string* trace) {
  sim::WorldOptions options{.size = size, .seed = seed, .faults = std::move(faults)};
  options.fabric.heartbeat = 20ms;
  options.fabric.heartbeat_misses = 5;
  World world(options);
  if (trace != nullptr) world.KeepTrace();
  Roster first{.generation = 1, .seats = {}};
  for (int rank = 0; rank < size; ++rank)
    first.seats.push_back({.id = static_cast<MemberId>(rank) + 1, .address = Str(rank), .step = 0});
  std::map<MemberId, Testimony> kept;  // with the agents
  world.WhenCrashed([&](World::Member& member) {
    const MemberId id = IdOf(member);
    const Proof proof{.id = id, .how = "killed by signal 9", .testimony = kept[id]};
    for (int rank = 0; rank < size; ++rank)
      if (rank != member.rank()) world.PostTo(member.rank(), rank, Envelope{.to = 0, .proof = proof}.Encode());
  });
  std::vector<Ended> ends(static_cast<std::size_t>(size));
  world.Run([&](World::Member& member) {
    const MemberId id = IdOf(member);
    ElasticGroup::Options how;
    how.membership = {.retry = 100ms, .patience = 3s, .least = 1, .most = 64};
    how.let_in = 5s;
    for (int rank = 0; rank < size; ++rank)
      if (rank != member.rank()) how.contacts.push_back(Str(rank));
    how.remember = [&kept, id](const Testimony& testimony) { kept[id] = testimony; };
    const Roster known = member.life() == 0 ? first : Roster{};
    kept[id].committed = known;
    const auto connect = [&](const Roster& roster, int, const auto&) -> Result<std::unique_ptr<Fabric>> {
      std::vector<int> ranks;
      for (const Seat& seat : roster.seats) ranks.push_back(std::atoi(seat.address.c_str()));
      return member.Connect(roster.generation, ranks);
    };
    Ended end;
    end.ran = true;
    {
      ElasticGroup group(how, {.id = id, .address = member.post().address(), .step = 0}, known, member.post(), connect,
                         member.clock());
      const auto worked = Work(group, member, end.have);
      if (!worked.ok()) end.error = worked.error();
      end.members = group.roster().seats.size();
      end.generation = group.roster().generation;
    }
    end.dead = member.dead();
    end.at = member.clock().Now();
    if (!end.dead) ends[static_cast<std::size_t>(member.rank())] = end;
  });
  if (trace != nullptr) *trace = world.trace();
  return ends;
}

Have Undisturbed() {
  Have have;
  for (; have.step < kSteps; ++have.step) have.sum = have.sum * 31 + have.step;
  return have;
}

std::vector<Fault> Faults(const std::string& text, int size) { return sim::ParseFaults(text, size).value(); }

TEST(ElasticGroup, UndisturbedItIsAGroupLikeAnyOther) {
  for (const Ended& end : RunWorld(4, 1, {}, nullptr)) {
    EXPECT_FALSE(end.error) << end.error->text;
    EXPECT_EQ(end.have.sum, Undisturbed().sum);
    EXPECT_EQ(end.generation, 1u);
  }
}

TEST(ElasticGroup, TheOthersGoOnWhenOneDies) {
  const auto ends = RunWorld(4, 2, Faults("crash rank=0 at=20ms", 4), nullptr);
  EXPECT_FALSE(ends[0].ran);
  for (const std::size_t rank : {1, 2, 3}) {
    ASSERT_TRUE(ends[rank].ran);
    EXPECT_FALSE(ends[rank].error) << ends[rank].error->text;
    EXPECT_EQ(ends[rank].have.sum, Undisturbed().sum);
    EXPECT_EQ(ends[rank].members, 3u);
    EXPECT_LT(ends[rank].at, 1s);
  }
}

TEST(ElasticGroup, WhoComesBackIsTakenInAndGetsWhatTheOthersHave) {
  const auto ends = RunWorld(3, 3, Faults("crash rank=1 at=20ms for=10ms", 3), nullptr);
  for (const Ended& end : ends) {
    ASSERT_TRUE(end.ran);
    EXPECT_FALSE(end.error) << end.error->text;
    EXPECT_EQ(end.have.sum, Undisturbed().sum);
    EXPECT_EQ(end.members, 3u);
  }
}

TEST(ElasticGroup, OfAGroupThatIsCutInTwoTheLargerPartGoesOn) {
  const auto ends = RunWorld(5, 4, Faults("partition 0,1|2-4 at=20ms for=60s", 5), nullptr);
  for (const std::size_t rank : {0, 1}) EXPECT_TRUE(ends[rank].error.has_value());
  for (const std::size_t rank : {2, 3, 4}) {
    EXPECT_FALSE(ends[rank].error) << ends[rank].error->text;
    EXPECT_EQ(ends[rank].have.sum, Undisturbed().sum);
  }
}

TEST(ElasticGroup, WhateverHappensThoseWhoGoOnHaveTheSame) {
  const std::uint64_t first = NumberIn("FRESHET_SEED", 1);
  const std::uint64_t seeds = std::getenv("FRESHET_SEED") != nullptr ? 1 : NumberIn("FRESHET_SEEDS", 300);
  const std::vector<FaultKind> kinds = {FaultKind::kCrash,     FaultKind::kPowerOff,   FaultKind::kPause,
                                        FaultKind::kPartition, FaultKind::kDisconnect, FaultKind::kSlow};
  std::uint64_t finished = 0, stopped = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    base::Random random(seed, "elastic");
    const int size = static_cast<int>(3 + random.Below(5));
    std::vector<Fault> faults;
    std::string plan;
    for (std::uint64_t i = 0, count = 1 + random.Below(3); i < count; ++i) {
      faults.push_back(sim::DrawFault(kinds, seed * 10 + i, size, 100ms));
      if (faults.back().kind == FaultKind::kPartition && faults.back().lasts == Fault::kForEver)
        faults.back().lasts = 500ms;
      plan += faults.back().ToText() + "; ";
    }
    SCOPED_TRACE(Str("seed ", seed, ", ", size, " members, ", plan, "to see it again: FRESHET_SEED=", seed,
                     " fabric_test --gtest_filter='ElasticGroup.Whatever*'"));
    std::string trace;
    const auto ends = RunWorld(size, seed, faults, seeds == 1 ? &trace : nullptr);
    bool any = false;
    for (const Ended& end : ends) {
      if (!end.ran) continue;
      if (end.error) {
        EXPECT_EQ(end.error->code, Code::kPeerLost) << end.error->text;
        ++stopped;
        continue;
      }
      any = true;
      EXPECT_EQ(end.have.step, kSteps);
      EXPECT_EQ(end.have.sum, Undisturbed().sum);
      EXPECT_LT(end.at, 20s);
    }
    finished += any ? 1 : 0;
    if (HasFailure()) {
      std::fputs(trace.c_str(), stdout);
      return;
    }
  }
  std::printf("%llu of %llu runs came to their end; %llu members stopped\n", static_cast<unsigned long long>(finished),
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(stopped));
  if (seeds >= 100) {
    EXPECT_GT(finished, seeds * 7 / 10);
  }
}

}  // namespace
}  // namespace freshet::fabric
