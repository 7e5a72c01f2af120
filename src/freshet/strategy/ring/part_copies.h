#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fabric/collectives/collectives.h"

namespace freshet::strategy::ring {

// What members of a ring hold, as it was after some updates (a *point*), twice: with each its own, and with the member
// after it, to whom it is sent in small pieces on the fabric's own thread while both go on working.
//
// Threads:   one. Blocking: Exchange, for the copies of the point before, which have had all the steps since to travel.
// Ownership: owns all that is kept.
// Failure:   of Exchange, kPeerLost when the copy of the point before did not come, or as the fabric's; what is there stays.
class PartCopies {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  // All members call it after the same update, the how-manieth it is. When it returns, this member has its neighbour's
  // copies of all points before.
  Result<void> Exchange(fabric::Collectives& collectives, std::uint64_t made, std::string mine);

  // Points of which there is this member's own part, or that of the member before it; ascending.
  std::vector<std::uint64_t> own() const;
  std::vector<std::uint64_t> before() const;
  Bytes Own(std::uint64_t made) const;  // null: there is none
  Bytes Before(std::uint64_t made) const;

  void DropBefore(std::uint64_t made);
  void Forget();  // all; the ring is another one
  std::uint64_t bytes_sent() const;

 private:
  struct Shelf {
    mutable base::Mutex mutex;
    std::map<std::uint64_t, Bytes> copies GUARDED_BY(mutex);
    std::optional<Error> failed GUARDED_BY(mutex);  // the last to come did not
    std::uint64_t sent GUARDED_BY(mutex) = 0;       // bytes
  };
  static Result<void> Carry(fabric::Fabric& fabric, fabric::Tag tag, std::uint64_t made, const std::string& mine,
                            Shelf& shelf);

  std::map<std::uint64_t, Bytes> own_;
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();  // also of who carries copies
  std::uint64_t sent_before_ = 0;                             // on other rings
};

}  // namespace freshet::strategy::ring
