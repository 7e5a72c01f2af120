#include "deploy/log/journal.h"

#include <algorithm>
#include <cstdio>

#include "base/secret_hash.h"
#include "deploy/log/journal_part.h"

namespace freshet::deploy {

Result<Durability> ParseDurability(std::string_view text) {
  if (text == "always") return Durability::kAlways;
  if (text == "everysec") return Durability::kEverySec;
  if (text == "none") return Durability::kNone;
  return Error{Code::kInvalid, Str("durability ", Quoted(text), ": expected always, everysec or none")};
}

Journal::Journal(const base::Env& env, JournalOptions options) : env_(env), options_(std::move(options)) {}
Journal::~Journal() = default;

std::string Journal::PathOf(std::uint64_t sequence) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%020llu.log", static_cast<unsigned long long>(sequence));
  return options_.directory + name;
}

std::uint64_t Journal::Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash, std::int64_t time) {
  waiting_records_.push_back({next_, waiting_.size(), id_hash, kind, time});
  AppendRecord(waiting_, next_, kind, payload, salt_);
  if (kind == RecordKind::kObservation) ++next_number_;
  return next_++;
}

Result<void> Journal::StartSegment() {
  const SegmentHead head{end_sequence_.load(), next_number_ - WaitingObservations(), salt_};
  const std::string path = PathOf(head.first_sequence);
  std::shared_ptr<base::AppendFile> file = TRY(env_.files.OpenAppend(path));
  TRY(file->Truncate(0));
  const std::string bytes = head.Encode();
  TRY(file->Append(std::as_bytes(std::span(bytes))));
  if (options_.durability != Durability::kNone) {
    TRY(file->Sync());
    TRY(env_.files.SyncDirectoryOf(path));
  }
  auto part = std::make_shared<Part>();
  part->segment = TRY(Segment::Open(env_.files, path));
  part->first_number = head.first_number;
  part->end_sequence = part->index.end_sequence = head.first_sequence;
  part->bytes = part->index.bytes = head.bytes();
  const base::Lock lock(mutex_);
  last_ = part;
  segments_.push_back(part);
  parts_.push_back(std::move(part));
  file_ = sync_file_ = std::move(file);
  return {};
}

// Finishes the segment being written.
Result<void> Journal::Seal() {
  if (options_.durability != Durability::kNone) TRY(Sync());
  TRY(WriteIndex(*last_));
  const base::Lock lock(mutex_);
  last_ = nullptr;
  file_ = nullptr;
  return {};
}

// From here on a part goes by the file of its index.
Result<void> Journal::WriteIndex(Part& part) {
  const std::string path = SegmentIndex::PathOf(part.segment->path());
  TRY(part.index.Write(env_.files, path));
  auto file = TRY(env_.files.OpenRead(path));
  const base::Lock lock(mutex_);
  part.index_file = std::move(file);
  part.index = {};
  return {};
}

// There is a segment to append to, its file ends with its last record, and no sync of it has failed.
Result<void> Journal::MakeReady() {
  {
    const base::Lock syncing(sync_mutex_);
    TRY(SyncTail());
  }
  if (sync_failed_.load()) TRY(WriteAgain());
  if (last_ != nullptr && file_ == nullptr) {  // going on after a restart
    std::shared_ptr<base::AppendFile> file = TRY(env_.files.OpenAppend(last_->segment->path()));
    const base::Lock lock(mutex_);
    file_ = sync_file_ = std::move(file);
  }
  if (torn_) TRY(file_->Truncate(last_->bytes));
  torn_ = false;
  if (last_ != nullptr && full_ && last_->end_sequence == last_->segment->head().first_sequence) {
    const base::Lock lock(mutex_);  // it holds nothing: the next, which may have its name, takes its place
    std::erase(segments_, last_);
    std::erase(parts_, last_);
    last_ = nullptr;
    file_ = nullptr;
  }
  if (last_ != nullptr && (full_ || last_->bytes >= options_.segment_bytes)) TRY(Seal());
  full_ = false;
  return last_ == nullptr ? StartSegment() : Result<void>();
}

Result<void> Journal::Write() {
  auto written = file_->Append(std::as_bytes(std::span(waiting_)));
  if (written.ok()) written = env_.faults.Hit("journal.written");
  if (written.ok() && options_.durability == Durability::kAlways) written = file_->Sync();
  if (written.ok()) return {};
  if (auto cut = file_->Truncate(last_->bytes); !cut.ok()) {
    torn_ = true;
    env_.log.Error("journal torn", "reason", cut.error().text, "advice", "nothing is kept until this can be cut off");
  }
  return written;
}

Result<void> Journal::Commit() {
  if (waiting_records_.empty()) return {};
  auto written = MakeReady();
  if (written.ok()) written = Write();
  if (!written.ok()) {  // the sequences are taken back, so that they are used once only
    next_ = waiting_records_.front().sequence;
    next_number_ -= WaitingObservations();
    waiting_.clear();
    waiting_records_.clear();
    return written;
  }
  bool much = false;
  {
    constexpr std::size_t kMuch = 64 << 20;
    const base::Lock lock(mutex_);
    last_->Add(waiting_records_, waiting_.size());
    NoteUnsynced();
    much = unsynced_.size() > kMuch;
  }
  waiting_.clear();
  waiting_records_.clear();
  end_number_.store(next_number_, std::memory_order_release);
  end_sequence_.store(next_, std::memory_order_release);
  if (much) (void)Sync();  // should it fail, the next Commit says so
  return {};
}

void Journal::SkipTo(std::uint64_t sequence, std::uint64_t number) {
  CHECK(waiting_records_.empty());
  if (sequence <= next_ && number <= next_number_) return;
  full_ = true;
  next_ = std::max(next_, sequence);
  next_number_ = std::max(next_number_, number);
  end_number_.store(next_number_, std::memory_order_release);
  end_sequence_.store(next_, std::memory_order_release);
}

std::uint64_t Journal::first_sequence() const {
  const base::Lock lock(mutex_);
  return segments_.empty() ? end_sequence_.load() : segments_.front()->segment->head().first_sequence;
}

std::uint64_t Journal::SequenceSince(std::int64_t time) const {
  const base::Lock lock(mutex_);
  for (const auto& part : segments_)
    if (part->last_time == 0 || part->last_time >= time) return part->segment->head().first_sequence;
  return end_sequence_.load();
}

std::uint64_t Journal::bytes() const {
  const base::Lock lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& part : segments_) sum += part->bytes;
  return sum;
}

// Times come from clients. One in the future would keep its segment for ever: it counts as now, and is kept as that.
Result<void> Journal::CountFutureAsNow(std::int64_t now) {
  std::vector<std::string> finished;
  {
    const base::Lock lock(mutex_);
    for (const auto& part : segments_) {
      if (part->last_time <= now) continue;
      part->last_time = part->index.last_time = now;
      if (part->index_file != nullptr) finished.push_back(SegmentIndex::PathOf(part->segment->path()));
    }
  }
  for (const std::string& path : finished) {
    SegmentIndex index = TRY(SegmentIndex::Read(env_.files, path));
    index.last_time = now;
    TRY(index.Write(env_.files, path));
  }
  return {};
}

Result<int> Journal::Retain(std::uint64_t needed, std::int64_t now) {
  if (options_.retain_seconds > 0) TRY(CountFutureAsNow(now));
  int dropped = 0;
  while (true) {
    std::shared_ptr<Part> oldest;
    {
      const base::Lock lock(mutex_);
      if (segments_.size() < 2 || segments_.front()->end_sequence > needed) return dropped;
      std::uint64_t sum = 0;
      for (const auto& part : segments_) sum += part->bytes;
      const bool large = options_.retain_bytes > 0 && sum > options_.retain_bytes;
      const bool old = options_.retain_seconds > 0 && segments_.front()->last_time < now - options_.retain_seconds;
      if (!large && !old) return dropped;
      oldest = segments_.front();
      segments_.erase(segments_.begin());
      std::erase(parts_, oldest);
    }
    TRY(env_.files.Remove(oldest->segment->path()));
    const std::string index_path = SegmentIndex::PathOf(oldest->segment->path());
    if (env_.files.Exists(index_path)) TRY(env_.files.Remove(index_path));
    ++dropped;
  }
}

Result<std::vector<std::uint64_t>> Journal::RecentIds(std::size_t most) const {
  std::vector<std::uint64_t> ids;         // newest first
  std::vector<std::string> newest_first;  // paths of finished segments
  {
    const base::Lock lock(mutex_);
    for (auto part = segments_.rbegin(); part != segments_.rend(); ++part)
      if ((*part)->index_file != nullptr)
        newest_first.push_back(SegmentIndex::PathOf((*part)->segment->path()));
      else
        ids.insert(ids.end(), (*part)->index.ids.rbegin(), (*part)->index.ids.rend());
  }
  for (const std::string& path : newest_first) {
    if (ids.size() >= most) break;
    const auto of_part = TRY(SegmentIndex::Read(env_.files, path)).ids;
    ids.insert(ids.end(), of_part.rbegin(), of_part.rend());
  }
  if (ids.size() > most) ids.resize(most);
  std::reverse(ids.begin(), ids.end());
  return ids;
}

DatasetWriter::DatasetWriter(base::Files& files, std::string path, SegmentHead head)
    : files_(files), path_(std::move(path)), draft_(path_ + ".draft"), head_(head), offset_(head.bytes()) {
  index_.end_sequence = head.first_sequence;
  index_.bytes = head.bytes();
}

DatasetWriter::~DatasetWriter() {
  if (file_ != nullptr) (void)files_.Remove(draft_);
}

Result<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(base::Files& files, const std::string& path) {
  SegmentHead head;
  while (head.salt == 0) head.salt = base::Unguessable();
  std::unique_ptr<DatasetWriter> writer(new DatasetWriter(files, path, head));
  writer->file_ = TRY(files.Create(writer->draft_));
  TRY(writer->file_->Write(head.Encode()));
  return writer;
}

Result<void> DatasetWriter::Append(const data::Batch& batch) {
  bytes_.clear();
  Slip slip;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    payload_.clear();
    slip.time = batch.times == nullptr ? 0 : batch.times[r];
    PackRow(batch, r, slip, payload_);
    const Record record{index_.offsets.size() + 1, RecordKind::kObservation, payload_};
    const std::uint64_t offset = offset_ + bytes_.size();
    if (offset > 0xffff0000u)
      return Error{Code::kInvalid, Str(path_, ": a data set of more than 4 GB in packed form; split it")};
    index_.Add(record, offset);
    index_.last_time = std::max(index_.last_time, slip.time);
    AppendRecord(bytes_, record.sequence, record.kind, payload_, head_.salt);
  }
  offset_ += bytes_.size();
  return file_->Write(bytes_);
}

Result<std::uint64_t> DatasetWriter::Close() {
  TRY(file_->Sync());
  TRY(index_.Write(files_, SegmentIndex::PathOf(path_)));
  if (auto named = files_.Rename(draft_, path_); !named.ok()) {
    (void)files_.Remove(SegmentIndex::PathOf(path_));
    return std::move(named).error();
  }
  file_ = nullptr;
  TRY(files_.SyncDirectoryOf(path_));
  return std::uint64_t{index_.offsets.size()};
}

void DatasetWriter::Remove(base::Files& files, const std::string& path) {
  for (const std::string& file : {path, SegmentIndex::PathOf(path)})
    if (files.Exists(file)) (void)files.Remove(file);
}

}  // namespace freshet::deploy
