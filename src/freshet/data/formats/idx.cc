// The idx format of MNIST: 00 00 type dimensions, then each dimension as a big-endian u32, then the bytes. Images have
// two dimensions or more, the first of which counts them; their labels stand in a file of one dimension beside them.
// A parser serves one file of images, since the header and the labels are of that one.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/option.h"
#include "data/bytes.h"
#include "data/formats/format.h"
#include "data/images/pixels.h"

namespace freshet::data {
namespace {

constexpr std::uint8_t kUnsignedBytes = 0x08;  // the only type read
constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kMostDimensions = 8;
constexpr std::uint64_t kMostRecordBytes = 1u << 28;  // bounds the memory of a row

struct IdxHeader {
  std::uint64_t records = 0;
  std::vector<std::uint64_t> shape;  // of a record; empty for labels

  std::uint64_t record_bytes() const {
    std::uint64_t product = 1;
    for (const std::uint64_t size : shape) product *= size;
    return product;
  }
  std::uint64_t bytes() const { return kMagicBytes + 4 * (1 + shape.size()); }
};

std::uint32_t BigEndian(const char* at) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(at[i]);
  return number;
}

std::string ShapeText(const std::vector<std::uint64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::uint64_t size : shape) sizes.push_back(Str(size));
  return Join(sizes, "x");
}

// The header, with every number checked before anybody allocates by it. Columns in errors are bytes of the file.
Result<IdxHeader> ReadHeader(std::string_view bytes, const std::string& path) {
  const auto wrong = [&](std::size_t at, const std::string& what) {
    return Error{Code::kBadInput, Str(path, ":1:", at + 1, ": ", what)};
  };
  if (bytes.size() < kMagicBytes)
    return wrong(bytes.size(), Str("found ", bytes.size(), " bytes, expected an idx header (00 00 08 dimensions)"));
  if (bytes[0] != 0 || bytes[1] != 0)
    return wrong(0, Str("found ", Quoted(bytes.substr(0, 4)), ", expected an idx header (00 00 08 dimensions)"));
  if (bytes[2] != kUnsignedBytes)
    return wrong(
        2, Str("idx type ", static_cast<int>(static_cast<unsigned char>(bytes[2])), ", expected 8 (unsigned bytes)"));
  const std::size_t dimensions = static_cast<unsigned char>(bytes[3]);
  if (dimensions == 0 || dimensions > kMostDimensions)
    return wrong(3, Str(dimensions, " dimensions, expected 1 to ", kMostDimensions));
  if (bytes.size() < kMagicBytes + 4 * dimensions)
    return wrong(bytes.size(),
                 Str("found ", bytes.size(), " bytes, expected a header of ", kMagicBytes + 4 * dimensions));
  IdxHeader header;
  header.records = BigEndian(bytes.data() + kMagicBytes);
  if (header.records == 0) return wrong(kMagicBytes, "the header promises 0 records, expected at least one");
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < dimensions; ++i) {
    const std::size_t at = kMagicBytes + 4 * i;
    header.shape.push_back(BigEndian(bytes.data() + at));
    product *= header.shape.back();  // both factors have at most 32 bits
    if (product == 0) return wrong(at, Str("dimension ", i + 1, " is 0, expected at least 1"));
    if (product > kMostRecordBytes)
      return wrong(at, Str("records of ", ShapeText(header.shape), " bytes, expected at most ", kMostRecordBytes));
  }
  return header;
}

Result<IdxHeader> ReadImageHeader(const Head& head) {
  IdxHeader header = TRY(ReadHeader(head.bytes, head.path));
  if (header.shape.empty())
    return Error{Code::kBadInput,
                 Str(head.path, ":1:4: a file of labels (1 dimension), expected the file of images (2 or more)")};
  return header;
}

// The shape as a model wants it: channels, height, width.
std::vector<std::uint64_t> ImageShape(std::vector<std::uint64_t> shape) {
  while (shape.size() < 3) shape.insert(shape.begin(), 1);
  return shape;
}

void ReplaceLast(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.rfind(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// Where the labels of a file of images are: as told, or beside it by the customary name; "" when there is no such name.
std::string LabelsPath(const std::string& images, const InputOptions& options) {
  if (!options.labels_path.empty()) return options.labels_path;
  const std::size_t slash = images.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::string name = images.substr(begin);
  ReplaceLast(name, "images", "labels");
  ReplaceLast(name, "idx3", "idx1");
  std::string path = images.substr(0, begin) + name;
  return path == images ? "" : path;
}

// One byte a record, read in pieces: what a header promises is believed only as it arrives.
Result<std::string> ReadLabels(base::Files& files, const std::string& path, std::uint64_t records,
                               const std::string& images) {
  const auto stream = TRY(OpenBytes(files, path));
  std::array<char, kMagicBytes + 4 * kMostDimensions> start;
  const std::size_t got = TRY(stream->Read(start));
  const IdxHeader header = TRY(ReadHeader({start.data(), got}, path));
  if (!header.shape.empty())
    return Error{Code::kBadInput,
                 Str(path, ":1:4: ", 1 + header.shape.size(), " dimensions, expected a file of labels (1)")};
  if (header.records != records)
    return Error{Code::kBadInput, Str(path, ":1:5: ", header.records, " labels, expected ", records, ", as many as ",
                                      images, " has records")};
  std::string labels(start.data() + header.bytes(), got - header.bytes()), piece(1 << 16, '\0');
  for (std::size_t size = piece.size(); size == piece.size() && labels.size() <= records;) {
    size = TRY(stream->Read(piece));
    labels.append(piece, 0, size);
  }
  if (labels.size() < records)
    return Error{Code::kBadInput, Str(path, ": the header promises ", records, " labels, found ", labels.size())};
  if (labels.size() > records)
    return Error{Code::kBadInput, Str(path, ": the header promises ", records, " labels, found more")};
  return labels;
}

Error NoLabels(const std::string& images, const std::string& path) {
  return {Code::kNotFound, Str(images, ": found no labels", path.empty() ? "" : Str(" in ", path),
                               ", name their file with ", Option("label-file"))};
}

// Whether a file that can be measured holds what its header promises. One that cannot (packed, a pipe) is checked by
// the parser as far as a reader of pieces can.
Result<void> CheckSize(base::Files& files, const std::string& path, const IdxHeader& header) {
  if (!files.Exists(path) || !Repeatable(files, path)) return {};
  const auto size = TRY(OpenBytes(files, path))->size();
  const std::uint64_t promised = header.bytes() + header.records * header.record_bytes();
  if (!size.has_value() || *size == promised) return {};
  const std::uint64_t content = *size - std::min(*size, header.bytes());
  return Error{Code::kBadInput, Str(path, ": the header promises ", header.records, " records of ",
                                    header.record_bytes(), " bytes, found ", content / header.record_bytes(), " and ",
                                    content % header.record_bytes(), " bytes")};
}

class IdxParser final : public Parser {
 public:
  // `labels`: one byte a record, or nothing when there are none.
  IdxParser(IdxHeader header, std::string labels, const Description& description, bool labelled)
      : header_(std::move(header)),
        record_bytes_(header_.record_bytes()),
        labels_(std::move(labels)),
        labelled_(labelled),
        scale_(static_cast<float>(description.scale)),
        expected_(description.labels.Expected()) {
    for (std::size_t byte = 0; byte < mapped_.size(); ++byte)
      mapped_[byte] = description.labels.Map(static_cast<double>(byte));
  }

  Cutting cutting() const override {
    return {.kind = Cutting::Kind::kRecords, .header_bytes = header_.bytes(), .record_bytes = record_bytes_};
  }

  void Parse(Rows& rows) const override {
    rows.width = record_bytes_;
    const std::string_view text(rows.text.data(), rows.text.size());
    rows.dense.Reserve(rows.dense.size() + text.size());
    const std::uint64_t first = (rows.begin.offset - std::min(rows.begin.offset, header_.bytes())) / record_bytes_;
    for (std::uint64_t i = 0; i * record_bytes_ < text.size(); ++i)
      ParseRecord(text.substr(i * record_bytes_, record_bytes_), i, first + i, rows);
  }

 private:
  // `in_chunk` and `number` count the record from 0, in its chunk and in its file.
  void ParseRecord(std::string_view record, std::uint64_t in_chunk, std::uint64_t number, Rows& rows) const {
    const char* const end = record.data() + record.size();
    const auto bad = [&](const char* at, const std::string& what) {
      NoteBadRow(rows, in_chunk, record.data(), end, at, Str("record ", number + 1, ": ", what));
    };
    if (number >= header_.records)
      return bad(record.data(), Str("the header promises ", header_.records, " records, found more"));
    if (record.size() < record_bytes_)
      return bad(end, Str("found ", record.size(), " bytes, expected ", record_bytes_, "; the header promises ",
                          header_.records, " records, found ", number));
    float label = std::nanf("");
    if (!labels_.empty()) {
      const auto byte = static_cast<unsigned char>(labels_[number]);
      label = mapped_[byte];
      if (!std::isfinite(label) && labelled_)
        return bad(record.data(), Str("label ", static_cast<int>(byte), ", expected ", expected_));
      if (!std::isfinite(label)) label = std::nanf("");
    }
    rows.labels.Append(label);
    AppendPixels(record, scale_, rows.dense);
  }

  const IdxHeader header_;
  const std::uint64_t record_bytes_;
  const std::string labels_;
  const bool labelled_;
  const float scale_;
  const std::string expected_;
  std::array<float, 256> mapped_;  // the label that each byte stands for
};

bool LooksLike(const Head& head) {
  const std::string_view bytes = head.bytes;
  return bytes.size() >= kMagicBytes && bytes[0] == 0 && bytes[1] == 0 && bytes[2] >= 0x08 && bytes[2] <= 0x0e &&
         bytes[3] >= 1 && bytes[3] <= static_cast<char>(kMostDimensions);
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files& files, Description& description) {
  const IdxHeader header = TRY(ReadImageHeader(head));
  description.dense = true;
  description.features = header.record_bytes();
  description.shape = ImageShape(header.shape);
  description.scale = 1.0 / 255;
  description.standardise = false;
  const std::string path = LabelsPath(head.path, options);
  if (path.empty() || !files.Exists(path)) return NoLabels(head.path, path);
  const std::string labels = TRY(ReadLabels(files, path, header.records, head.path));
  std::array<bool, 256> present{};
  for (const char label : labels) present[static_cast<unsigned char>(label)] = true;
  std::vector<std::string> seen;
  for (std::size_t byte = 0; byte < present.size(); ++byte)
    if (present[byte]) seen.push_back(Str(byte));
  InputOptions settled = options;
  if (settled.task == Labels::Kind::kAuto) settled.task = Labels::Kind::kClasses;
  return SettleLabels(head, settled, seen, description.labels);
}

Result<std::unique_ptr<Parser>> Make(const Head& head, const Description& description, const InputOptions& options,
                                     base::Files& files, bool labelled) {
  IdxHeader header = TRY(ReadImageHeader(head));
  if (ImageShape(header.shape) != description.shape)
    return Error{Code::kBadInput, Str(head.path, ":1:9: images of ", ShapeText(ImageShape(header.shape)), ", expected ",
                                      ShapeText(description.shape), ", as the model was trained with")};
  TRY(CheckSize(files, head.path, header));
  const std::string path = LabelsPath(head.path, options);
  const bool found = !path.empty() && files.Exists(path);
  if (!found && (labelled || !options.labels_path.empty())) return NoLabels(head.path, path);
  std::string labels = found ? TRY(ReadLabels(files, path, header.records, head.path)) : "";
  return std::unique_ptr<Parser>(
      std::make_unique<IdxParser>(std::move(header), std::move(labels), description, labelled));
}

}  // namespace

extern const Format kIdx = {"idx", "MNIST images, with a file of labels beside them", LooksLike, Describe, Make};

}  // namespace freshet::data
