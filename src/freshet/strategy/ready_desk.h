#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"

namespace freshet::strategy {

// What a member says when it is ready for the exchange of a round, and what is decided of that round.
struct Ready {
  std::uint64_t round = 0;
  std::uint8_t stop = 0, save = 0, admit = 0;
};
struct Go {
  std::uint8_t stop = 0, save = 0, admit = 0;  // somebody asks for it
  std::vector<std::uint8_t> missing = {};      // by rank: it was not ready, and the others do its share

  std::vector<std::byte> Encode() const;
  static Result<Go> Decode(std::span<const std::byte> bytes, int members);
};

// Where members say that they are ready, at the first of them: as soon as all are, or all but some and a little more time
// has passed than they took, it is decided that the round goes on, and everybody is told. The first may itself be one who
// is not waited for: others are heard on the fabric's own thread.
//
// Threads:   Await is for the one that works; others are heard on the fabric's. Ownership: borrows the fabric, and is held
//            by what it has posted there.
// Blocking:  Await, until its round is decided. Failure: the fabric's.
class ReadyDesk : public std::enable_shared_from_this<ReadyDesk> {
 public:
  ReadyDesk(fabric::Fabric& fabric, int backup, fabric::Tag ready, fabric::Tag go);
  void Open();

  bool Decided(std::uint64_t round) const;
  // This member is ready for its next round.
  Result<Go> Await(const Ready& mine);
  // It has come to a round that was decided without it: what was decided.
  Go Take(const Ready& mine);

 private:
  struct Round {
    std::vector<bool> ready;
    int count = 0;
    Go go;
    base::Clock::Duration begun{}, due{};  // when the first was ready, and when it is decided without the last
    bool decided = false;
    std::vector<std::byte> told;
    std::vector<fabric::Transfer> telling;
  };
  void Listen();
  Round& At(std::uint64_t round) REQUIRES(mutex_);
  void Note(int rank, const Ready& ready) REQUIRES(mutex_);
  bool Enough(const Round& round) const { return round.count + backup_ >= fabric_.size(); }
  void Decide(Round& round) REQUIRES(mutex_);
  std::optional<base::Clock::Duration> Due() const REQUIRES(mutex_);
  void DecideWhatIsDue() REQUIRES(mutex_);

  fabric::Fabric& fabric_;
  const int backup_;
  const fabric::Tag ready_tag_, go_tag_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::unique_ptr<base::Condition> changed_;
  std::uint64_t first_ GUARDED_BY(mutex_) = 1;  // of rounds_
  std::deque<Round> rounds_ GUARDED_BY(mutex_);
  std::optional<Error> failed_ GUARDED_BY(mutex_);
};

}  // namespace freshet::strategy
