#pragma once

#include <cmath>
#include <cstdlib>
#include <map>

#include "fabric/sim/world.h"
#include "strategy/elastic_strategy.h"
#include "train/bench_testing.h"

namespace freshet::train {

// Training in a group that outlives its members, in a simulated world.
class ElasticTraining : public testing::Test {
 protected:
  using World = fabric::sim::World;
  using Fault = fabric::sim::Fault;

  struct Ended {
    bool ran = false, came = false;
    BenchOutcome outcome;
    std::uint64_t losses = 0;
    strategy::GroupHistory history = {};
    strategy::StepTimes times = {};
    base::Clock::Duration at{0};
  };
  struct Run {
    int size = 4;
    std::uint64_t seed = 1;
    std::vector<Fault> faults = {};
    fabric::Algorithm algorithm = fabric::Algorithm::kRing;
    std::vector<std::string> hosts = {};  // by rank
    double evict_factor = 0;              // after 20 ms
    std::uint64_t copy_every = 16;        // steps
    std::size_t least = 1;                // members
    bool plain = false;                   // a group that ends with its first loss
    std::function<strategy::server::Panel*(int rank)> panel = {};
    base::Clock::Duration wait{0};  // of too few
    base::Clock::Duration heartbeat = std::chrono::milliseconds(5);
    base::Clock::Duration disk = std::chrono::microseconds(100);   // what writing to it takes
    std::function<base::Clock::Duration(int rank)> computes = {};  // how long a gradient takes; null: a millisecond
    // What a member begins with, of who is there from the beginning; null: what the model says.
    std::function<void(World::Member& member, optimize::Parameters& parameters)> begins = {};
    // Told what each learns from.
    std::function<void(World::Member& member, const data::Batch& rows)> learns = {};
    // Told where each member is: in its steps, in a change of the group, in what it says about the next (vote.promised,
    // vote.accepted, vote.committed).
    std::function<void(World::Member& member, std::string_view place)> at = {};
  };

  ElasticTraining() { plan_ = PlanForWorlds(bench_); }

  std::vector<Ended> Train(int size, std::uint64_t seed, std::vector<Fault> faults) {
    return Train(Run{.size = size, .seed = seed, .faults = std::move(faults)});
  }
  std::vector<Ended> Train(const Run& run) {
    using namespace std::chrono_literals;
    using fabric::MemberId;
    using fabric::Roster;
    using fabric::Seat;
    const int size = run.size;
    fabric::sim::WorldOptions options{.size = size, .seed = run.seed, .disk = run.disk, .faults = run.faults};
    options.fabric.heartbeat = run.heartbeat;
    options.fabric.heartbeat_misses = 6;
    options.fabric.hosts = run.hosts;
    World world(options);
    Roster first{.generation = 1, .seats = {}};
    for (int rank = 0; rank < size; ++rank)
      first.seats.push_back({.id = static_cast<MemberId>(rank) + 1, .address = Str(rank), .step = 0});
    std::map<MemberId, fabric::Testimony> kept;
    world.WhenCrashed([&](World::Member& member) {
      const MemberId id = static_cast<MemberId>(member.rank()) + 1 + static_cast<MemberId>(member.life()) * 100;
      const fabric::Proof proof{.id = id, .how = "killed by signal 9", .testimony = kept[id]};
      for (int rank = 0; rank < size; ++rank)
        if (rank != member.rank())
          world.PostTo(member.rank(), rank, fabric::Envelope{.to = 0, .message = {}, .proof = proof}.Encode());
    });
    std::vector<Ended> ends(static_cast<std::size_t>(size));
    world.Run([&](World::Member& member) {
      const bool comes = member.life() > 0;
      Seat seat = first.seats[static_cast<std::size_t>(member.rank())];
      seat.id += static_cast<MemberId>(member.life()) * 100;
      fabric::ElasticGroup::Options how;
      for (const Seat& each : first.seats) how.contacts.push_back(each.address);
      how.let_in = 1s;
      how.membership = {.retry = 50ms, .patience = 3s, .wait = run.wait, .least = run.least};
      how.remember = [&](const fabric::Testimony& testimony) {
        kept[seat.id] = testimony;
        if (!run.at) return;
        const fabric::Vote& vote = testimony.next;
        run.at(member, vote.accepted.round > 0   ? "vote.accepted"
                       : vote.promised.round > 0 ? "vote.promised"
                                                 : "vote.committed");
      };
      fabric::ElasticGroup group(
          how, seat, comes ? Roster{} : first, member.post(),
          [&](const Roster& roster, int, const auto&) -> Result<std::unique_ptr<fabric::Fabric>> {
            std::vector<int> ranks;
            for (const Seat& each : roster.seats) ranks.push_back(std::atoi(each.address.c_str()));
            return member.Connect(roster.generation, ranks);
          },
          member.clock());
      Ended end;
      end.ran = true;
      end.came = comes;
      strategy::ElasticStrategy* elastic = nullptr;
      Plan plan = plan_;
      if (run.learns) plan.learning = [&](const data::Batch& rows) { run.learns(member, rows); };
      plan.computing = [&] { member.Compute(run.computes ? run.computes(member.rank()) : 1ms); };
      std::unique_ptr<fabric::Fabric> alone;
      std::optional<fabric::Collectives> collectives;
      strategy::Strategy* working = nullptr;
      plan.own_strategy = [&](strategy::Learner learner) {
        if (run.begins && !comes) run.begins(member, learner.parameters);
        if (run.panel) learner.panel = run.panel(member.rank());
        if (run.plain) {
          strategy::StrategyOptions options = plan.strategy;
          options.batch = plan.train.batch;
          alone = member.Connect();
          collectives.emplace(*alone, fabric::Collectives::Options{.algorithm = run.algorithm});
          auto made = strategy::Strategy::Make(options, {*collectives,
                                                         learner.model,
                                                         learner.parameters,
                                                         learner.optimizer,
                                                         learner.memory,
                                                         learner.clock,
                                                         nullptr,
                                                         {},
                                                         learner.panel});
          working = made.value().get();
          return std::move(made).value();
        }
        strategy::ElasticOptions options{.strategy = plan.strategy, .how = {.algorithm = run.algorithm}};
        options.strategy.batch = plan.train.batch;
        options.strategy.whole = plan.parts == 0;
        options.comes = comes;
        options.evict_factor = run.evict_factor;
        options.evict_seconds = 0.02;
        options.copy_every = run.copy_every;
        learner.at = [&](std::string_view place) -> Result<void> {
          if (run.at) run.at(member, place);
          return {};
        };
        auto made = strategy::ElasticStrategy::Make(options, group, learner);
        if (!made.ok()) ADD_FAILURE() << made.error().text;
        CHECK(made.ok());
        elastic = made.value().get();
        working = elastic;
        return strategy::StrategyPtr(std::move(made).value());
      };
      plan.train.progress = [&](const Progress&) {
        if (elastic != nullptr) end.losses = elastic->losses();
        if (elastic != nullptr) end.history = elastic->history();
        end.times = working->times();
      };
      end.outcome = bench_.RunBy(plan, member.DiskOver(bench_.files), member.clock());
      end.at = member.clock().Now();
      if (!member.dead()) ends[static_cast<std::size_t>(member.rank())] = std::move(end);
    });
    return ends;
  }
  // Faults of a world, some of them while members recover from another. Half of those who crash are started again.
  struct Drawn {
    std::vector<Fault> faults;
    std::string text;
    base::Clock::Duration quiet{0};  // from when on nothing happens any more
  };
  Drawn DrawFaults(std::uint64_t seed, std::uint64_t many, int size, base::Clock::Duration undisturbed,
                   base::Clock::Duration close, base::Random& random) {
    using namespace std::chrono_literals;
    using Kind = Fault::Kind;
    const std::vector<Kind> kinds = {Kind::kCrash,     Kind::kPowerOff, Kind::kPause,
                                     Kind::kPartition, Kind::kSlow,     Kind::kDisconnect};
    Drawn drawn{.faults = {}, .text = {}, .quiet = undisturbed};
    for (std::uint64_t f = 0; f < many; ++f) {
      Fault fault = fabric::sim::DrawFault(kinds, seed * 10 + f, size, undisturbed);
      if (f > 0 && random.Below(2) == 0)
        fault.at =
            drawn.faults.back().at + std::chrono::microseconds(random.Below(static_cast<std::uint64_t>(close / 1us)));
      if (fault.kind == Kind::kPartition && fault.lasts == Fault::kForEver) fault.lasts = 100ms;
      const bool again = fault.kind == Kind::kCrash && random.Below(2) == 0;
      if (again) fault.lasts = 20ms + std::chrono::milliseconds(random.Below(30));
      drawn.text += fault.ToText() + "; ";
      drawn.quiet = std::max(drawn.quiet, fault.at + (fault.lasts == Fault::kForEver ? 0ms : fault.lasts));
      ++injected_[again ? "crash and restart" : std::string(Split(fault.ToText(), ' ')[0])];
      drawn.faults.push_back(std::move(fault));
    }
    return drawn;
  }
  // What was drawn so far.
  void ShowFaults(std::uint64_t finished, std::uint64_t worlds) const {
    std::string told;
    for (const auto& [kind, count] : injected_) told += Str(told.empty() ? "" : ", ", count, " × ", kind);
    std::printf("%llu of %llu finished; %s\n", static_cast<unsigned long long>(finished),
                static_cast<unsigned long long>(worlds), told.c_str());
  }
  // Who ended otherwise was done without. Drafts of checkpoints have the numbers of processes, and here all are one: who was
  // left out while it wrote may find its draft gone.
  static bool LeftOut(const Ended& end) {
    return end.outcome.code() == Code::kPeerLost || end.outcome.error->text.find(".draft") != std::string::npos;
  }
  void Forget() {
    for (const std::string& name : bench_.scratch.Names())
      if (name.starts_with("run.ckpt")) ASSERT_TRUE(bench_.files.Remove(bench_.scratch / name).ok());
  }
  static double Distance(const BenchOutcome& a, const BenchOutcome& b) {
    double apart = 0, size = 0;
    for (std::size_t block = 0; block < a.weights.size(); ++block)
      for (std::size_t i = 0; i < a.weights[block].size(); ++i) {
        apart += std::pow(a.weights[block][i] - b.weights[block][i], 2);
        size += std::pow(b.weights[block][i], 2);
      }
    return std::sqrt(apart / size);
  }

  Bench bench_;
  Plan plan_;
  std::map<std::string, std::uint64_t> injected_;
};

}  // namespace freshet::train
