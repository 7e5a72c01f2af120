#include "fabric/threads/group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/cores.h"
#include "fabric/threads/mailroom.h"
#include "fabric/threads/shared_sum.h"

namespace freshet::fabric {
namespace {

// Looking is short even so: two threads that the system has put on one core, and that only look and sleep, are never
// seen wanting it at the same time, and would stay there. Yielding they are.
constexpr Patience kACoreForEach{.looks = 200, .yields = 300};
constexpr Patience kCrowded{.looks = 20, .yields = 20};

}  // namespace

Group::Group(int size, const base::Clock& clock, ThreadsOptions options)
    : size_(size),
      clock_(clock),
      options_(std::move(options)),
      cores_(options_.cores > 0 ? options_.cores : base::AvailableCores()),
      bells_(std::make_unique<Bell[]>(static_cast<std::size_t>(size))),
      gone_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(size))),
      threads_(size) {
  if (options_.hosts.empty()) options_.hosts.assign(static_cast<std::size_t>(size), "localhost");
  CHECK(static_cast<int>(options_.hosts.size()) == size);
  if (dynamic_cast<const base::SystemClock*>(&clock) == nullptr)
    for (int rank = 0; rank < size; ++rank) bell(rank).LiveBy(clock);
  for (int rank = 0; rank < size; ++rank) mail_.push_back(std::make_unique<Mailroom>(*this, rank));
  sum_ = std::make_unique<SharedSum>(*this);
}

Group::~Group() = default;

std::string Group::Who(int rank) const { return Str("rank ", rank, " (", host(rank), ")"); }

Patience Group::patience() const {
  return threads_.load(std::memory_order_relaxed) <= cores_ ? kACoreForEach : kCrowded;
}

bool Group::AllGone(int rank, std::span<const int> among) const {
  if (!among.empty()) return std::all_of(among.begin(), among.end(), [&](int other) { return gone(other); });
  for (int other = 0; other < size_; ++other) {
    if (other != rank && !gone(other)) return false;
  }
  return true;
}

void Group::Leave(int rank) {
  Lose({.rank = rank, .left = true, .why = {Code::kPeerLost, Str(Who(rank), " has left the group")}});
}

void Group::Lose(Loss loss) {
  {
    const base::Lock lock(mutex_);
    std::atomic<bool>& gone = gone_[static_cast<std::size_t>(loss.rank)];
    if (gone.load()) return;
    losses_.push_back(std::move(loss));
    gone.store(true);
  }
  RingAll();
}

std::vector<Loss> Group::LossesBut(int rank) const {
  const base::Lock lock(mutex_);
  std::vector<Loss> losses = losses_;
  std::erase_if(losses, [&](const Loss& loss) { return loss.rank == rank; });
  return losses;
}

Error Group::WhyGone(int rank) const {
  const base::Lock lock(mutex_);
  const auto found = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& loss) { return loss.rank == rank; });
  CHECK(found != losses_.end());
  return found->why;
}

Error Group::Fail(Error why) {
  {
    const base::Lock lock(mutex_);
    if (failed_.load()) return failure_;
    failure_ = {Code::kPeerLost, std::move(why.text)};
    if (!sums_failed_.load()) sums_failure_ = failure_;
    failed_.store(true);
    sums_failed_.store(true);
  }
  RingAll();
  return failure();
}

Error Group::failure() const {
  const base::Lock lock(mutex_);
  return failure_;
}

Error Group::FailSums(Error why) {
  if (!reports()) return Fail(std::move(why));
  {
    const base::Lock lock(mutex_);
    if (sums_failed_.load()) return sums_failure_;
    sums_failure_ = {Code::kPeerLost, std::move(why.text)};
    sums_failed_.store(true);
  }
  RingAll();
  return sums_failure();
}

Error Group::sums_failure() const {
  const base::Lock lock(mutex_);
  return sums_failure_;
}

Error Group::LeftWhile(int rank, const std::string& doing) const {
  if (reports()) return {Code::kPeerLost, Str(WhyGone(rank).text, "; ", doing)};
  return {Code::kPeerLost, Str(Who(rank), " is gone: it left while ", doing)};
}

void Group::RingAll() const {
  for (int rank = 0; rank < size_; ++rank) bell(rank).Ring();
}

}  // namespace freshet::fabric
