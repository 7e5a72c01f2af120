#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace freshet::strategy::ring {

// Where the time of laps round a ring went, as one member sees it: waiting for others who were not as far, or for what was
// on its way. Who sends tells when (sent), counted from the end of the laps before, which is about the same moment for all
// if nobody can end them before everybody has begun them; so nobody needs the others' clocks.
//
// Threads: one.
class LapClock {
 public:
  explicit LapClock(const base::Clock& clock) : clock_(clock) {}

  void Begin() {
    if (!ended_) ended_ = clock_.Now();
    waited_ = exchanged_ = {};
  }
  // Seconds from the end of the laps before, to be told with what is sent now.
  float sent() const { return static_cast<float>(base::Seconds(clock_.Now() - *ended_)); }
  // What was waited for since `begun` has come. Nothing can come before it was sent: until then it is the sender who was
  // waited for.
  void Came(base::Clock::Duration begun, float sent) {
    const auto took = clock_.Now() - begun;
    const auto left = *ended_ + std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<float>(sent));
    const auto waited = std::clamp(left - begun, base::Clock::Duration{}, took);
    waited_ += waited;
    exchanged_ += took - waited;
  }
  // What was sent, which was waited for since `begun`, has been taken.
  void Went(base::Clock::Duration begun) { exchanged_ += clock_.Now() - begun; }
  // All has come.
  base::Clock::Duration End() { return *(ended_ = clock_.Now()); }

  // Since Begin.
  base::Clock::Duration waited() const { return waited_; }
  base::Clock::Duration exchanged() const { return exchanged_; }

 private:
  const base::Clock& clock_;
  std::optional<base::Clock::Duration> ended_;
  base::Clock::Duration waited_{}, exchanged_{};
};

}  // namespace freshet::strategy::ring
