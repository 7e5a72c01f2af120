#include "strategy/server/panel.h"

#include <utility>

#include "base/option.h"
#include "base/str.h"

namespace freshet::strategy::server {

void Panel::Begin(const Synchrony& now, Check check) {
  const base::Lock lock(mutex_);
  check_ = std::move(check);
  told_.now = now;
}

// What was wished meanwhile has come too late: who wishes it still says so again.
void Panel::Changed(const Synchrony& now, std::uint64_t clock) {
  const base::Lock lock(mutex_);
  told_.now = now;
  told_.wished.reset();
  told_.since = clock;
  ++told_.changes;
}

std::optional<Synchrony> Panel::wished() const {
  const base::Lock lock(mutex_);
  return told_.wished;
}

void Panel::SetClock(std::uint64_t clock) {
  const base::Lock lock(mutex_);
  told_.count.clock = clock;
}

void Panel::AddUpdates(std::uint64_t more) {
  const base::Lock lock(mutex_);
  told_.count.updates += more;
}

Result<void> Panel::Wish(std::string_view text) {
  if (text.empty()) return Error{Code::kInvalid, Str(Option("synchrony"), ": found an empty text, expected one")};
  const Synchrony to = TRY(Synchrony::Parse(text));
  const base::Lock lock(mutex_);
  if (!told_.now)
    return Error{Code::kInvalid, Str("this job has no synchrony to change: it does not train with ", Option("strategy"),
                                     " server, or has not begun yet")};
  TRY(check_(to));
  told_.wished.reset();
  if (to != *told_.now) told_.wished = to;
  return {};
}

Panel::Told Panel::Tell() const {
  const base::Lock lock(mutex_);
  return told_;
}

}  // namespace freshet::strategy::server
