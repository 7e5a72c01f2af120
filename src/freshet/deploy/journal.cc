#include "deploy/journal.h"

#include <algorithm>
#include <cstdio>

#include "deploy/directory.h"
#include "deploy/id_window.h"

namespace freshet::deploy {

// A stretch of the history: one segment of the journal, or a data set.
struct Journal::Part {
  std::unique_ptr<Segment> segment;
  std::uint64_t first_number = 0, end_sequence = 0, bytes = SegmentHead::kBytes;
  std::uint64_t count = 0;  // observations
  std::int64_t last_time = 0;
  bool dataset = false;
  SegmentIndex index;                           // while it is being written
  std::unique_ptr<base::InputFile> index_file;  // once it is finished
  std::uint64_t end_number() const { return first_number + count; }

  // Where an observation begins, by the file of the index.
  Result<std::uint32_t> OffsetIn(const base::InputFile& file, std::uint64_t number) const {
    std::uint32_t offset = 0;
    const std::uint64_t at = SegmentIndex::kOffsetsAt + (number - first_number) * sizeof offset;
    if (TRY(file.ReadAt(at, {reinterpret_cast<char*>(&offset), sizeof offset})) != sizeof offset)
      return Error{Code::kCorrupt, Str(SegmentIndex::PathOf(segment->path()), ": is shorter than it was")};
    return offset;
  }
};

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

Result<void> Journal::OpenSegments() {
  const auto paths = TRY(FilesIn(env_.files, options_.directory, ".log"));
  bool any = false;  // before this one
  for (const std::string& path : paths) {
    const bool last = path == paths.back();
    auto part = OpenPart(path, last);
    if (!part.ok()) {
      if (part.error().code != Code::kCorrupt) return std::move(part).error();
      TRY(PassOver(path, last, part.error()));
      any = true;
      continue;
    }
    const std::uint64_t first = part.value()->segment->head().first_sequence;
    if (any && first > next_) Report({path, 0, 0, next_, first - next_});  // what came before it is gone
    any = true;
    next_ = std::max(next_, part.value()->end_sequence);
    next_number_ = std::max(next_number_, part.value()->end_number());
    segments_.push_back(part.value());
    parts_.push_back(std::move(part).value());
  }
  if (!segments_.empty() && segments_.back()->index_file == nullptr) last_ = segments_.back();
  end_sequence_ = next_;
  end_number_ = next_number_;
  return {};
}

// A segment whose head is damaged: nothing in it can be trusted, but what comes after must not take its sequences
// again.
Result<void> Journal::PassOver(const std::string& path, bool last, const Error& why) {
  const auto file = TRY(env_.files.OpenRead(path));
  const std::uint64_t size = file->size().value_or(0);
  if (last && size < SegmentHead::kBytes) return env_.files.Remove(path);  // a crash was beginning it
  env_.log.Error("journal damaged", "reason", why.text);
  if (!last) return {};  // the next one says how much is missing
  const std::uint64_t first = std::strtoull(path.c_str() + path.rfind('/') + 1, nullptr, 10);
  Report({path, 0, size, next_, 0});
  next_ = std::max(next_, first) + size / kRecordHeader;
  return {};
}

Result<std::shared_ptr<Journal::Part>> Journal::OpenPart(const std::string& path, bool last) {
  auto part = std::make_shared<Part>();
  part->segment = TRY(Segment::Open(env_.files, path));
  part->first_number = part->segment->head().first_number;
  const std::string index_path = SegmentIndex::PathOf(path);
  if (auto index = SegmentIndex::Read(env_.files, index_path); index.ok()) {
    part->index = std::move(index).value();
    part->index_file = TRY(env_.files.OpenRead(index_path));
  } else {
    TRY(MakeIndex(*part, last));
  }
  part->end_sequence = part->index.end_sequence;
  part->bytes = part->index.bytes;
  part->count = part->index.offsets.size();
  part->last_time = part->index.last_time;
  if (part->index_file != nullptr) part->index = {};
  return part;
}

// Reads a segment that has no index: the last, which was being written, or one whose index is lost.
Result<void> Journal::MakeIndex(Part& part, bool last) {
  const std::string& path = part.segment->path();
  SegmentIndex& made = part.index;
  made.end_sequence = part.segment->head().first_sequence;
  made.bytes = SegmentHead::kBytes;
  Note note;
  std::vector<Damage> found;
  TRY(part.segment->Scan(
      0, 0,
      [&](const Record& record, std::uint64_t offset) -> Result<void> {
        made.Add(record, offset);
        const bool observation = record.kind == RecordKind::kObservation;
        if (!observation && record.kind != RecordKind::kPrediction) return {};
        PeekNote(record.payload, note);
        made.last_time = std::max(made.last_time, note.time);
        if (observation && !note.id.empty()) made.ids.push_back(IdWindow::HashOf(note.owner, note.id));
        return {};
      },
      &found));
  for (const Damage& damage : found) Report(damage);
  if (!last) {
    const std::string index_path = SegmentIndex::PathOf(path);
    TRY(made.Write(env_.files, index_path));
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

void Journal::Report(const Damage& damage) const {
  {
    const std::lock_guard lock(mutex_);
    const auto same = [&](const Damage& known) { return known.path == damage.path && known.offset == damage.offset; };
    if (std::any_of(damages_.begin(), damages_.end(), same)) return;
    damages_.push_back(damage);
  }
  env_.log.Error("journal damaged", "file", damage.path, "offset", damage.offset, "bytes", damage.bytes, "first_lost",
                 damage.first_lost, "lost", damage.lost);
}

std::vector<Damage> Journal::damages() const {
  const std::lock_guard lock(mutex_);
  return damages_;
}

std::uint64_t Journal::Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash, std::int64_t time) {
  waiting_records_.push_back({next_, waiting_.size(), id_hash, kind, time});
  AppendRecord(waiting_, next_, kind, payload);
  if (kind == RecordKind::kObservation) ++next_number_;
  return next_++;
}

std::uint64_t Journal::WaitingObservations() const {
  return static_cast<std::uint64_t>(
      std::count_if(waiting_records_.begin(), waiting_records_.end(),
                    [](const Waiting& record) { return record.kind == RecordKind::kObservation; }));
}

Result<void> Journal::StartSegment() {
  const SegmentHead head{end_sequence_.load(), next_number_ - WaitingObservations()};
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
  const std::lock_guard lock(mutex_);
  last_ = part;
  segments_.push_back(part);
  parts_.push_back(std::move(part));
  file_ = sync_file_ = std::move(file);
  return {};
}

// Finishes the segment being written.
Result<void> Journal::Seal() {
  if (options_.durability != Durability::kNone) TRY(file_->Sync());
  const std::string path = SegmentIndex::PathOf(last_->segment->path());
  TRY(last_->index.Write(env_.files, path));
  auto index_file = TRY(env_.files.OpenRead(path));
  const std::lock_guard lock(mutex_);
  last_->index_file = std::move(index_file);
  last_->index = {};
  last_ = nullptr;
  file_ = nullptr;
  return {};
}

// There is a segment to append to, and its file ends with its last record.
Result<void> Journal::MakeReady() {
  if (last_ != nullptr && file_ == nullptr) {  // going on after a restart
    auto file = TRY(env_.files.OpenAppend(last_->segment->path()));
    const std::lock_guard lock(mutex_);
    file_ = sync_file_ = std::move(file);
  }
  if (torn_) TRY(file_->Truncate(last_->bytes));
  torn_ = false;
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
  unsynced_.store(true, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    Part& part = *last_;
    for (const Waiting& record : waiting_records_) {
      part.index.last_time = std::max(part.index.last_time, record.time);
      if (record.kind != RecordKind::kObservation) continue;
      part.index.offsets.push_back(static_cast<std::uint32_t>(part.bytes + record.offset));
      if (record.id_hash != 0) part.index.ids.push_back(record.id_hash);
    }
    part.bytes += waiting_.size();
    part.index.bytes = part.bytes;
    part.end_sequence = part.index.end_sequence = next_;
    part.count = part.index.offsets.size();
    part.last_time = part.index.last_time;
  }
  waiting_.clear();
  waiting_records_.clear();
  end_number_.store(next_number_, std::memory_order_release);
  end_sequence_.store(next_, std::memory_order_release);
  return {};
}

Result<void> Journal::Sync() {
  if (!unsynced_.exchange(false)) return {};
  std::shared_ptr<base::AppendFile> file;
  {
    const std::lock_guard lock(mutex_);
    file = sync_file_;
  }
  auto synced = file == nullptr ? Result<void>() : file->Sync();
  if (!synced.ok()) unsynced_.store(true);
  return synced;
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
  auto part = TRY(OpenPart(path, false));
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
      if (record.error().code == Code::kCorrupt) continue;
      return std::move(record).error();
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

Result<int> Journal::Retain(std::uint64_t needed, std::int64_t now) {
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
        ids.assign((*part)->index.ids.rbegin(), (*part)->index.ids.rend());
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

Result<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(base::Files& files, const std::string& path) {
  auto file = TRY(files.Create(path));
  TRY(file->Write(SegmentHead{}.Encode()));
  return std::unique_ptr<DatasetWriter>(new DatasetWriter(files, path, std::move(file)));
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
    AppendRecord(bytes_, record.sequence, record.kind, payload_);
  }
  offset_ += bytes_.size();
  return file_->Write(bytes_);
}

Result<std::uint64_t> DatasetWriter::Close() {
  TRY(file_->Sync());
  TRY(index_.Write(files_, SegmentIndex::PathOf(path_)));
  return std::uint64_t{index_.offsets.size()};
}

}  // namespace freshet::deploy
