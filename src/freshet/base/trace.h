#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace freshet::base {

// What one worker did when: spans of time by name, to be looked at in a viewer of Chrome's trace format (Perfetto,
// chrome://tracing). Whoever may record is handed a pointer, which is null when nobody asked for a trace; then nothing
// is measured.
//
// A span belongs to a track, a row of the picture. Tracks stand for roles, not for threads: what is done in order is
// one track, whatever thread does it, so that spans of a track follow or contain one another.
//
// Threads:   any. Ownership: borrows the clock; names are literals. Blocking: never, but for a short lock.
// Bounds:    keeps the first `most` spans and counts the rest.
class Trace {
 public:
  static constexpr std::uint32_t kTraining = 0, kFabric = 1, kThreads = 2;  // kThreads + k: thread k of several
  static constexpr std::uint64_t kNone = UINT64_MAX;

  // What else is told of a span; kNone and "" are left out.
  struct Details {
    std::uint64_t step = kNone;    // number of the update
    std::uint64_t bucket = kNone;  // of the gradient
    std::uint64_t bytes = kNone;
    std::string algorithm = {};
    std::string note = {};  // a sentence
  };

  explicit Trace(const Clock& clock, std::size_t most = 200'000) : clock_(clock), most_(most) {}

  const Clock& clock() const { return clock_; }
  void Add(const char* name, std::uint32_t track, Clock::Duration begin, Clock::Duration end, Details details);

  std::size_t size() const;
  std::uint64_t dropped() const;

  // The events as elements of a JSON array, separated by commas: names of the process and its tracks, then the spans.
  // `time` brings moments of this worker's clock to the one the picture is drawn by.
  std::string ToJson(int process, std::string_view process_name, std::string_view label,
                     const std::function<Clock::Duration(Clock::Duration)>& time) const;

 private:
  struct Event {
    const char* name;
    std::uint32_t track;
    Clock::Duration begin, length;
    Details details;
  };

  const Clock& clock_;
  const std::size_t most_;

  mutable Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
  std::uint64_t dropped_ GUARDED_BY(mutex_) = 0;
};

// Records the time from its making to its end; nothing when `trace` is null.
class Span {
 public:
  Span(Trace* trace, const char* name, std::uint32_t track, Trace::Details details = {})
      : trace_(trace), name_(name), track_(track) {
    if (trace_ == nullptr) return;
    details_ = std::move(details);
    begin_ = trace_->clock().Now();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (trace_ != nullptr) trace_->Add(name_, track_, begin_, trace_->clock().Now(), std::move(details_));
  }

 private:
  Trace* const trace_;
  const char* const name_;
  const std::uint32_t track_;
  Trace::Details details_;
  Clock::Duration begin_{};
};

}  // namespace freshet::base
