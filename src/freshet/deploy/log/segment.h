#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "deploy/log/record.h"

namespace freshet::deploy {

// The head of a segment file, before its records: magic (8 bytes), version (u32), crc32c of version and what follows
// (u32), first sequence (u64), number of its first observation (u64), salt of its records (u64). Version 1 has no salt,
// and its checksum leaves the version out.
struct SegmentHead {
  static constexpr std::size_t kBytes = 32, kSaltedBytes = 40;
  std::uint64_t first_sequence = 1, first_number = 0;
  std::uint64_t salt = 0;  // 0: version 1
  std::size_t bytes() const { return salt == 0 ? kBytes : kSaltedBytes; }
  std::string Encode() const;
  // kCorrupt when it is damaged, kInvalid when it is whole and of a version that this program does not know.
  static Result<SegmentHead> Decode(std::string_view bytes, const std::string& path);
};

// Records that could not be read: a place that was damaged after it had been written.
struct Damage {
  std::string path;
  std::uint64_t offset = 0, bytes = 0;     // what was passed over
  std::uint64_t first_lost = 0, lost = 0;  // sequences that are missing there; lost 0: nobody knows how many
};

// A file of records, read only. What Open finds is fixed: bytes after its last whole record are not looked at again.
//
// The index of a finished segment is a file beside it (.index): where each observation begins, and the hashes of the
// clients' ids, so that opening need not read the records. It is made anew when it is missing or damaged.
//
// Threads: any.
class Segment {
 public:
  using Visit = std::function<Result<void>(const Record& record, std::uint64_t offset)>;

  // Reads the head. kCorrupt and kInvalid as SegmentHead::Decode.
  static Result<std::unique_ptr<Segment>> Open(base::Files& files, const std::string& path);

  const std::string& path() const { return path_; }
  const SegmentHead& head() const { return head_; }
  std::uint64_t size() const { return file_->size().value_or(0); }  // when it was opened

  // Visits the records in [from, to) (offsets of records; from 0: from the first one; to 0: up to the end of the file)
  // in order; passes over damaged places, telling `damages`. Returns where the last whole record ends. Bytes at the end
  // of the file that are the beginning of a record are no damage: a crash was writing it. kInvalid at a record of a
  // kind that is not known.
  Result<std::uint64_t> Scan(std::uint64_t from, std::uint64_t to, const Visit& visit,
                             std::vector<Damage>* damages) const;
  // The payload of the record at an offset, into `room`. kCorrupt when there is no whole record.
  Result<Record> ReadAt(std::uint64_t offset, std::string& room) const;

 private:
  Segment(std::string path, SegmentHead head, std::unique_ptr<base::InputFile> file)
      : path_(std::move(path)), head_(head), file_(std::move(file)) {}

  const std::string path_;
  const SegmentHead head_;
  const std::unique_ptr<base::InputFile> file_;
};

// What the index file of a finished segment holds.
struct SegmentIndex {
  std::uint64_t end_sequence = 0, bytes = 0;
  std::int64_t last_time = 0;          // the newest of its observations and predictions
  std::vector<std::uint32_t> offsets;  // of its observations; 0: lost by damage
  std::vector<std::uint64_t> ids;      // hashes of the ids of its observations that have one

  static std::string PathOf(const std::string& segment_path) { return segment_path + ".index"; }
  Result<void> Write(base::Files& files, const std::string& path) const;
  static Result<SegmentIndex> Read(base::Files& files, const std::string& path);
  // Where the offsets begin in the file, for reading one without the rest.
  static constexpr std::uint64_t kOffsetsAt = 48;
  // Adds a record that was visited or appended. Records that are missing before it count as observations, which most
  // are, so that those after them keep their numbers.
  void Add(const Record& record, std::uint64_t offset);
};

}  // namespace freshet::deploy
