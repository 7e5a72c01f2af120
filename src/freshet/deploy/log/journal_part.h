#pragma once

#include "deploy/log/journal.h"

// Private to journal*.cc.
namespace freshet::deploy {

// A stretch of the history: one segment of the journal, or a data set.
struct Journal::Part {
  std::unique_ptr<Segment> segment;
  std::uint64_t first_number = 0, end_sequence = 0, bytes = 0;
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

  // Records were written behind the last.
  void Add(std::span<const Waiting> records, std::uint64_t size) {
    for (const Waiting& record : records) {
      index.last_time = std::max(index.last_time, record.time);
      if (record.kind != RecordKind::kObservation) continue;
      index.offsets.push_back(static_cast<std::uint32_t>(bytes + record.offset));
      if (record.id_hash != 0) index.ids.push_back(record.id_hash);
    }
    bytes = index.bytes = bytes + size;
    if (!records.empty()) end_sequence = index.end_sequence = records.back().sequence + 1;
    count = index.offsets.size();
    last_time = index.last_time;
  }
  // The last records, which are these, stand elsewhere now.
  void TakeOff(std::span<const Waiting> records, std::uint64_t size) {
    for (const Waiting& record : records) {
      if (record.kind != RecordKind::kObservation) continue;
      index.offsets.pop_back();
      if (record.id_hash != 0) index.ids.pop_back();
    }
    bytes = index.bytes = bytes - size;
    if (!records.empty()) end_sequence = index.end_sequence = records.front().sequence;
    count = index.offsets.size();
  }
};

}  // namespace freshet::deploy
