#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fibers.h"
#include "base/random.h"
#include "fabric/sim/disk.h"
#include "fabric/sim/fault.h"
#include "fabric/sim/network.h"
#include "fabric/sim/sim_fabric.h"
#include "fabric/sim/world_post.h"

namespace freshet::fabric::sim {

struct WorldOptions {
  int size = 2;
  std::uint64_t seed = 1;  // of what happens at once, and of the network
  Link link = {};
  SimOptions fabric = {};
  base::Clock::Duration disk = std::chrono::microseconds(100);  // what an operation of it takes
  std::vector<Fault> faults = {};
};

// A cluster in one process: members with a clock, a disk and a network each, in simulated time, to which a plan of
// faults happens. The same options are the same run, to the last letter (trace).
//
// Who has crashed runs no more, as long as anybody else does. Then it comes to itself, without network and disk, so
// that what it holds is given back; what its body finds out then is of no interest (Member::dead). Where it is started
// again, that is another member of the same rank, with a life of its own, which runs the same body.
//
// Threads:  one world belongs to one thread; there may be many. Blocking: Run, until all bodies have returned.
class World {
 public:
  class Member;
  using Body = std::function<void(Member& member)>;

  explicit World(WorldOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  void KeepTrace() { traced_ = true; }
  // Who sees that a process has ended, as its agent would, and may post letters about it.
  void WhenCrashed(std::function<void(Member& member)> tell) { when_crashed_ = std::move(tell); }
  void PostTo(int from, int to, std::string letter);
  void Run(const Body& body);

  base::Clock::Duration now() const { return fibers_.Now(); }
  const std::string& trace() const { return trace_; }  // faults and letters, a line each, in the order they came

 private:
  void Begin(const Fault& fault);
  void End(const Fault& fault);
  void Crash(int rank, bool silently);
  void Restart(int rank);
  void Bury();
  void Start(Member& member);
  Member& current(int rank) { return *members_[current_[static_cast<std::size_t>(rank)]]; }
  Network& NetworkOf(std::uint64_t generation);
  bool IsCut(int from, int to) const;
  void Disturb(Network& network, const Fault& fault) const;
  void ForEachWay(const Fault& fault, const std::function<void(int from, int to)>& visit) const;
  void Note(const std::string& line);

  const WorldOptions options_;
  base::Fibers fibers_;
  // Of each generation: nothing of an earlier group gets into a later one, and who died in one stays dead there.
  std::map<std::uint64_t, std::unique_ptr<Network>> networks_;
  std::vector<const Fault*> lasting_;  // faults of ways that are not over
  std::vector<std::unique_ptr<Wires>> some_wires_;
  base::Random random_;  // of letters' ways
  std::function<void(Member& member)> when_crashed_;
  std::vector<std::unique_ptr<Member>> members_;  // all lives
  std::vector<std::size_t> current_;              // by rank: the last of them
  const Body* body_ = nullptr;
  bool traced_ = false;
  std::string trace_;
};

// What the body of one member is given.
class World::Member {
 public:
  Member(World& world, int rank, int life);

  int rank() const { return rank_; }
  int life() const { return life_; }  // how often it was started again
  base::Clock& clock() { return clock_; }
  std::unique_ptr<Fabric> Connect();  // its place in the group; one at a time
  // In a later generation; perhaps of some ranks alone, of which its place is that of this one.
  std::unique_ptr<Fabric> Connect(std::uint64_t generation, const std::vector<int>& ranks = {});
  Disk& DiskOver(base::Files& files);  // the one disk it has, which keeps its files in these
  void Compute(base::Clock::Duration time) {
    clock_.Sleep(std::chrono::duration_cast<base::Clock::Duration>(time * slowness_));
  }
  // Dies on the spot, as by a fault of the plan, and is perhaps started again after a while.
  void Crash(base::Clock::Duration back = Fault::kForEver);
  bool dead() const { return dead_; }
  Post& post() { return post_; }

 private:
  friend class World;
  // The world's time, with a time of day of its own.
  class OwnClock final : public base::Clock {
   public:
    explicit OwnClock(base::Fibers& fibers) : fibers_(fibers) {}
    Duration Now() const override { return fibers_.Now(); }
    Duration Wall() const override { return fibers_.Now() + ahead; }
    void Sleep(Duration duration) override { fibers_.Sleep(duration); }
    std::unique_ptr<base::Condition> NewCondition() const override { return fibers_.NewCondition(); }
    bool WaitReadable(int descriptor, Duration end) const override { return fibers_.WaitReadable(descriptor, end); }
    std::function<void()> Start(std::function<void()> body) const override { return fibers_.Start(std::move(body)); }
    Duration ahead{0};

   private:
    base::Fibers& fibers_;
  };

  int house() const { return rank_ + life_ * world_.options_.size; }

  World& world_;
  const int rank_, life_;
  OwnClock clock_;
  WorldPost post_;
  std::unique_ptr<Disk> disk_;
  bool full_ = false, torn_ = false;  // before it has a disk
  double slowness_ = 1;
  bool dead_ = false, ended_ = false;
};

}  // namespace freshet::fabric::sim
