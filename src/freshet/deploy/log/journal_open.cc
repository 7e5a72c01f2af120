// How a journal is opened: its segments in order, what is damaged in them passed over.

#include "deploy/log/journal.h"

#include <algorithm>

#include "base/secret_hash.h"
#include "deploy/id_window.h"
#include "deploy/log/directory.h"
#include "deploy/log/journal_part.h"

namespace freshet::deploy {

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
    const base::Lock lock(mutex_);
    segments_.push_back(part);
    parts_.push_back(std::move(part));
  }
  const base::Lock syncing(sync_mutex_), lock(mutex_);
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
  Slip slip;
  std::vector<Damage> found;
  TRY(part.segment->Scan(
      0, 0,
      [&](const Record& record, std::uint64_t offset) -> Result<void> {
        if (record.sequence >= end) return {};
        made.Add(record, offset);
        const bool observation = record.kind == RecordKind::kObservation;
        if (!observation && record.kind != RecordKind::kPrediction) return {};
        PeekSlip(record.payload, slip);
        made.last_time = std::max(made.last_time, slip.time);
        if (observation && !slip.id.empty()) made.ids.push_back(IdWindow::HashOf(slip.owner, slip.id));
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
    const base::Lock lock(mutex_);
    if (!damaged_.emplace(damage.path, damage.offset).second || damages_.size() >= kMostTold) return;
    damages_.push_back(damage);
  }
  env_.log.Error("journal damaged", "file", damage.path, "offset", damage.offset, "bytes", damage.bytes, "first_lost",
                 damage.first_lost, "lost", damage.lost);
}

std::uint64_t Journal::damaged_places() const {
  const base::Lock lock(mutex_);
  return damaged_.size();
}

std::vector<Damage> Journal::damages() const {
  const base::Lock lock(mutex_);
  return damages_;
}

}  // namespace freshet::deploy
