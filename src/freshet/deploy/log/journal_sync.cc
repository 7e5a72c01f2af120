// Bringing the journal to the disk, and what is done when the disk would not take it.

#include <algorithm>

#include "deploy/log/journal_part.h"

namespace freshet::deploy {

namespace {

std::uint64_t Observations(std::span<const Journal::Waiting> records) {
  return static_cast<std::uint64_t>(std::count_if(records.begin(), records.end(), [](const Journal::Waiting& record) {
    return record.kind == RecordKind::kObservation;
  }));
}

}  // namespace

std::uint64_t Journal::WaitingObservations() const { return Observations(waiting_records_); }

// What was committed is not on the disk yet.
void Journal::NoteUnsynced() {
  if (options_.durability == Durability::kAlways) return;  // it is
  dirty_ = true;
  if (options_.durability == Durability::kNone) return;
  for (Waiting record : waiting_records_) {
    record.offset += unsynced_.size();
    unsynced_records_.push_back(record);
  }
  unsynced_ += waiting_;
}

// Syncs the end of the journal that an earlier process wrote, and may not have come to sync. If that fails nobody has
// the records any more to write them again.
Result<void> Journal::SyncTail() {
  if (tail_unsynced_.load())
    return Error{Code::kIo, Str(tail_,
                                ": what was written before the last start could not be synced; nothing is taken "
                                "until the next")};
  if (tail_.empty()) return {};
  const auto file = TRY(env_.files.OpenAppend(tail_));
  auto synced = file->Sync();
  tail_unsynced_ = !synced.ok();
  if (synced.ok()) tail_.clear();
  return synced;
}

Result<void> Journal::Sync() {
  const base::Lock syncing(sync_mutex_);  // what somebody else is syncing counts once that has succeeded
  TRY(SyncTail());
  if (sync_failed_.load())
    return Error{Code::kIo, Str(options_.directory,
                                ": a sync failed, and what had not been synced was not yet written "
                                "again; nothing is acknowledged until then")};
  std::shared_ptr<base::AppendFile> file;
  std::size_t bytes = 0, records = 0;
  {
    const base::Lock lock(mutex_);
    if (!dirty_ || sync_file_ == nullptr) return {};
    file = sync_file_;
    bytes = unsynced_.size();
    records = unsynced_records_.size();
    dirty_ = false;
  }
  auto synced = file->Sync();
  const base::Lock lock(mutex_);
  if (!synced.ok()) {
    dirty_ = true;
    sync_failed_ = options_.durability == Durability::kEverySec;
    return synced;
  }
  unsynced_.erase(0, bytes);
  unsynced_records_.erase(unsynced_records_.begin(), unsynced_records_.begin() + static_cast<std::ptrdiff_t>(records));
  for (Waiting& record : unsynced_records_) record.offset -= bytes;
  return {};
}

Result<void> Journal::Repair() { return sync_failed_.load() ? WriteAgain() : Result<void>(); }

// After a sync that failed nobody knows what of the records since the one before is on the disk, and another that
// succeeds does not tell: the system may have marked the pages it could not write as clean (Rebello et al., "Can
// Applications Recover from fsync Failures?"). So they are written once more, from memory, into a segment of their own,
// which is synced. The end of the segment before, which holds them too, does not count from then on.
// (The checker does not know that only this thread commits, so that what has not been synced stays as it is.)
Result<void> Journal::WriteAgain() {
  const base::Lock syncing(sync_mutex_);
  const std::shared_ptr<Part> old = last_;
  CHECK(old != nullptr && !unsynced_records_.empty());
  const SegmentHead head{unsynced_records_.front().sequence, old->end_number() - Observations(unsynced_records_),
                         salt_};
  const std::string path = PathOf(head.first_sequence);
  const bool replaces = old->segment->head().first_sequence == head.first_sequence;
  const std::string draft = path + ".draft";  // until it is whole: from then on what stands there counts
  const std::string bytes = head.Encode() + unsynced_;
  std::shared_ptr<base::AppendFile> file = TRY(env_.files.OpenAppend(draft));
  TRY(file->Truncate(0));
  TRY(file->Append(std::as_bytes(std::span(bytes))));
  TRY(env_.faults.Hit("journal.written_again"));
  TRY(file->Sync());
  TRY(env_.files.Rename(draft, path));
  TRY(env_.files.SyncDirectoryOf(path));
  auto part = std::make_shared<Part>();
  part->segment = TRY(Segment::Open(env_.files, path));
  part->first_number = head.first_number;
  part->bytes = head.bytes();
  part->Add(unsynced_records_, unsynced_.size());
  env_.log.Warn("journal written again", "from", head.first_sequence, "records", unsynced_records_.size(), "reason",
                "a sync had failed");
  {
    const base::Lock lock(mutex_);
    old->TakeOff(unsynced_records_, unsynced_.size());
    parts_.insert(std::find(parts_.begin(), parts_.end(), old) + 1, part);  // data sets may have come behind it
    segments_.push_back(part);
    if (replaces) {
      std::erase(parts_, old);
      std::erase(segments_, old);
    }
    last_ = part;
    file_ = sync_file_ = std::move(file);
    unsynced_.clear();
    unsynced_records_.clear();
    dirty_ = torn_ = false;
    sync_failed_ = false;
  }
  if (replaces) return {};
  // Without an index the next start finds out by the head of the segment that follows.
  if (auto finished = WriteIndex(*old); !finished.ok())
    env_.log.Warn("journal index not written", "reason", finished.error().text);
  return {};
}

}  // namespace freshet::deploy
