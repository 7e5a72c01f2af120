#include "fabric/threads/shared_sum.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "fabric/collectives/collectives.h"
#include "fabric/collectives/sum.h"
#include "fabric/threads/group.h"

namespace freshet::fabric {
namespace {

constexpr std::size_t kLineFloats = 64 / sizeof(float);
// With a core for each member a second meeting costs less than reading what everybody else wrote.
constexpr std::size_t kShortBytesAlone = 512;

}  // namespace

SharedSum::SharedSum(Group& group)
    : group_(group),
      short_bytes_(group.size() > group.cores() ? kMostShortBytes : kShortBytesAlone),
      stands_(std::make_unique<Stand[]>(static_cast<std::size_t>(group.size()))),
      members_(std::make_unique<Member[]>(static_cast<std::size_t>(group.size()))) {
  const auto size = static_cast<std::size_t>(group.size());
  for (std::size_t rank = 0; rank < size; ++rank) {
    members_[rank].sources.resize(size);
    members_[rank].targets.resize(size);
  }
}

Result<void> SharedSum::Run(int rank, std::span<float> values) {
  Member& mine = members_[static_cast<std::size_t>(rank)];
  const base::Lock lock(mine.mutex);
  const std::size_t turn = mine.turn++ % 2;
  stands_[static_cast<std::size_t>(rank)].offers[turn] = {values.data(), values.size()};
  const bool is_short = values.size_bytes() <= short_bytes_;
  if (is_short) std::copy(values.begin(), values.end(), mine.copies[turn]);
  TRY(Meet(rank));
  TRY(SameLength(rank, turn));
  if (is_short) {
    SumCopies(rank, turn, values);
    return {};
  }
  TRY(SumPart(rank, turn, values.size()));
  return Meet(rank);
}

Result<void> SharedSum::Meet(int rank) {
  Stand& mine = stands_[static_cast<std::size_t>(rank)];
  const std::uint64_t meeting = mine.met.load(std::memory_order_relaxed) + 1;
  mine.met.store(meeting);
  const int size = group_.size();
  for (int other = 0; other < size; ++other) group_.bell(other).Ring();
  int missing = 0;  // all below have come
  const auto all_came = [&] {
    while (missing < size && stands_[static_cast<std::size_t>(missing)].met.load() >= meeting) ++missing;
    return missing == size;
  };
  // Who has come may leave, and the group may fail when all have come: neither undoes the meeting.
  const auto ready = [&] { return all_came() || group_.sums_failed() || group_.gone(missing) || group_.gone(rank); };
  const base::Clock::Duration timeout = group_.options().timeout;
  const bool in_time = group_.bell(rank).Await(ready, group_.patience(), group_.clock(), timeout);
  if (all_came()) return {};
  if (group_.sums_failed()) return GiveUp(group_.sums_failure());
  const std::string doing = Str(group_.Who(rank), " waited for ", group_.Who(missing), " to join an all-reduce");
  if (in_time) return GiveUp(group_.LeftWhile(group_.gone(rank) ? rank : missing, doing));
  const Error late{Code::kTimeout, Str(group_.Who(missing), " did not join the all-reduce of ", group_.Who(rank),
                                       " within ", Fixed(base::Seconds(timeout), 1), " s: is it still running?")};
  (void)GiveUp({Code::kPeerLost, Str(group_.Who(rank), " gave up: ", late.text)});
  return late;
}

Result<void> SharedSum::SameLength(int rank, std::size_t turn) const {
  const std::size_t length = stands_[static_cast<std::size_t>(rank)].offers[turn].length;
  for (int other = 0; other < group_.size(); ++other) {
    const std::size_t theirs = stands_[static_cast<std::size_t>(other)].offers[turn].length;
    if (theirs == length) continue;
    return Error{Code::kInvalid, Str("all-reduce of ", length, " floats by ", group_.Who(rank), " but of ", theirs,
                                     " by ", group_.Who(other), ": all members give the same length")};
  }
  return {};
}

void SharedSum::SumCopies(int rank, std::size_t turn, std::span<float> values) {
  Member& mine = members_[static_cast<std::size_t>(rank)];
  for (std::size_t other = 0; other < mine.sources.size(); ++other) mine.sources[other] = members_[other].copies[turn];
  float* const target = values.data();
  SumInto(mine.sources, {&target, 1}, values.size());
}

Result<void> SharedSum::SumPart(int rank, std::size_t turn, std::size_t length) {
  Member& mine = members_[static_cast<std::size_t>(rank)];
  const std::size_t lines = (length + kLineFloats - 1) / kLineFloats;
  const std::size_t begin = std::min(length, ChunkBegin(lines, rank, group_.size()) * kLineFloats);
  const std::size_t end = std::min(length, ChunkBegin(lines, rank + 1, group_.size()) * kLineFloats);
  for (std::size_t other = 0; other < mine.sources.size(); ++other) {
    mine.targets[other] = stands_[other].offers[turn].values + begin;
    mine.sources[other] = mine.targets[other];
  }
  // Either we see that a member gave up and touch nothing, or it sees that we are writing and waits.
  Stand& stand = stands_[static_cast<std::size_t>(rank)];
  stand.writing.store(true);
  const bool failed = group_.sums_failed();
  if (!failed) SumInto(mine.sources, mine.targets, end - begin);
  stand.writing.store(false);
  if (failed) return GiveUp(group_.sums_failure());
  return {};
}

// Ends the sums, and returns when nobody writes to the values of others any more: a matter of milliseconds.
Error SharedSum::GiveUp(Error why) {
  Error reason = group_.FailSums(std::move(why));
  for (int other = 0; other < group_.size(); ++other) {
    while (stands_[static_cast<std::size_t>(other)].writing.load()) std::this_thread::yield();
  }
  return reason;
}

}  // namespace freshet::fabric
