#pragma once

#include <cstdint>
#include <deque>
#include <functional>
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
  std::vector<std::byte> told = {};            // what the first has all told with it (Announce)

  std::vector<std::byte> Encode() const;
  static Result<Go> Decode(std::span<const std::byte> bytes, int members);
};

// Where members say that they are ready, at the first of them: as soon as all are, or all but some and a little more time
// has passed than they took, it is decided that the round goes on, and everybody is told. The first may itself be one who
// is not waited for: others are heard on the fabric's own thread, by the desk itself (Open) or by who listens there anyway.
//
// Threads:   Await and Announce are for the one that works; others are heard on the fabric's. Ownership: borrows the
//            fabric, and is held by what it has posted there.
// Blocking:  Await, until its round is decided. Failure: the fabric's.
class ReadyDesk : public std::enable_shared_from_this<ReadyDesk> {
 public:
  struct Options {
    int members = 1;  // the first ones of the fabric
    int backup = 0;   // of whom so many need not be ready
    fabric::Tag ready = 0, go = 0;
    bool rests = false;  // who was missing of a round has no share of the next: nobody waits for it there
  };
  ReadyDesk(fabric::Fabric& fabric, const Options& options);
  void Open();

  // For who listens: what one said, what there is to do by the clock, which says when there will be more, and that nobody
  // will be heard any more.
  void Hear(int rank, const Ready& ready);
  std::optional<base::Clock::Duration> DecideWhatIsDue();
  void Fail(const Error& why);

  bool Decided(std::uint64_t round) const;
  // This member is ready for its next round, or it has come to one that was decided without it: what is decided.
  Result<Go> Await(const Ready& mine);
  // From the next decision on all are told what this gives for the round that is decided by it, which is returned. Until
  // then nobody has come past that round.
  std::uint64_t Announce(const std::function<std::vector<std::byte>(std::uint64_t round)>& what);

 private:
  struct Round {
    std::vector<bool> ready;
    int count = 0;
    Go go;
    base::Clock::Duration begun{}, due{};  // when the first was ready, and when it is decided without the last
    bool decided = false;
    std::vector<std::byte> bytes;
    std::vector<fabric::Transfer> telling;
  };
  void Listen();
  Round& At(std::uint64_t round) REQUIRES(mutex_);
  void Note(int rank, const Ready& ready) REQUIRES(mutex_);
  bool HasShare(std::uint64_t round, std::size_t rank) REQUIRES(mutex_);
  bool AllReady(std::uint64_t round) REQUIRES(mutex_);
  bool Enough(std::uint64_t round) REQUIRES(mutex_);
  std::uint64_t Undecided() REQUIRES(mutex_);  // the first
  void Decide(Round& round) REQUIRES(mutex_);
  void Forget() REQUIRES(mutex_);
  // Decides what is due; when the next one is.
  std::optional<base::Clock::Duration> Due() REQUIRES(mutex_);

  fabric::Fabric& fabric_;
  const Options options_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::unique_ptr<base::Condition> changed_;
  std::uint64_t first_ GUARDED_BY(mutex_) = 1;  // of rounds_
  std::deque<Round> rounds_ GUARDED_BY(mutex_);
  std::vector<std::byte> told_ GUARDED_BY(mutex_);
  std::optional<Error> failed_ GUARDED_BY(mutex_);
};

// A member's way through the rounds that such a desk decides; the first one's has the desk.
//
// Threads: one. Ownership: borrows the fabric. Blocking: Say, until the round is decided. Failure: the fabric's.
class ReadyRounds {
 public:
  // How others tell the first that they are ready, who then has the desk Hear it; nothing: as the desk listens.
  using Tell = std::function<Result<void>(const Ready& ready)>;
  ReadyRounds(fabric::Fabric& fabric, const ReadyDesk::Options& options, Tell tell = {});
  ~ReadyRounds();
  ReadyRounds(const ReadyRounds&) = delete;
  ReadyRounds& operator=(const ReadyRounds&) = delete;

  Result<void> Begin();  // the next one
  std::uint64_t round() const { return round_; }
  bool Decided() const;  // before this member was ready: without it
  Result<Go> Say(Ready ready);
  ReadyDesk* desk() { return desk_.get(); }  // null but at the first

 private:
  fabric::Fabric& fabric_;
  const ReadyDesk::Options options_;
  const Tell tell_;
  std::shared_ptr<ReadyDesk> desk_;
  std::uint64_t round_ = 0;
  std::optional<fabric::Transfer> going_;
};

}  // namespace freshet::strategy
