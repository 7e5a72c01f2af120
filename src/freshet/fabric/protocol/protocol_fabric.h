#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/jobs.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "fabric/fabric.h"
#include "fabric/protocol/protocol.h"

namespace freshet::fabric {

// What fabrics between processes do alike, over the engine that carries their protocol.
//
// Who waits moves the bytes itself: one of a member's waiting threads *drives* (it turns the engine, looks for a short
// while, then rests), the others wait for what it does. A thread of the fabric, its *keeper*, sends heartbeats, notices
// silences, and watches the engine while nobody waits.
//
// A fabric derives from it and says how one rests and watches, which depends on whether its engine wakes who sleeps.
// Its constructor ends with Begin and its destructor begins with End, since keeper and posted jobs use the whole of it.
//
// Threads, blocking, failure: as Fabric. Ownership: borrows the clock, which outlives it; owns the engine.
class ProtocolFabric : public Fabric {
 public:
  ~ProtocolFabric() override;

  int rank() const final { return engine_->rank(); }
  int size() const final { return engine_->size(); }
  std::uint64_t generation() const final { return settings_.generation; }
  const std::string& host(int rank) const final { return engine_->host(rank); }
  base::Clock& clock() const final { return clock_; }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) final;
  Result<Transfer> StartHollowSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow) final;
  Result<Transfer> StartReceive(From from, Tag tag, std::span<std::byte> into) final;
  Result<Transfer> StartReceiveAdd(From from, Tag tag, std::span<float> into) final;
  Result<Transfer> StartBorrow(From from, Tag tag) final;
  void Release(Transfer borrowed) final;
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) final;
  bool Done(Transfer transfer) final;
  Result<std::size_t> WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout = {}) final;
  std::vector<Loss> Lost(std::size_t known = 0) const final;
  std::optional<int> Missed() const final;
  Result<Transfer> StartLoss(From of, std::size_t known) final;
  void Post(std::function<void()> job) final;
  void Abort(const Error& why) final;
  std::uint64_t bytes_sent() const final;
  std::uint64_t bytes_shared() const final;

 protected:
  using Duration = base::Clock::Duration;
  using Condition = std::function<bool()>;
  struct Settings {
    std::uint64_t generation = 0;
    Duration wait_timeout{};  // of a Wait that names none
    Duration spin{};          // who drives looks this long before it rests
  };
  ProtocolFabric(std::unique_ptr<Protocol> engine, Settings settings, base::Clock& clock);
  void Begin();  // starts the keeper
  // Says goodbye, stops the engine, and returns when the posted jobs have run (their transfers fail at once) and the
  // keeper is gone: from here on the engine is the caller's alone.
  void End();

  // One of those who wait drives. False when the time is over.
  bool WaitFor(const Condition& ready, Duration end) REQUIRES(mutex_);

  // These three may let go of the mutex meanwhile.
  // Of who drives, when nothing has moved for `idle`: until something may, at most so long.
  virtual void Rest(Duration idle, Duration longest) REQUIRES(mutex_) = 0;
  // Of the keeper, until the next tick is due.
  virtual void Watch(Duration longest) REQUIRES(mutex_) = 0;
  // Nobody waits any more: the keeper has to look for itself, where time stands until somebody does.
  virtual void NobodyWaits() REQUIRES(mutex_) {
    if (!time_passes_) stirred_->NotifyAll();
  }
  // Of who only wants to know whether something is done: moves what can be moved; true when something was.
  virtual bool Look() REQUIRES(mutex_) { return engine_->Turn(); }
  // For these: is anybody waiting, when did somebody last, shall the keeper end; sleep until the end or so long; tell
  // those who wait without driving that something has changed.
  bool awaited() const REQUIRES(mutex_) { return waiting_ > 0; }
  Duration last_waited() const REQUIRES(mutex_) { return last_waited_; }
  bool stopping() const REQUIRES(mutex_) { return stopping_; }
  void Snooze(Duration longest) REQUIRES(mutex_) { stirred_->WaitUntil(mutex_, clock_.Now() + longest); }
  void TellWaiting() { changed_->NotifyAll(); }
  // Time passes by itself, and waking a thread costs some of it. Else time stands while anybody looks: then nobody
  // looks before it rests, and the keeper is stirred when nobody waits any more.
  bool time_passes() const { return time_passes_; }

  Protocol& engine() const { return *engine_; }
  base::Mutex& mutex() const RETURNS_MUTEX(mutex_) { return mutex_; }
  const Settings& settings() const { return settings_; }

 private:
  Result<Transfer> Start(Operation::Kind kind, const From& from, Tag tag, Landing landing);
  void Drive(const Condition& ready, Duration end) REQUIRES(mutex_);
  void Keep();  // the life of the keeper

  const Settings settings_;  // constant after construction
  base::Clock& clock_;
  const bool time_passes_;
  const std::unique_ptr<base::Condition> changed_;  // something moved, or nobody drives: for who waits without driving
  const std::unique_ptr<base::Condition> stirred_;  // for the keeper

  mutable base::Mutex mutex_;
  const std::unique_ptr<Protocol> engine_;  // under the mutex, but for who its members are
  int waiting_ GUARDED_BY(mutex_) = 0;
  bool driven_ GUARDED_BY(mutex_) = false;  // one of the waiting moves the bytes
  bool stopping_ GUARDED_BY(mutex_) = false;
  Duration last_waited_ GUARDED_BY(mutex_){};

  std::optional<base::JobThread> jobs_;
  base::Thread keeper_;
};

}  // namespace freshet::fabric
