#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "strategy/server/synchrony.h"

namespace freshet::strategy::server {

// What a member of a running parameter server shows to who asks from outside, and what may be wished there: that all go on
// in another synchrony.
//
// Threads: any. Ownership: what checks wishes must be good for as long as there is somebody to wish.
class Panel {
 public:
  // How far this member has come, as a worker and as a server.
  struct Count {
    std::uint64_t clock = 0, updates = 0;
  };
  struct Told {
    std::optional<Synchrony> now, wished;  // none: no parameter server runs here, or none yet
    std::uint64_t since = 0;               // the clock at which all began with that
    std::uint64_t changes = 0;
    Count count;
  };
  using Check = std::function<Result<void>(const Synchrony& to)>;

  // By the member: it runs in this synchrony; others are refused for what that says. Then: all go on in that one.
  void Begin(const Synchrony& now, Check check);
  void Changed(const Synchrony& now, std::uint64_t clock);
  std::optional<Synchrony> wished() const;  // other than what it runs in
  void SetClock(std::uint64_t clock);
  void AddUpdates(std::uint64_t more);

  // By who asks. kInvalid for what this job cannot do.
  Result<void> Wish(std::string_view synchrony);
  Told Tell() const;

 private:
  mutable base::Mutex mutex_;
  Check check_ GUARDED_BY(mutex_);
  Told told_ GUARDED_BY(mutex_);
};

}  // namespace freshet::strategy::server
