#include "fabric/sim/world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::fabric::sim {
namespace {

using Kind = Fault::Kind;

std::string TimeText(base::Clock::Duration time) { return Fixed(base::Seconds(time), 9); }

}  // namespace

World::World(WorldOptions options)
    : options_(std::move(options)),
      fibers_(options_.seed),
      network_(fibers_, options_.size, options_.link, options_.seed) {
  for (int rank = 0; rank < options_.size; ++rank) members_.push_back(std::make_unique<Member>(*this, rank));
}

World::~World() = default;

void World::Note(const std::string& line) {
  if (traced_) trace_ += Str(TimeText(fibers_.Now()), " ", line, "\n");
}

void World::Run(const Body& body) {
  if (traced_)
    network_.Watch([this](int to, const Letter& letter) {
      Note(Str(letter.from, " > ", to, " ", static_cast<int>(letter.kind), " ", static_cast<int>(letter.note.type), " ",
               letter.note.tag, " ", letter.note.id, " ", letter.note.argument, " ", letter.payload().size()));
    });
  for (const Fault& fault : options_.faults) {
    fibers_.At(fault.at, [this, &fault] { Begin(fault); });
    if (fault.lasts != Fault::kForEver) fibers_.At(fault.at + fault.lasts, [this, &fault] { End(fault); });
  }
  for (const auto& member : members_)
    fibers_.StartIn(member->rank(), [&] {
      body(*member);
      member->ended_ = true;
      Note(Str(member->rank(), " has ended"));
      Bury();
    });
  fibers_.Run();
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
    Member& member = *members_[static_cast<std::size_t>(rank)];
    switch (fault.kind) {
      case Kind::kCrash:
        Crash(rank, false);
        break;
      case Kind::kPowerOff:
        Crash(rank, true);
        break;
      case Kind::kPause:
        if (!member.dead_) fibers_.Freeze(rank);
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
  ForEachWay(fault, [&](int from, int to) {
    if (fault.kind == Kind::kPartition) network_.Hold(from, to);
    if (fault.kind == Kind::kDelay) network_.Delay(from, to, fault.by);
    if (fault.kind == Kind::kDisconnect) network_.Reset(from, to);
  });
}

void World::End(const Fault& fault) {
  Note(Str("over: ", fault.ToText()));
  for (const int rank : fault.ranks) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    if (fault.kind == Kind::kPause && !member.dead_) fibers_.Thaw(rank);
    if (fault.kind == Kind::kSlow) member.slowness_ /= fault.times;
    if (fault.kind == Kind::kDiskFull) {
      member.full_ = false;
      if (member.disk_) member.disk_->Fill(false);
    }
  }
  ForEachWay(fault, [&](int from, int to) {
    if (fault.kind == Kind::kPartition) network_.Release(from, to);
    if (fault.kind == Kind::kDelay) network_.Delay(from, to, {});
  });
}

void World::Crash(int rank, bool silently) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if (member.dead_ || member.ended_) return;
  Note(Str(rank, " is dead"));
  member.dead_ = true;
  if (member.disk_) member.disk_->TurnOff();
  fibers_.Freeze(rank);
  if (silently)
    network_.Silence(rank);
  else
    network_.Kill(rank);
  Bury();
}

// The dead have their end once nobody else is left who could be troubled by it.
void World::Bury() {
  for (const auto& member : members_)
    if (!member->dead_ && !member->ended_) return;
  for (const auto& member : members_) {
    if (!member->dead_ || member->ended_) continue;
    network_.Kill(member->rank());
    fibers_.Thaw(member->rank());
  }
}

World::Member::Member(World& world, int rank) : world_(world), rank_(rank), clock_(world.fibers_) {}

std::unique_ptr<Fabric> World::Member::Connect() {
  return std::make_unique<SimFabric>(world_.network_, rank_, world_.options_.fabric, clock_);
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
