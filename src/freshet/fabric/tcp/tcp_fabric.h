#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/tcp/engine.h"
#include "fabric/tcp/options.h"

namespace freshet::fabric {

// A fabric of processes, on one host or several, that are connected by TCP, each with each. Long messages between
// processes of one host go through memory they share.
//
// Members prove to each other that they have the job's token before anything else; what follows is checked against
// damage, and encrypted where TcpOptions::tls says so. Nobody listens once the group stands.
//
// Threads:   as Fabric says. Who waits moves the bytes itself: it looks for a short while, then sleeps. A thread of the
//            fabric does so while nobody waits, sends heartbeats and notices the deaths of others; a second one is
//            started for the first Post.
// Blocking:  Connect, until all members are there or TcpOptions::stop is set; the destructor, at most a second, until
//            the last words are out.
// Failure:   a member that dies is lost at once, one that is frozen or cut off after heartbeat_misses heartbeats. Who
//            notices tells the others, so that all name the same. A member that leaves in order (its fabric is
//            destroyed) is no loss to who wants nothing of it. A message longer than its receive is kInvalid for the
//            receiver, and for its sender too unless it was short and is not waited for any more. A receive that timed
//            out may be started again; a send that timed out half way ends the group.
class TcpFabric final : public Fabric {
 public:
  struct Statistics {
    std::uint64_t bytes_sent = 0;    // through sockets
    std::uint64_t bytes_shared = 0;  // through shared memory
    int near = 0;                    // members on this host, this one included
    int sharing = 0;                 // of these, how many are reached through shared memory; fewer than
                                     // the other near ones: it was switched off, or could not be had
    std::uint64_t strangers = 0;     // turned away while the group came together
  };

  static Result<std::unique_ptr<TcpFabric>> Connect(const TcpOptions& options, base::Clock& clock);
  ~TcpFabric() override;

  std::string_view name() const override { return "tcp"; }
  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  std::uint64_t generation() const override { return options_.generation; }
  const std::string& host(int rank) const override { return engine_.host(rank); }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) override;
  Result<Transfer> StartReceive(int from, Tag tag, std::span<std::byte> into) override;
  Result<Transfer> StartReceiveAdd(int from, Tag tag, std::span<float> into) override;
  Result<Transfer> StartBorrow(int from, Tag tag) override;
  void Release(Transfer borrowed) override;
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) override;
  bool Done(Transfer transfer) override;
  void Post(std::function<void()> job) override;
  void Abort(const Error& why) override;
  std::uint64_t bytes_sent() const override;
  std::uint64_t bytes_shared() const override;
  Statistics statistics() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  TcpFabric(const TcpOptions& options, std::vector<tcp::Link> links, std::uint64_t strangers, base::Clock& clock);
  Result<Transfer> Start(Operation::Kind kind, int from, Tag tag, Landing landing);
  void Drive(Lock& lock, std::uint64_t id, base::Clock::Duration end);
  void Nap(Lock& lock, base::Clock::Duration longest);
  void Keep();     // the life of the keeper
  void RunJobs();  // and of the worker
  void LeaveInOrder();

  const TcpOptions options_;  // constant after construction
  base::Clock& clock_;
  const std::uint64_t strangers_;

  mutable std::mutex mutex_;         // guards everything below
  std::condition_variable changed_;  // something moved, or nobody drives: for those who wait without driving
  std::condition_variable stirred_;  // for the keeper
  tcp::Engine engine_;
  base::Clock::Duration spin_{};
  int waiting_ = 0;
  int asleep_ = 0;       // threads that sleep on the engine
  bool driven_ = false;  // one of the waiting moves the bytes
  bool stopping_ = false;
  base::Clock::Duration last_waited_{};
  std::deque<std::function<void()>> jobs_;
  std::condition_variable posted_;

  std::thread keeper_;
  std::thread worker_;
};

}  // namespace freshet::fabric
