#include "deploy/log/segment.h"
#include "world.h"

namespace freshet::fuzz {
namespace {

using deploy::Record;
using deploy::RecordKind;

// A payload either is refused or gives rows that hold together.
void CheckPayload(std::string_view payload) {
  for (const std::size_t width : {0, 3}) {
    data::Rows rows;
    rows.width = width;
    rows.ClearRows();
    deploy::Slip slip;
    deploy::PeekSlip(payload, slip);
    const bool ok = deploy::UnpackRow(payload, rows, slip).ok();
    CHECK(rows.size() == (ok ? 1 : 0));
    rows.samples.Resize(rows.size());
    CheckRows(rows);
    if (!ok) continue;
    for (const data::NewName& name : slip.names) CHECK(name.entry < (width > 0 ? width : rows.indices.size()));
    std::string again;  // what could be unpacked can be packed
    deploy::PackRow(rows.batch(), 0, slip, again);
    CHECK(again == payload || again.size() <= payload.size());
  }
  if (const auto names = deploy::UnpackNames(payload); names.ok()) {
    std::string again;
    deploy::PackNames(names.value(), again);
    CHECK(again == payload);
  }
}

// Whatever the file holds: records in order, found again one by one, and nothing counted twice.
void CheckSegment(std::string bytes) {
  const std::uint64_t size = bytes.size();
  MemoryFiles files({{"s", std::move(bytes)}});
  (void)deploy::SegmentIndex::Read(files, "s");
  const auto segment = deploy::Segment::Open(files, "s");
  if (!segment.ok()) {
    CHECK(segment.error().code == Code::kCorrupt || segment.error().code == Code::kInvalid);
    return;
  }
  const std::uint64_t begin = segment.value()->head().bytes();
  std::uint64_t sequence = 0, seen = begin;
  std::string room;
  std::vector<deploy::Damage> damages;
  const auto end = segment.value()->Scan(
      0, 0,
      [&](const Record& record, std::uint64_t offset) -> Result<void> {
        CHECK(seen == begin || record.sequence > sequence);
        sequence = record.sequence;
        CHECK(offset >= seen);
        seen = offset + deploy::kRecordHeader + record.payload.size();
        CHECK(!Name(record.kind).empty());
        const auto found = segment.value()->ReadAt(offset, room);
        CHECK(found.ok());
        CHECK(found.value().payload == record.payload);
        CheckPayload(record.payload);
        return {};
      },
      &damages);
  CHECK(end.ok() || end.error().code == Code::kInvalid);  // a record of a kind that a newer program writes
  if (!end.ok()) return;
  CHECK(end.value() == seen);
  CHECK(end.value() <= size);
  std::uint64_t passed = 0;
  for (const deploy::Damage& damage : damages) {
    CHECK(damage.offset >= passed);
    passed = damage.offset + damage.bytes;
    CHECK(damage.bytes > 0);
  }
  CHECK(passed <= size);
  for (std::uint64_t offset = 0; offset < size; offset += 7) (void)segment.value()->ReadAt(offset, room);
}

// The same bytes as payloads of records that are whole: checksums would keep most of them from the code behind.
std::string Wrapped(std::string_view bytes, std::uint64_t salt) {
  std::string segment = deploy::SegmentHead{1, 0, salt}.Encode();
  for (std::uint64_t sequence = 1; !bytes.empty(); ++sequence) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), static_cast<std::uint8_t>(bytes[0]) + 1);
    const auto kind = static_cast<RecordKind>(1 + sequence % 2 * 9);
    deploy::AppendRecord(segment, sequence, kind, bytes.substr(1, size - 1), salt);
    bytes.remove_prefix(size);
  }
  return segment;
}

}  // namespace
}  // namespace freshet::fuzz

// Any bytes as a segment of a journal, as its index, and as what stands in its records.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fuzz::CheckSegment(std::string(bytes));
  for (const std::uint64_t salt : {0, 77}) {
    fuzz::CheckSegment(deploy::SegmentHead{1, 0, salt}.Encode() + std::string(bytes));
    fuzz::CheckSegment(fuzz::Wrapped(bytes, salt));
  }
  fuzz::CheckPayload(bytes);
  return 0;
}
