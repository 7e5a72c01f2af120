#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/row_builder.h"

namespace freshet::deploy {

// What the journal is made of: everything that ever changed a deployed model, in order. A replay of the records
// rebuilds it. Observations and predictions are packed; control records are JSON, since they are few and people read
// them.
enum class RecordKind : std::uint8_t {
  kObservation = 1,  // a labelled row
  kPrediction,       // a row whose label may come later
  kIterationStart,   // a copy of the model was taken here, to be trained
  kIterationEnd,     // the trained copy took over here, or was given up
  kVersion,          // the model as of here is kept as a version
  kDataset,          // a data set joined the history
  kDrift,            // drift was detected and the sampling rate changed
  kRollBack,         // an earlier version took over, and perhaps a range of observations was discarded
  kPin,              // a version is kept for good, or no longer
  kNames,            // names entered the dictionaries without a row of the journal
  kClass,            // a label never seen before became a class of the model
  kDeploy,           // a model file took over
};
std::string_view Name(RecordKind kind);
bool IsKnown(RecordKind kind);  // or else a newer program wrote it

// One record as it lies in the journal. The payload is borrowed.
struct Record {
  std::uint64_t sequence = 0;  // of the record: 1, 2, 3 …
  RecordKind kind = RecordKind::kObservation;
  std::string_view payload;
};

// On the disk: crc32c of all that follows (u32), payload bytes (u32), sequence (u64), kind (u8), mark (3 bytes),
// payload. The mark is a part of the journal's salt, and the checksum goes over the salt first: who does not know it
// cannot make bytes that pass for a record, wherever they come to lie. Salt 0: none; the mark is zeros.
inline constexpr std::size_t kRecordHeader = 20;
inline constexpr std::size_t kMostPayload = 64 << 20;
void AppendRecord(std::string& out, std::uint64_t sequence, RecordKind kind, std::string_view payload,
                  std::uint64_t salt = 0);
// The record at the beginning of `bytes`; nothing when they do not hold a whole, undamaged one. Its kind may be one
// that is not known.
std::optional<Record> ParseRecord(std::string_view bytes, std::uint64_t salt = 0);
// Whether the kind and the mark of a header are those of some record: a quick look before the checksum.
bool HasMark(std::string_view header, std::uint64_t salt);

// What the record of an observation or a prediction holds besides its row.
struct Slip {
  std::string id;                    // the client's; "" for none
  std::string owner;                 // of a row that was predicted under the id: the name of the token; "" for none
  std::int64_t time = 0;             // arrival, seconds since 1970
  std::vector<float> scores;         // predicted when the row was first met, if that was before its label came
  std::vector<data::NewName> names;  // those it was the first to bring, in order; entries count within the row
};

// Packs one row with its slip, and back: the row is appended to `rows`. kCorrupt for bytes that are no such thing.
void PackRow(const data::Batch& batch, std::size_t row, const Slip& slip, std::string& out);
Result<void> UnpackRow(std::string_view payload, data::Rows& rows, Slip& slip);
// Names as they stand in the dictionaries (`space` is the number of the dictionary, `entry` that of the name in it, or
// 0 when it is not known yet), and back.
void PackNames(std::span<const data::NewName> names, std::string& out);
Result<std::vector<data::NewName>> UnpackNames(std::string_view payload);
// Time, id and owner alone, which is much cheaper; the rest of the slip is left as it was.
void PeekSlip(std::string_view payload, Slip& slip);

}  // namespace freshet::deploy
