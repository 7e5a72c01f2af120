#include "deploy/log/segment.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace freshet::deploy {
namespace {

constexpr char kMagic[8] = {'F', 'R', 'S', 'H', 'J', 'R', 'N', 'L'};
constexpr char kIndexMagic[8] = {'F', 'R', 'S', 'H', 'J', 'I', 'D', 'X'};
constexpr std::uint32_t kPlain = 1, kSalted = 2;  // versions of segments
constexpr std::uint32_t kIndexVersion = 1;
constexpr std::size_t kWindow = 1 << 20;

template <class T>
void Put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T At(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
std::uint32_t Crc(std::string_view bytes, std::uint32_t before = 0) { return base::Crc32cOf(std::span(bytes), before); }

// A window that slides over a file: View gives the bytes at an offset, as many as there are up to `size`.
class Sliding {
 public:
  explicit Sliding(const base::InputFile& file) : file_(file) {}
  Result<std::string_view> View(std::uint64_t offset, std::size_t size) {
    if (offset < begin_ || offset + size > begin_ + bytes_.size()) {
      bytes_.resize(std::max(size, step_));
      step_ = std::min(2 * step_, kWindow);
      begin_ = offset;
      bytes_.resize(TRY(file_.ReadAt(offset, bytes_)));
    }
    const std::size_t skip = offset - begin_;
    return std::string_view(bytes_).substr(skip, std::min(size, bytes_.size() - skip));
  }
  // Whether the file has bytes up to `end`: asked before room is made for a size that may be damaged.
  Result<bool> Reaches(std::uint64_t end) const {
    if (end <= begin_ + bytes_.size()) return true;
    char last = 0;
    return TRY(file_.ReadAt(end - 1, {&last, 1})) == 1;
  }

 private:
  const base::InputFile& file_;
  std::uint64_t begin_ = 0;
  std::size_t step_ = 16 << 10;  // most files that are scanned often are small
  std::string bytes_;
};

// The whole record at an offset, or nothing. Its sequence is `expected`, or up to `most_lost` more: any other is as bad
// as damage, bytes of an earlier life of this part of the disk.
Result<std::optional<Record>> RecordAt(Sliding& window, std::uint64_t offset, std::uint64_t salt,
                                       std::uint64_t expected, std::uint64_t most_lost) {
  const std::string_view head = TRY(window.View(offset, kRecordHeader));
  if (head.size() < kRecordHeader) return std::optional<Record>();
  const auto size = At<std::uint32_t>(head, 4);
  if (size > kMostPayload || !HasMark(head, salt)) return std::optional<Record>();
  if (At<std::uint64_t>(head, 8) - expected > most_lost) return std::optional<Record>();
  if (!TRY(window.Reaches(offset + kRecordHeader + size))) return std::optional<Record>();
  return ParseRecord(TRY(window.View(offset, kRecordHeader + size)), salt);
}

// The bytes from an offset on are the beginning of a record that was not written to its end.
Result<bool> IsTorn(Sliding& window, std::uint64_t offset) {
  const std::string_view head = TRY(window.View(offset, kRecordHeader));
  if (head.size() < kRecordHeader) return true;
  const auto size = At<std::uint32_t>(head, 4);
  if (size > kMostPayload) return false;
  return !TRY(window.Reaches(offset + kRecordHeader + size));
}

}  // namespace

std::string SegmentHead::Encode() const {
  std::string version, tail, out(kMagic, sizeof kMagic);
  Put(version, salt == 0 ? kPlain : kSalted);
  Put(tail, first_sequence);
  Put(tail, first_number);
  if (salt != 0) Put(tail, salt);
  out += version;
  Put(out, Crc(tail, salt == 0 ? 0 : Crc(version)));
  return out + tail;
}

// From version 2 on the checksum goes over the version and 24 bytes, in whatever comes later too: so that a newer file
// can be told from a damaged one.
Result<SegmentHead> SegmentHead::Decode(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return Error{Code::kCorrupt, Str(path, ": is not a journal segment, or its head is damaged")};
  const Error damaged{Code::kCorrupt, Str(path, ": the head of this journal segment is damaged")};
  const auto version = At<std::uint32_t>(bytes, 8), crc = At<std::uint32_t>(bytes, 12);
  SegmentHead head{At<std::uint64_t>(bytes, 16), At<std::uint64_t>(bytes, 24)};
  if (version == kPlain) return crc == Crc(bytes.substr(16, 16)) ? Result<SegmentHead>(head) : damaged;
  if (bytes.size() < kSaltedBytes || crc != Crc(bytes.substr(16, 24), Crc(bytes.substr(8, 4)))) return damaged;
  if (version > kSalted)
    return Error{Code::kInvalid, Str(path, ": is a journal segment of version ", version, ", this program reads up to ",
                                     kSalted, "; use a newer freshet")};
  head.salt = At<std::uint64_t>(bytes, 32);
  if (version != kSalted || head.salt == 0) return damaged;
  return head;
}

Result<std::unique_ptr<Segment>> Segment::Open(base::Files& files, const std::string& path) {
  auto file = TRY(files.OpenRead(path));
  std::string head(SegmentHead::kSaltedBytes, '\0');
  head.resize(TRY(file->ReadAt(0, head)));
  const SegmentHead decoded = TRY(SegmentHead::Decode(head, path));
  return std::unique_ptr<Segment>(new Segment(path, decoded, std::move(file)));
}

Result<std::uint64_t> Segment::Scan(std::uint64_t from, std::uint64_t to, const Visit& visit,
                                    std::vector<Damage>* damages) const {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  Sliding window(*file_);
  std::uint64_t offset = std::max<std::uint64_t>(from, head_.bytes()), good_end = offset;
  std::uint64_t expected = head_.first_sequence;
  bool known = offset == head_.bytes();  // that this is the next sequence
  const std::uint64_t end = to != 0 ? to : kNone;
  while (offset < end) {
    // What was passed over had no room for more.
    const std::uint64_t most_lost = known ? (offset - good_end) / kRecordHeader : kNone - expected;
    const std::optional<Record> record = TRY(RecordAt(window, offset, head_.salt, expected, most_lost));
    const bool sure = head_.salt != 0 || offset == good_end;  // that nobody made it up to be found after damage
    if (record && sure && !IsKnown(record->kind))
      return Error{Code::kInvalid, Str(path_, ": record ", record->sequence, " is of kind ",
                                       static_cast<int>(record->kind), ", which a newer freshet wrote; use that one")};
    if (record && IsKnown(record->kind)) {
      if (offset != good_end && damages != nullptr)
        damages->push_back({path_, good_end, offset - good_end, expected, record->sequence - expected});
      TRY(visit(*record, offset));
      offset += kRecordHeader + record->payload.size();
      expected = record->sequence + 1;
      known = true;
      good_end = offset;
      continue;
    }
    if (TRY(window.View(offset, 1)).empty()) break;
    ++offset;
  }
  const bool torn = to == 0 && TRY(IsTorn(window, good_end));
  const std::uint64_t passed_over = (to != 0 ? to : offset) - good_end;
  if (passed_over > 0 && !torn && damages != nullptr) damages->push_back({path_, good_end, passed_over, expected, 0});
  return good_end;
}

Result<Record> Segment::ReadAt(std::uint64_t offset, std::string& room) const {
  constexpr std::size_t kGuess = 512;  // most records are small: one read for header and payload
  room.resize(kGuess);
  std::size_t got = TRY(file_->ReadAt(offset, room));
  if (got >= kRecordHeader) {
    const std::size_t whole = kRecordHeader + std::min<std::size_t>(At<std::uint32_t>(room, 4), kMostPayload);
    char last = 0;  // a damaged size must not make room for what is not there
    if (whole > got && got == kGuess && TRY(file_->ReadAt(offset + whole - 1, {&last, 1})) == 1) {
      room.resize(whole);
      got = TRY(file_->ReadAt(offset, room));
    }
  }
  const auto record = ParseRecord(std::string_view(room).substr(0, got), head_.salt);
  if (!record) return Error{Code::kCorrupt, Str(path_, ": the record at byte ", offset, " is damaged")};
  return *record;
}

void SegmentIndex::Add(const Record& record, std::uint64_t offset) {
  offsets.resize(offsets.size() + (record.sequence - end_sequence), 0);
  end_sequence = record.sequence + 1;
  bytes = offset + kRecordHeader + record.payload.size();
  if (record.kind == RecordKind::kObservation) offsets.push_back(static_cast<std::uint32_t>(offset));
}

Result<void> SegmentIndex::Write(base::Files& files, const std::string& path) const {
  std::string tail;
  Put(tail, end_sequence);
  Put(tail, bytes);
  Put(tail, last_time);
  Put(tail, static_cast<std::uint32_t>(offsets.size()));
  Put(tail, static_cast<std::uint32_t>(ids.size()));
  tail.append(reinterpret_cast<const char*>(offsets.data()), offsets.size() * sizeof offsets[0]);
  tail.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]);
  return base::WriteAtomic(files, path, [&](base::OutputFile& file) -> Result<void> {
    std::string head(kIndexMagic, sizeof kIndexMagic);
    Put(head, kIndexVersion);
    Put(head, Crc(tail));
    TRY(file.Write(head));
    return file.Write(tail);
  });
}

Result<SegmentIndex> SegmentIndex::Read(base::Files& files, const std::string& path) {
  const auto file = TRY(files.OpenRead(path));
  std::string bytes(file->size().value_or(0), '\0');
  bytes.resize(TRY(file->ReadAt(0, bytes)));
  const Error damaged{Code::kCorrupt, Str(path, ": this index is damaged; it will be made anew")};
  if (bytes.size() < kOffsetsAt || std::memcmp(bytes.data(), kIndexMagic, sizeof kIndexMagic) != 0) return damaged;
  if (At<std::uint32_t>(bytes, 12) != Crc(std::string_view(bytes).substr(16))) return damaged;
  if (At<std::uint32_t>(bytes, 8) != kIndexVersion) return damaged;
  SegmentIndex index;
  index.end_sequence = At<std::uint64_t>(bytes, 16);
  index.bytes = At<std::uint64_t>(bytes, 24);
  index.last_time = At<std::int64_t>(bytes, 32);
  const std::uint64_t offsets = At<std::uint32_t>(bytes, 40), ids = At<std::uint32_t>(bytes, 44);
  if (bytes.size() != kOffsetsAt + offsets * 4 + ids * 8) return damaged;
  index.offsets.resize(offsets);
  index.ids.resize(ids);
  bytes.copy(reinterpret_cast<char*>(index.offsets.data()), offsets * 4, kOffsetsAt);
  bytes.copy(reinterpret_cast<char*>(index.ids.data()), ids * 8, kOffsetsAt + offsets * 4);
  return index;
}

}  // namespace freshet::deploy
