#pragma once

#include <list>
#include <memory>

#include "base/clock.h"
#include "base/fibers.h"
#include "base/mutex.h"

namespace freshet::fabric::sim {

// The cores of a node in simulated time. When more is to be done than there are cores, all that is done takes longer, in
// proportion.
//
// Threads: as base::Fibers. Blocking: Work, until it is done.
class Cores {
 public:
  Cores(base::Fibers& fibers, int count);

  // Takes so long with as many cores as are asked for.
  void Work(double seconds, double cores = 1);
  void Slow(double times) { slowness_ = times; }  // everything takes so many times as long, from here on
  double busy() const { return busy_; }           // seconds of cores that were worked so far

 private:
  struct Task {
    double left = 0, cores = 1;
  };
  void Pass();
  double Rate() const;  // of all tasks alike

  base::Fibers& fibers_;
  const double count_;
  double slowness_ = 1;
  double busy_ = 0;
  double wanted_ = 0;               // cores, by all tasks together
  base::Clock::Duration passed_{};  // up to when what was done is taken off
  base::Mutex mutex_;
  std::unique_ptr<base::Condition> changed_;
  std::list<Task> tasks_;
};

}  // namespace freshet::fabric::sim
