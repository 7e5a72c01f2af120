#include "fabric/sim/world.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/str.h"
#include "fabric/sim/some_wires.h"

namespace freshet::fabric::sim {
namespace {

using Kind = Fault::Kind;

std::string TimeText(base::Clock::Duration time) { return Fixed(base::Seconds(time), 9); }

}  // namespace

World::World(WorldOptions options)
    : options_(std::move(options)), fibers_(options_.seed), random_(options_.seed, "post") {
  for (int rank = 0; rank < options_.size; ++rank) {
    current_.push_back(members_.size());
    members_.push_back(std::make_unique<Member>(*this, rank, 0));
  }
}

World::~World() = default;

void World::Note(const std::string& line) {
  if (traced_) trace_ += Str(TimeText(fibers_.Now()), " ", line, "\n");
}

void World::Run(const Body& body) {
  for (const Fault& fault : options_.faults) {
    fibers_.At(fault.at, [this, &fault] { Begin(fault); });
    if (fault.lasts != Fault::kForEver) fibers_.At(fault.at + fault.lasts, [this, &fault] { End(fault); });
  }
  body_ = &body;
  for (const auto& member : members_) Start(*member);
  fibers_.Run();
}

Network& World::NetworkOf(std::uint64_t generation) {
  std::unique_ptr<Network>& network = networks_[generation];
  if (network != nullptr) return *network;
  network = std::make_unique<Network>(fibers_, options_.size, options_.link, options_.seed + generation);
  if (traced_)
    network->Watch([this](int to, const Letter& letter) {
      Note(Str(letter.from, " > ", to, " ", static_cast<int>(letter.kind), " ", static_cast<int>(letter.note.type), " ",
               letter.note.tag, " ", letter.note.id, " ", letter.note.argument, " ", letter.payload().size()));
    });
  for (const Fault* const fault : lasting_) Disturb(*network, *fault);
  return *network;
}

bool World::IsCut(int from, int to) const {
  bool cut = false;
  for (const Fault* const fault : lasting_)
    if (fault->kind == Kind::kPartition)
      ForEachWay(*fault, [&](int one, int other) { cut = cut || (one == from && other == to); });
  return cut;
}

void World::PostTo(int from, int to, std::string letter) {
  CHECK(to >= 0 && to < options_.size);
  if (IsCut(from, to)) return;
  const auto jitter = static_cast<std::uint64_t>(std::max<base::Clock::Duration::rep>(options_.link.jitter.count(), 1));
  const auto travels =
      options_.link.latency + base::Clock::Duration(static_cast<base::Clock::Duration::rep>(random_.Below(jitter)));
  fibers_.At(fibers_.Now() + travels, [this, from, to, letter = std::move(letter)] {
    Member& member = current(to);
    if (IsCut(from, to) || member.dead_ || member.ended_) return;
    Note(Str(from, " > ", to, " post ", letter.size()));
    member.post_.Deliver(letter);
  });
}

void World::Disturb(Network& network, const Fault& fault) const {
  ForEachWay(fault, [&](int from, int to) {
    if (fault.kind == Kind::kPartition) network.Hold(from, to);
    if (fault.kind == Kind::kDelay) network.Delay(from, to, fault.by);
  });
}

void World::Start(Member& member) {
  fibers_.StartIn(member.house(), [this, &member] {
    (*body_)(member);
    member.ended_ = true;
    Note(Str(member.rank(), " has ended"));
    Bury();
  });
}

void World::Restart(int rank) {
  const Member& before = current(rank);
  if (!before.dead_ || before.ended_) return;  // it had ended before it could crash, or all have
  Note(Str(rank, " is started again"));
  current_[static_cast<std::size_t>(rank)] = members_.size();
  members_.push_back(std::make_unique<Member>(*this, rank, before.life_ + 1));
  Member& member = *members_.back();
  member.slowness_ = before.slowness_;
  member.full_ = before.full_;
  member.clock_.ahead = before.clock_.ahead;
  Start(member);
}

void World::ForEachWay(const Fault& fault, const std::function<void(int from, int to)>& visit) const {
  for (const int one : fault.ranks)
    for (const int other : fault.others) {
      visit(one, other);
      if (!fault.one_way) visit(other, one);
    }
}

void World::Begin(const Fault& fault) {
  Note(fault.ToText());
  for (const int rank : fault.ranks) {
    Member& member = current(rank);
    switch (fault.kind) {
      case Kind::kCrash:
        Crash(rank, false);
        break;
      case Kind::kPowerOff:
        Crash(rank, true);
        break;
      case Kind::kPause:
        if (!member.dead_) fibers_.Freeze(member.house());
        break;
      case Kind::kSlow:
        member.slowness_ *= fault.times;
        break;
      case Kind::kDiskFull:
        member.full_ = true;
        if (member.disk_) member.disk_->Fill(true);
        break;
      case Kind::kTornWrite:
        member.torn_ = true;
        if (member.disk_) member.disk_->TearNextWrite([this, rank] { Crash(rank, false); });
        break;
      case Kind::kClockJump:
        member.clock_.ahead += fault.by;
        break;
      case Kind::kPartition:
      case Kind::kDelay:
      case Kind::kDisconnect:
        break;
    }
  }
  if (fault.kind == Kind::kPartition || fault.kind == Kind::kDelay) lasting_.push_back(&fault);
  for (const auto& entry : networks_) {
    Network& network = *entry.second;
    Disturb(network, fault);
    if (fault.kind == Kind::kDisconnect) ForEachWay(fault, [&](int from, int to) { network.Reset(from, to); });
  }
}

void World::End(const Fault& fault) {
  Note(Str("over: ", fault.ToText()));
  for (const int rank : fault.ranks) {
    Member& member = current(rank);
    if (fault.kind == Kind::kCrash) Restart(rank);
    if (fault.kind == Kind::kPause && !member.dead_) fibers_.Thaw(member.house());
    if (fault.kind == Kind::kSlow) member.slowness_ /= fault.times;
    if (fault.kind == Kind::kDiskFull) {
      member.full_ = false;
      if (member.disk_) member.disk_->Fill(false);
    }
  }
  std::erase(lasting_, &fault);
  for (const auto& entry : networks_) {
    Network& network = *entry.second;
    ForEachWay(fault, [&](int from, int to) {
      if (fault.kind == Kind::kPartition) network.Release(from, to);
      if (fault.kind == Kind::kDelay) network.Delay(from, to, {});
    });
  }
}

void World::Crash(int rank, bool silently) {
  Member& member = current(rank);
  if (member.dead_ || member.ended_) return;
  Note(Str(rank, " is dead"));
  member.dead_ = true;
  if (!silently && when_crashed_) when_crashed_(member);
  if (member.disk_) member.disk_->TurnOff();
  fibers_.Freeze(member.house());
  for (const auto& [generation, network] : networks_) {
    if (silently)
      network->Silence(rank);
    else
      network->Kill(rank);
  }
  Bury();
}

// The dead have their end once nobody else is left who could be troubled by it.
void World::Bury() {
  for (const auto& member : members_)
    if (!member->dead_ && !member->ended_) return;
  for (const auto& member : members_) {
    if (!member->dead_ || member->ended_) continue;
    for (const auto& [generation, network] : networks_) network->Kill(member->rank());
    fibers_.Thaw(member->house());
  }
}

World::Member::Member(World& world, int rank, int life)
    : world_(world),
      rank_(rank),
      life_(life),
      clock_(world.fibers_),
      post_(
          Str(rank),
          [this](const std::string& address, std::string letter) {
            world_.PostTo(rank_, std::atoi(address.c_str()), std::move(letter));
          },
          world.fibers_) {}

void World::Member::Crash(base::Clock::Duration back) {
  if (back != Fault::kForEver)
    world_.fibers_.At(world_.fibers_.Now() + back, [&world = world_, rank = rank_] { world.Restart(rank); });
  world_.Crash(rank_, false);
  clock_.Sleep(std::chrono::nanoseconds(1));  // it comes to itself when all others have ended
}

std::unique_ptr<Fabric> World::Member::Connect() { return Connect(world_.options_.fabric.generation); }

std::unique_ptr<Fabric> World::Member::Connect(std::uint64_t generation, const std::vector<int>& ranks) {
  SimOptions options = world_.options_.fabric;
  options.generation = generation;
  Network& network = world_.NetworkOf(generation);
  if (ranks.empty()) return std::make_unique<SimFabric>(network, rank_, options, clock_);
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  CHECK(place != ranks.end());
  options.hosts.clear();
  if (!world_.options_.fabric.hosts.empty())
    for (const int rank : ranks) options.hosts.push_back(world_.options_.fabric.hosts[static_cast<std::size_t>(rank)]);
  world_.some_wires_.push_back(std::make_unique<SomeWires>(network, ranks));
  return std::make_unique<SimFabric>(*world_.some_wires_.back(), static_cast<int>(place - ranks.begin()), options,
                                     clock_);
}

Disk& World::Member::DiskOver(base::Files& files) {
  CHECK(disk_ == nullptr);
  disk_ = std::make_unique<Disk>(files, clock_, world_.options_.disk);
  disk_->Fill(full_);
  if (torn_) disk_->TearNextWrite([this] { world_.Crash(rank_, false); });
  if (dead_) disk_->TurnOff();
  return *disk_;
}

}  // namespace freshet::fabric::sim
