#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "fabric/collectives/collectives.h"

namespace freshet::strategy {

// What a member remembers for itself alone, such as residuals of a codec, lies with its neighbour, too: every now and then
// each sends a copy to the next rank, on the fabric's own thread while it goes on working. Should it be lost, the neighbour
// has what it was then.
//
// Threads:  one. Blocking: Exchange, for the copies of the time before, which have had all the steps since to travel.
// Failure:  of the fabric, for what is exchanged next; the copy that is there stays.
class NeighbourCopies {
 public:
  // All members call it after the same step.
  Result<void> Exchange(fabric::Collectives& collectives, std::string mine);
  // What the rank before this one's remembered at a time; "" when there is none.
  std::string copy() const;
  void Forget();

 private:
  struct Shelf {
    mutable base::Mutex mutex;
    std::string copy GUARDED_BY(mutex);
  };
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();  // also of who carries copies
};

}  // namespace freshet::strategy
