#include "deploy/journal.h"

#include <algorithm>
#include <cstdio>

#include "base/secret_hash.h"
#include "deploy/directory.h"
#include "deploy/id_window.h"
#include "deploy/journal_part.h"

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

Result<std::unique_ptr<Journal>> Journal::Open(const base::Env& env, JournalOptions options) {
  TRY(env.files.MakeDirectory(options.directory));
  std::unique_ptr<Journal> journal(new Journal(env, std::move(options)));
  journal->lock_ = TRY(env.files.Lock(journal->options_.directory + "/lock"));
  TRY(journal->OpenSegments());
  return journal;
}

// A segment under its own name: one that was copied to another holds records that stand elsewhere.
Result<std::unique_ptr<Segment>> Journal::OpenSegment(const std::string& path) const {
  auto segment = TRY(Segment::Open(env_.files, path));
  if (PathOf(segment->head().first_sequence) != path)
    return Error{Code::kCorrupt, Str(path, ": begins with record ", segment->head().first_sequence,
                                     ", which is not what its name says")};
  return segment;
}

Result<void> Journal::OpenSegments() {
  for (const std::string& draft : TRY(FilesIn(env_.files, options_.directory, ".log.draft")))
    TRY(env_.files.Remove(draft));
  const auto paths = TRY(FilesIn(env_.files, options_.directory, ".log"));
  std::vector<Result<std::unique_ptr<Segment>>> found;
  for (const std::string& path : paths) {
    found.push_back(OpenSegment(path));
    if (!found.back().ok() && found.back().error().code != Code::kCorrupt) return std::move(found.back()).error();
  }
  bool any = false;  // before this one
  for (std::size_t i = 0; i < paths.size(); ++i, any = true) {
    const bool last = i + 1 == paths.size();
    if (!found[i].ok()) {
      TRY(PassOver(paths[i], last, found[i].error()));
      continue;
    }
    // What a segment has from the beginning of the next one on was written again there.
    const auto next = std::find_if(found.begin() + static_cast<std::ptrdiff_t>(i) + 1, found.end(),
                                   [](const auto& other) { return other.ok(); });
    const std::uint64_t end = next == found.end() ? ~std::uint64_t{0} : next->value()->head().first_sequence;
    auto part = TRY(OpenPart(std::move(found[i]).value(), last, end));
    const SegmentHead& head = part->segment->head();
    if (any && head.first_sequence > next_)  // what came before it is gone
      Report({paths[i], 0, 0, next_, head.first_sequence - next_});
    next_ = std::max(next_, part->end_sequence);
    next_number_ = std::max(next_number_, part->end_number());
    salt_ = head.salt;
    segments_.push_back(part);
    parts_.push_back(std::move(part));
  }
  if (!segments_.empty() && segments_.back()->index_file == nullptr && found.back().ok()) last_ = segments_.back();
  if (last_ != nullptr && options_.durability != Durability::kNone) tail_ = last_->segment->path();
  full_ = salt_ == 0;  // a segment of an earlier program is finished as it is
  while (salt_ == 0) salt_ = base::Unguessable();
  end_sequence_ = next_;
  end_number_ = next_number_;
  return {};
}

// A segment whose head is damaged: nothing in it can be trusted, but what comes after must not take its sequences
// again.
Result<void> Journal::PassOver(const std::string& path, bool last, const Error& why) {
  const auto file = TRY(env_.files.OpenRead(path));
  const std::uint64_t size = file->size().value_or(0);
  if (last && size < SegmentHead::kSaltedBytes) return env_.files.Remove(path);  // a crash was beginning it
  env_.log.Error("journal damaged", "reason", why.text);
  if (!last) return {};  // the next one says how much is missing
  const std::uint64_t first = std::strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 10);
  Report({path, 0, size, next_, 0});
  next_ = std::max(next_, first) + size / kRecordHeader;
  return {};
}

// Records from `end` on do not count.
Result<std::shared_ptr<Journal::Part>> Journal::OpenPart(std::unique_ptr<Segment> segment, bool last,
                                                         std::uint64_t end) {
  auto part = std::make_shared<Part>();
  part->segment = std::move(segment);
  part->first_number = part->segment->head().first_number;
  const std::string index_path = SegmentIndex::PathOf(part->segment->path());
  if (auto index = SegmentIndex::Read(env_.files, index_path); index.ok() && index.value().end_sequence <= end) {
    part->index = std::move(index).value();
    part->index_file = TRY(env_.files.OpenRead(index_path));
  } else {
    TRY(MakeIndex(*part, last, end));
  }
  part->end_sequence = part->index.end_sequence;
  part->bytes = part->index.bytes;
  part->count = part->index.offsets.size();
  part->last_time = part->index.last_time;
  if (part->index_file != nullptr) part->index = {};
  return part;
}

// Reads a segment that has no index: the last, which was being written, or one whose index is lost.
Result<void> Journal::MakeIndex(Part& part, bool last, std::uint64_t end) {
  const std::string& path = part.segment->path();
  SegmentIndex& made = part.index;
  made = {};
  made.end_sequence = part.segment->head().first_sequence;
  made.bytes = part.segment->head().bytes();
  Note note;
  std::vector<Damage> found;
  TRY(part.segment->Scan(
      0, 0,
      [&](const Record& record, std::uint64_t offset) -> Result<void> {
        if (record.sequence >= end) return {};
        made.Add(record, offset);
        const bool observation = record.kind == RecordKind::kObservation;
        if (!observation && record.kind != RecordKind::kPrediction) return {};
        PeekNote(record.payload, note);
        made.last_time = std::max(made.last_time, note.time);
        if (observation && !note.id.empty()) made.ids.push_back(IdWindow::HashOf(note.owner, note.id));
        return {};
      },
      &found));
  for (const Damage& damage : found)
    if (damage.first_lost < end) Report(damage);
  if (!last) {
    const std::string index_path = SegmentIndex::PathOf(path);
    if (auto written = made.Write(env_.files, index_path); !written.ok()) {  // memory will do: a start needs no room
      env_.log.Warn("journal index not written", "reason", written.error().text);
      return {};
    }
    part.index_file = TRY(env_.files.OpenRead(index_path));
    return {};
  }
  const std::uint64_t size = part.segment->size();
  if (size <= made.bytes) return {};
  env_.log.Warn("journal cut", "file", path, "at", made.bytes, "bytes", size - made.bytes, "reason",
                "its end was not wholly written");
  const auto file = TRY(env_.files.OpenAppend(path));
  return file->Truncate(made.bytes);
}

// Every place is counted once. A file that is damaged all over does not fill the log.
void Journal::Report(const Damage& damage) const {
  constexpr std::size_t kMostTold = 200;
  {
    const std::lock_guard lock(mutex_);
    if (!damaged_.emplace(damage.path, damage.offset).second || damages_.size() >= kMostTold) return;
    damages_.push_back(damage);
  }
  env_.log.Error("journal damaged", "file", damage.path, "offset", damage.offset, "bytes", damage.bytes, "first_lost",
                 damage.first_lost, "lost", damage.lost);
}

std::uint64_t Journal::damaged_places() const {
  const std::lock_guard lock(mutex_);
  return damaged_.size();
}

std::vector<Damage> Journal::damages() const {
  const std::lock_guard lock(mutex_);
  return damages_;
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
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  last_ = nullptr;
  file_ = nullptr;
  return {};
}

// From here on a part goes by the file of its index.
Result<void> Journal::WriteIndex(Part& part) {
  const std::string path = SegmentIndex::PathOf(part.segment->path());
  TRY(part.index.Write(env_.files, path));
  auto file = TRY(env_.files.OpenRead(path));
  const std::lock_guard lock(mutex_);
  part.index_file = std::move(file);
  part.index = {};
  return {};
}

// There is a segment to append to, its file ends with its last record, and no sync of it has failed.
Result<void> Journal::MakeReady() {
  {
    const std::lock_guard syncing(sync_mutex_);
    TRY(SyncTail());
  }
  if (sync_failed_.load()) TRY(WriteAgain());
  if (last_ != nullptr && file_ == nullptr) {  // going on after a restart
    std::shared_ptr<base::AppendFile> file = TRY(env_.files.OpenAppend(last_->segment->path()));
    const std::lock_guard lock(mutex_);
    file_ = sync_file_ = std::move(file);
  }
  if (torn_) TRY(file_->Truncate(last_->bytes));
  torn_ = false;
  if (last_ != nullptr && full_ && last_->end_sequence == last_->segment->head().first_sequence) {
    const std::lock_guard lock(mutex_);  // it holds nothing: the next, which may have its name, takes its place
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
    const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  return segments_.empty() ? end_sequence_.load() : segments_.front()->segment->head().first_sequence;
}

std::uint64_t Journal::SequenceSince(std::int64_t time) const {
  const std::lock_guard lock(mutex_);
  for (const auto& part : segments_)
    if (part->last_time == 0 || part->last_time >= time) return part->segment->head().first_sequence;
  return end_sequence_.load();
}

std::uint64_t Journal::bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& part : segments_) sum += part->bytes;
  return sum;
}

Result<void> Journal::Scan(std::uint64_t from, const std::function<Result<void>(const Record& record)>& visit) const {
  const std::uint64_t end = end_sequence();
  std::vector<std::pair<std::shared_ptr<Part>, std::uint64_t>> ranges;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& part : segments_)
      if (part->end_sequence > from) ranges.emplace_back(part, part->bytes);
  }
  for (const auto& [part, bytes] : ranges)
    TRY(ScanPart(*part, bytes, [&](const Record& record, std::uint64_t) -> Result<void> {
      if (record.sequence < from || record.sequence >= end) return {};
      return visit(record);
    }));
  return {};
}

Result<void> Journal::ScanPart(const Part& part, std::uint64_t bytes, const Segment::Visit& visit) const {
  std::vector<Damage> found;
  TRY(part.segment->Scan(0, bytes, visit, &found));
  for (const Damage& damage : found) Report(damage);
  return {};
}

Result<void> Journal::Adopt(const std::string& path, std::uint64_t first_number, std::uint64_t rows) {
  CHECK(waiting_records_.empty());
  auto part = TRY(OpenPart(TRY(Segment::Open(env_.files, path)), false, ~std::uint64_t{0}));
  if (part->count != rows)
    return Error{Code::kCorrupt, Str(path, ": holds ", part->count, " rows where ", rows, " were registered")};
  if (rows == 0) return {};
  part->first_number = first_number;
  part->dataset = true;
  SkipTo(next_, first_number + rows);
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(parts_.begin(), parts_.end(), [&](const auto& other) { return other->first_number > first_number; });
  parts_.insert(at, std::move(part));
  return {};
}

void Journal::PassOverDataset(const std::string& path, std::uint64_t first_number, std::uint64_t rows,
                              const Error& why) {
  env_.log.Error("data set passed over", "file", path, "rows", rows, "reason", why.text);
  Report({path, 0, 0, 0, rows});
  SkipTo(next_, first_number + rows);
}

std::uint64_t Journal::first() const {
  const std::lock_guard lock(mutex_);
  return parts_.empty() ? end_number_.load() : parts_.front()->first_number;
}

std::shared_ptr<Journal::Part> Journal::PartOf(std::uint64_t number) const {
  auto after = std::upper_bound(parts_.begin(), parts_.end(), number,
                                [](std::uint64_t n, const auto& part) { return n < part->first_number; });
  if (after == parts_.begin()) return nullptr;
  const auto& part = *--after;
  return number < part->end_number() ? part : nullptr;
}

Result<void> Journal::Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const {
  std::string room;
  Note note;
  std::unique_lock lock(mutex_);
  const auto discarded = discarded_;
  lock.unlock();
  for (const std::uint64_t number : numbers) {
    lock.lock();
    const std::shared_ptr<Part> part = PartOf(number);
    const base::InputFile* const index_file = part == nullptr ? nullptr : part->index_file.get();
    std::uint32_t offset = 0;
    if (part != nullptr && index_file == nullptr) offset = part->index.offsets[number - part->first_number];
    lock.unlock();
    if (part == nullptr) continue;
    if (index_file != nullptr) offset = TRY(part->OffsetIn(*index_file, number));
    if (offset == 0) continue;  // lost by damage
    auto record = part->segment->ReadAt(offset, room);
    if (!record.ok()) {
      if (record.error().code != Code::kCorrupt) return std::move(record).error();
      Report({part->segment->path(), offset, 0, 0, 1});
      continue;
    }
    const std::uint64_t sequence = record.value().sequence;
    if (!part->dataset && discarded.Holds(sequence)) continue;
    TRY(UnpackRow(record.value().payload, rows, note));
  }
  return {};
}

void Journal::Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) {
  const std::lock_guard lock(mutex_);
  discarded_.Add(first_sequence, last_sequence);
}

// Times come from clients. One in the future would keep its segment for ever: it counts as now, and is kept as that.
Result<void> Journal::CountFutureAsNow(std::int64_t now) {
  std::vector<std::string> finished;
  {
    const std::lock_guard lock(mutex_);
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
      const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
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
  Note note;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    payload_.clear();
    note.time = batch.times == nullptr ? 0 : batch.times[r];
    PackRow(batch, r, note, payload_);
    const Record record{index_.offsets.size() + 1, RecordKind::kObservation, payload_};
    const std::uint64_t offset = offset_ + bytes_.size();
    if (offset > 0xffff0000u)
      return Error{Code::kInvalid, Str(path_, ": a data set of more than 4 GB in packed form; split it")};
    index_.Add(record, offset);
    index_.last_time = std::max(index_.last_time, note.time);
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
