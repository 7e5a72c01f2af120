#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "deploy/log/record_log.h"
#include "deploy/log/segment.h"
#include "deploy/ranges.h"

namespace freshet::deploy {

// When an observation counts as kept. No level acknowledges before write(2) has taken the bytes, so that the end of the
// process, however sudden, loses nothing; a power loss may cost what was not yet synced.
enum class Durability {
  kAlways,    // acknowledged after fdatasync
  kEverySec,  // synced once a second; after a sync that failed, not until all since was written again and synced
  kNone,      // synced when the system likes
};
Result<Durability> ParseDurability(std::string_view text);

struct JournalOptions {
  std::string directory;
  Durability durability = Durability::kEverySec;
  std::uint64_t segment_bytes = 64 << 20;
  std::uint64_t retain_bytes = 0;  // older segments beyond this are dropped; 0: none
  std::int64_t retain_seconds =
      0;  // likewise those whose last observation or prediction is older; none is in the future
};

// The log of a deployment on disk: records in segment files, appended by one thread and read by any. It is also the
// history of observations. docs/formats.md describes the files.
//
// Threads:  Append, Commit, Repair, Adopt and SkipTo belong to one thread; reading, Sync and Retain to any.
// Failure:  Open: kBusy when another process has it, kInvalid when a newer program wrote it, kIo; damaged places are
//           passed over and listed in damages(), a torn tail (what a crash was writing) is cut off. Commit: kIo, and
//           then none of the records waiting is in the journal, now or after a restart (but if what was half written
//           could not be cut off either, only once a later Commit has succeeded); a later Commit may succeed again.
//           Once a Sync has failed, Commit and Sync do until the records it should have synced are written again.
// Memory:   under kEverySec what has not been synced yet, some 64 MB at most.
class Journal final : public RecordLog {
 public:
  static Result<std::unique_ptr<Journal>> Open(const base::Env& env, JournalOptions options);
  ~Journal() override;

  std::uint64_t Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash, std::int64_t time) override;
  Result<void> Commit() override;
  // Syncs what has been committed, if there is anything new. Waits for another thread that does.
  Result<void> Sync();
  // Nothing is taken: a sync has failed. Repair writes again what it should have brought to the disk; Commit does so
  // too before anything else. Where that cannot help, since an earlier process wrote it, a restart is needed.
  bool read_only() const { return sync_failed_.load() || tail_unsynced_.load(); }
  Result<void> Repair();
  // Later records have at least this sequence, and observations this number: for a journal that lost its end, which
  // others remember. Nothing may be waiting.
  void SkipTo(std::uint64_t sequence, std::uint64_t number);

  std::uint64_t next_sequence() const override { return next_; }
  std::uint64_t next_number() const override { return next_number_; }
  std::uint64_t end_sequence() const override { return end_sequence_.load(std::memory_order_acquire); }
  std::uint64_t first_sequence() const;
  // No record from this time on stands before this sequence, by whole segments.
  std::uint64_t SequenceSince(std::int64_t time) const;
  std::uint64_t bytes() const;

  Result<void> Scan(std::uint64_t from, const std::function<Result<void>(const Record& record)>& visit) const override;
  Result<void> Adopt(const std::string& path, std::uint64_t first_number, std::uint64_t rows) override;
  // Instead of Adopt, when the file of a data set that joined before is damaged or gone: its numbers stay taken,
  // reading leaves them out, and it counts as a damaged place.
  void PassOverDataset(const std::string& path, std::uint64_t first_number, std::uint64_t rows, const Error& why);
  void Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) override;

  std::uint64_t first() const override;
  std::uint64_t end() const override { return end_number_.load(std::memory_order_acquire); }
  Result<void> Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const override;

  // Drops segments by size or age, all of whose records are before `needed`. Returns how many.
  Result<int> Retain(std::uint64_t needed, std::int64_t now);

  // What Open found, and reading since: how many places, and the first few hundred of them.
  std::uint64_t damaged_places() const;
  std::vector<Damage> damages() const;
  // Hashes of the last `most` ids in the journal, oldest first. Reads the index files of finished segments.
  Result<std::vector<std::uint64_t>> RecentIds(std::size_t most) const;

  // A record that was appended and where it stands among others.
  struct Waiting {
    std::uint64_t sequence, offset, id_hash;
    RecordKind kind;
    std::int64_t time;
  };

 private:
  struct Part;
  Journal(const base::Env& env, JournalOptions options);
  Result<void> OpenSegments();
  Result<std::unique_ptr<Segment>> OpenSegment(const std::string& path) const;
  Result<std::shared_ptr<Part>> OpenPart(std::unique_ptr<Segment> segment, bool last, std::uint64_t end);
  Result<void> MakeIndex(Part& part, bool last, std::uint64_t end);
  Result<void> PassOver(const std::string& path, bool last, const Error& why);
  void Report(const Damage& damage) const;
  Result<void> ScanPart(const Part& part, std::uint64_t bytes, const Segment::Visit& visit) const;
  Result<void> MakeReady();
  Result<void> Write();
  Result<void> StartSegment();
  Result<void> Seal();
  Result<void> WriteIndex(Part& part);
  Result<void> WriteAgain() UNCHECKED_LOCKS;
  Result<void> SyncTail() REQUIRES(sync_mutex_);
  void NoteUnsynced() REQUIRES(mutex_);
  Result<void> CountFutureAsNow(std::int64_t now);
  std::uint64_t WaitingObservations() const;
  std::shared_ptr<Part> PartOf(std::uint64_t number) const REQUIRES(mutex_);
  std::string PathOf(std::uint64_t sequence) const;

  const base::Env env_;
  const JournalOptions options_;
  std::unique_ptr<base::FileLock> lock_;

  // The appending thread's.
  std::uint64_t next_ = 1, next_number_ = 0;
  std::uint64_t salt_ = 0;  // of the segments it writes
  std::string waiting_;
  std::vector<Waiting> waiting_records_;
  std::shared_ptr<Part> last_;              // the segment being written; null: the next commit starts one
  std::shared_ptr<base::AppendFile> file_;  // of it; null before the first append
  bool torn_ = false;                       // what a commit could not write may still stand at its end
  bool full_ = false;                       // the next records stand in another

  std::atomic<std::uint64_t> end_sequence_{1}, end_number_{0};
  std::atomic<bool> sync_failed_{false};    // and what it should have synced is not written again yet
  std::atomic<bool> tail_unsynced_{false};  // nor can it be: an earlier process wrote it

  base::Mutex sync_mutex_;                    // one sync at a time; taken before mutex_
  std::string tail_ GUARDED_BY(sync_mutex_);  // the segment that an earlier process was writing, until it is synced

  mutable base::Mutex mutex_;  // guards parts' index as well
  mutable std::vector<Damage> damages_ GUARDED_BY(mutex_);
  mutable std::set<std::pair<std::string, std::uint64_t>> damaged_ GUARDED_BY(mutex_);  // file and offset
  bool dirty_ GUARDED_BY(mutex_) = false;                                               // there is something to sync
  std::string unsynced_ GUARDED_BY(mutex_);                         // committed since the last sync, under kEverySec
  std::vector<Waiting> unsynced_records_ GUARDED_BY(mutex_);        // in it
  std::vector<std::shared_ptr<Part>> segments_ GUARDED_BY(mutex_);  // by sequence
  std::vector<std::shared_ptr<Part>> parts_ GUARDED_BY(mutex_);     // segments and data sets by number
  Ranges discarded_ GUARDED_BY(mutex_);                             // sequences
  std::shared_ptr<base::AppendFile> sync_file_ GUARDED_BY(mutex_);
};

// Writes a data set in the form that Journal::Adopt takes. It has its name once Close has succeeded; if that never
// happens nothing is left of it.
class DatasetWriter {
 public:
  static Result<std::unique_ptr<DatasetWriter>> Create(base::Files& files, const std::string& path);
  ~DatasetWriter();
  Result<void> Append(const data::Batch& batch);
  Result<std::uint64_t> Close();  // syncs; returns the number of rows
  // Removes one that was written and is not to be adopted after all.
  static void Remove(base::Files& files, const std::string& path);

 private:
  DatasetWriter(base::Files& files, std::string path, SegmentHead head);
  base::Files& files_;
  const std::string path_, draft_;
  const SegmentHead head_;
  std::unique_ptr<base::OutputFile> file_;
  SegmentIndex index_;
  std::string bytes_, payload_;
  std::uint64_t offset_;
};

}  // namespace freshet::deploy
