#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"

namespace freshet::strategy {

// Letters between members that wait for nobody. They come at any time and are taken in on the fabric's own thread, so that
// what is on its way moves while this member computes; when it has not looked for a while, no more are taken in, and those
// who write see that theirs are not taken.
//
// Threads:   one writes and takes. Ownership: borrows the fabric, and is held by what it has posted there.
// Blocking:  Take, and CloseTogether, each for at most kPatience. Failure: the fabric's.
class Letterbox : public std::enable_shared_from_this<Letterbox> {
 public:
  static constexpr std::size_t kMost = 4;         // of others, that lie here
  static constexpr std::size_t kShortBytes = 64;  // so short ones do not count: they are always taken in
  static constexpr base::Clock::Duration kPatience = std::chrono::minutes(10);

  struct Letter {
    int from = 0;
    std::vector<std::byte> bytes;
  };
  // Shown every letter as it comes, on the fabric's own thread: true when that was all there is to do with it. Its
  // failure is that of the group.
  using Serve = std::function<Result<bool>(int from, std::span<const std::byte> bytes)>;
  // What else is done on that thread while it listens: `due` is called before each wait for a letter, and says until when
  // that may take; `failed` with what has ended it.
  struct Beside {
    std::function<std::optional<base::Clock::Duration>()> due;
    std::function<void(const Error& why)> failed;
  };
  // `at_once`: so many are coming in at a time, each in memory of its own; they are taken in the order in which they were
  // offered.
  Letterbox(fabric::Fabric& fabric, fabric::Tag tag, Serve serve = {}, std::size_t at_once = 1, Beside beside = {});

  // Letters of members who write before this one has opened wait for it.
  void Open();
  bool open() const;
  fabric::Tag tag() const { return tag_; }
  Result<std::optional<Letter>> TryTake();
  Result<Letter> Take();
  // Not empty; with so many bytes behind these that are not there (Fabric::StartHollowSend).
  Result<void> Send(int to, std::vector<std::byte> bytes, std::size_t hollow = 0);
  void SendToSelf(std::vector<std::byte> bytes);  // from any thread
  // Letters of this member that others have not taken in yet; and waits until they are at most so many.
  Result<std::size_t> OnTheirWay();
  Result<void> AwaitTaken(std::size_t most);
  // Whatever comes and whatever is on its way is of no interest any more. Nothing is served any more when it returns.
  void End();
  // What others still read of this member's memory must be at rest before that goes. While there is any this member
  // gives up: who reads a letter may wait for one that does not come any more, and lets go when it learns that.
  static void LetGo(fabric::Fabric& fabric, std::span<const fabric::Transfer> sent);
  // Nobody looks at what they bring any more: it is let go of.
  static void TakeBack(fabric::Fabric& fabric, const std::deque<fabric::Transfer>& borrows);
  // All call it, when nothing of interest is on its way any more: they stop listening.
  Result<void> CloseTogether();

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    fabric::Transfer transfer;
  };
  void Listen();
  // The next letter; nothing when it was served.
  Result<std::optional<Letter>> TakeIn();
  Result<bool> ServeNow(const fabric::Arrived& arrived);
  // Calls it, unless nothing is of interest any more.
  template <class Call>
  void Now(const Call& call);
  std::size_t LongOnes() const REQUIRES(mutex_);
  Result<void> StartSend(int to, std::vector<std::byte> bytes, std::size_t hollow);

  fabric::Fabric& fabric_;
  const fabric::Tag tag_;
  const base::Clock& clock_;
  const Serve serve_;
  const Beside beside_;
  const std::size_t at_once_;
  std::deque<Sent> sent_;

  std::deque<fabric::Transfer> coming_;  // of who listens
  bool closing_ = false;                 // no others are listened for

  mutable base::Mutex mutex_;
  std::unique_ptr<base::Condition> changed_;
  std::deque<Letter> letters_ GUARDED_BY(mutex_);
  std::optional<Error> failed_ GUARDED_BY(mutex_);
  bool open_ GUARDED_BY(mutex_) = false, ended_ GUARDED_BY(mutex_) = false, serving_ GUARDED_BY(mutex_) = false;
};

}  // namespace freshet::strategy
