#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/env.h"
#include "deploy/ranges.h"
#include "deploy/record_log.h"
#include "deploy/segment.h"

namespace freshet::deploy {

// When an observation counts as kept. No level acknowledges before write(2) has taken the bytes, so that the end of the
// process, however sudden, loses nothing; a power loss may cost what was not yet synced.
enum class Durability {
  kAlways,    // acknowledged after fdatasync
  kEverySec,  // synced once a second
  kNone,      // synced when the system likes
};
Result<Durability> ParseDurability(std::string_view text);

struct JournalOptions {
  std::string directory;
  Durability durability = Durability::kEverySec;
  std::uint64_t segment_bytes = 64 << 20;
  std::uint64_t retain_bytes = 0;   // older segments beyond this are dropped; 0: none
  std::int64_t retain_seconds = 0;  // likewise those whose last observation or prediction is older
};

// The log of a deployment on disk: records in segment files, appended by one thread and read by any. It is also the
// history of observations. docs/formats.md describes the files.
//
// Threads:  Append, Commit, Adopt and SkipTo belong to one thread; reading, Sync and Retain to any.
// Failure:  Open: kBusy when another process has it, kIo; damaged places are passed over and listed in damages(), a
//           torn tail (what a crash was writing) is cut off. Commit: kIo, and then none of the records waiting is in
//           the journal, now or after a restart (but if what was half written could not be cut off either, only once a
//           later Commit has succeeded); a later Commit may succeed again.
class Journal final : public RecordLog {
 public:
  static Result<std::unique_ptr<Journal>> Open(const base::Env& env, JournalOptions options);
  ~Journal() override;

  std::uint64_t Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash, std::int64_t time) override;
  Result<void> Commit() override;
  // Syncs what has been committed, if there is anything new.
  Result<void> Sync();
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
  void Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) override;

  std::uint64_t first() const override;
  std::uint64_t end() const override { return end_number_.load(std::memory_order_acquire); }
  Result<void> Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const override;

  // Drops segments by size or age, all of whose records are before `needed`. Returns how many.
  Result<int> Retain(std::uint64_t needed, std::int64_t now);

  // What Open found, and reading since.
  std::vector<Damage> damages() const;
  // Hashes of the last `most` ids in the journal, oldest first. Reads the index files of finished segments.
  Result<std::vector<std::uint64_t>> RecentIds(std::size_t most) const;

 private:
  struct Part;
  Journal(const base::Env& env, JournalOptions options);
  Result<void> OpenSegments();
  Result<std::shared_ptr<Part>> OpenPart(const std::string& path, bool last);
  Result<void> MakeIndex(Part& part, bool last);
  Result<void> PassOver(const std::string& path, bool last, const Error& why);
  void Report(const Damage& damage) const;
  Result<void> ScanPart(const Part& part, std::uint64_t bytes, const Segment::Visit& visit) const;
  Result<void> MakeReady();
  Result<void> Write();
  Result<void> StartSegment();
  Result<void> Seal();
  std::uint64_t WaitingObservations() const;
  std::shared_ptr<Part> PartOf(std::uint64_t number) const;
  std::string PathOf(std::uint64_t sequence) const;

  const base::Env env_;
  const JournalOptions options_;
  std::unique_ptr<base::FileLock> lock_;

  // The appending thread's.
  std::uint64_t next_ = 1, next_number_ = 0;
  std::string waiting_;
  struct Waiting {
    std::uint64_t sequence, offset, id_hash;  // offset: within waiting_
    RecordKind kind;
    std::int64_t time;
  };
  std::vector<Waiting> waiting_records_;
  std::shared_ptr<Part> last_;              // the segment being written; null: the next commit starts one
  std::shared_ptr<base::AppendFile> file_;  // of it; null before the first append
  bool torn_ = false;                       // what a commit could not write may still stand at its end
  bool full_ = false;                       // the next records stand in another

  std::atomic<std::uint64_t> end_sequence_{1}, end_number_{0};
  std::atomic<bool> unsynced_{false};

  mutable std::mutex mutex_;  // guards everything below, and parts' index
  mutable std::vector<Damage> damages_;
  std::vector<std::shared_ptr<Part>> segments_;  // by sequence
  std::vector<std::shared_ptr<Part>> parts_;     // segments and data sets by number
  Ranges discarded_;                             // sequences
  std::shared_ptr<base::AppendFile> sync_file_;
};

// Writes a data set in the form that Journal::Adopt takes.
class DatasetWriter {
 public:
  static Result<std::unique_ptr<DatasetWriter>> Create(base::Files& files, const std::string& path);
  Result<void> Append(const data::Batch& batch);
  Result<std::uint64_t> Close();  // syncs; returns the number of rows

 private:
  DatasetWriter(base::Files& files, std::string path, std::unique_ptr<base::OutputFile> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}
  base::Files& files_;
  const std::string path_;
  const std::unique_ptr<base::OutputFile> file_;
  SegmentIndex index_{.end_sequence = 1, .bytes = SegmentHead::kBytes, .last_time = 0, .offsets = {}, .ids = {}};
  std::string bytes_, payload_;
  std::uint64_t offset_ = SegmentHead::kBytes;
};

}  // namespace freshet::deploy
