#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace freshet::fabric {

class Group;

// The sum over all members in memory they share.
//
// Each shows where its values lie and waits until all have (they meet). A short sum each then makes for itself, from
// copies the members left when they came; two sets of copies taken in turn, so that one meeting is enough: nobody comes
// to the meeting after next before all have left this one. Of a long one, each member adds up its own part of
// everybody's values, in the order of ranks, and writes the sum to all of them; they meet again when all have.
//
// Threads:   one per rank at a time; a second one of the same member waits.
// Blocking:  at most the group's timeout in each meeting. A member that gives up sees to it that nobody still writes to
//            its values.
// Failure:   kInvalid on every member when lengths differ, and the group goes on. kTimeout and kPeerLost are the end of
//            the group, or of its sums where losses are reported. No allocation.
class SharedSum {
 public:
  explicit SharedSum(Group& group);

  Result<void> Run(int rank, std::span<float> values);

 private:
  static constexpr std::size_t kMostShortBytes = 16 * 1024;

  struct Offer {
    float* values = nullptr;
    std::size_t length = 0;
  };
  // What a member shows: in one line of the cache, so that one look brings it all.
  struct alignas(64) Stand {
    std::atomic<std::uint64_t> met{0};  // meetings come to; orders the offers and copies made before
    Offer offers[2];
    std::atomic<bool> writing{false};  // to the values of others
  };
  struct alignas(64) Member {
    base::Mutex mutex;
    std::uint64_t turn GUARDED_BY(mutex) = 0;  // sums begun
    alignas(64) float copies[2][kMostShortBytes / sizeof(float)];
    std::vector<const float*> sources;  // scratch of the member in Run
    std::vector<float*> targets;
  };

  Result<void> Meet(int rank);
  Result<void> SameLength(int rank, std::size_t turn) const;
  void SumCopies(int rank, std::size_t turn, std::span<float> values);
  Result<void> SumPart(int rank, std::size_t turn, std::size_t length);
  Error GiveUp(Error why);

  Group& group_;
  const std::size_t short_bytes_;
  const std::unique_ptr<Stand[]> stands_;
  const std::unique_ptr<Member[]> members_;
};

}  // namespace freshet::fabric
