// The binary version of CIFAR-10: records of one label byte (0 to 9) and 3 x 32 x 32 bytes of colour, no header.

#include <algorithm>
#include <array>
#include <cmath>

#include "data/formats/format.h"
#include "data/images/pixels.h"

namespace freshet::data {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;
constexpr std::size_t kRecordBytes = 1 + kPixels;
constexpr unsigned kClasses = 10;

unsigned LabelByte(std::string_view record) { return static_cast<unsigned char>(record[0]); }

class Cifar10Parser final : public Parser {
 public:
  Cifar10Parser(const Description& description, bool labelled)
      : labelled_(labelled), scale_(static_cast<float>(description.scale)), expected_(description.labels.Expected()) {
    for (unsigned byte = 0; byte < kClasses; ++byte) mapped_[byte] = description.labels.Map(byte);
  }

  Cutting cutting() const override { return {.kind = Cutting::Kind::kRecords, .record_bytes = kRecordBytes}; }

  void Parse(Rows& rows) const override {
    rows.width = kPixels;
    const std::string_view text(rows.text.data(), rows.text.size());
    rows.dense.Reserve(rows.dense.size() + text.size());
    for (std::uint64_t i = 0; i * kRecordBytes < text.size(); ++i)
      ParseRecord(text.substr(i * kRecordBytes, kRecordBytes), i, rows);
  }

 private:
  void ParseRecord(std::string_view record, std::uint64_t number, Rows& rows) const {
    const char* const end = record.data() + record.size();
    const auto bad = [&](const char* at, const std::string& what) {
      NoteBadRow(rows, number, record.data(), end, at,
                 Str("record ", rows.begin.offset / kRecordBytes + number + 1, ": ", what));
    };
    if (record.size() < kRecordBytes)
      return bad(end, Str("found ", record.size(), " bytes, expected ", kRecordBytes, " (a label and 3x32x32 pixels)"));
    const unsigned byte = LabelByte(record);
    if (byte >= kClasses) return bad(record.data(), Str("label byte ", byte, ", expected 0 to ", kClasses - 1));
    float label = mapped_[byte];
    if (!std::isfinite(label) && labelled_) return bad(record.data(), Str("label ", byte, ", expected ", expected_));
    if (!std::isfinite(label)) label = std::nanf("");
    rows.labels.Append(label);
    AppendPixels(record.substr(1), scale_, rows.dense);
  }

  const bool labelled_;
  const float scale_;
  const std::string expected_;
  std::array<float, kClasses> mapped_;  // the label that each byte stands for
};

// There is no magic number: bytes that no text has, a label wherever a record begins, not always the same one where
// there are enough to tell, and pixels that differ as those of pictures do. Less than that could be anything.
bool LooksLike(const Head& head) {
  constexpr std::size_t kEnoughRecords = 10, kFewestShades = 8;
  if (head.bytes.size() < kRecordBytes) return false;
  std::array<bool, kClasses> labels{};
  std::array<bool, 256> shades{};
  for (std::size_t at = 0; at < head.bytes.size(); at += kRecordBytes) {
    const std::string_view record = head.bytes.substr(at, kRecordBytes);
    if (LabelByte(record) >= kClasses) return false;
    labels[LabelByte(record)] = true;
    for (const char pixel : record.substr(1)) shades[static_cast<unsigned char>(pixel)] = true;
  }
  const auto different = [](const auto& seen) { return std::count(seen.begin(), seen.end(), true); };
  if (head.bytes.size() >= kEnoughRecords * kRecordBytes && different(labels) < 2) return false;
  if (different(shades) < static_cast<std::ptrdiff_t>(kFewestShades)) return false;
  return std::any_of(head.bytes.begin(), head.bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  description.dense = true;
  description.features = kPixels;
  description.shape = {3, 32, 32};
  description.scale = 1.0 / 255;
  description.standardise = false;
  std::vector<std::string> classes;  // all of them, whichever the head has
  for (unsigned k = 0; k < kClasses; ++k) classes.push_back(Str(k));
  InputOptions settled = options;
  if (settled.task == Labels::Kind::kAuto) settled.task = Labels::Kind::kClasses;
  return SettleLabels(head, settled, classes, description.labels);
}

Result<std::unique_ptr<Parser>> Make(const Head&, const Description& description, const InputOptions&, base::Files&,
                                     bool labelled) {
  return std::unique_ptr<Parser>(std::make_unique<Cifar10Parser>(description, labelled));
}

}  // namespace

extern const Format kCifar10 = {"cifar10", "CIFAR-10 in its binary version", LooksLike, Describe, Make};

}  // namespace freshet::data
