// What is read of a journal: records in order, rows by number, data sets that joined it.

#include "deploy/log/journal.h"

#include <algorithm>

#include "deploy/log/journal_part.h"

namespace freshet::deploy {

Result<void> Journal::Scan(std::uint64_t from, const std::function<Result<void>(const Record& record)>& visit) const {
  const std::uint64_t end = end_sequence();
  std::vector<std::pair<std::shared_ptr<Part>, std::uint64_t>> ranges;
  {
    const base::Lock lock(mutex_);
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
  const base::Lock lock(mutex_);
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
  const base::Lock lock(mutex_);
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
  Slip slip;
  base::Lock lock(mutex_);
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
    TRY(UnpackRow(record.value().payload, rows, slip));
  }
  return {};
}

void Journal::Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) {
  const base::Lock lock(mutex_);
  discarded_.Add(first_sequence, last_sequence);
}

}  // namespace freshet::deploy
