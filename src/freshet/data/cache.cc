#include "data/cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/crc32c.h"
#include "base/random.h"

namespace freshet::data {
namespace {

constexpr std::uint64_t kMagic = 0x3148434143485346;  // "FSHCACH1"

struct BlockHead {
  std::uint64_t magic = kMagic;
  std::uint64_t rows = 0, entries = 0, width = 0;
  std::uint32_t has_weights = 0, has_times = 0;
  std::uint64_t bytes = 0;                   // of what follows
  std::uint32_t body_crc = 0, head_crc = 0;  // head_crc: of everything before it
};
static_assert(sizeof(BlockHead) == 56);

struct Trailer {
  std::uint64_t footer_offset, footer_bytes;
  std::uint32_t footer_crc, zero;
  std::uint64_t magic;
};

std::uint32_t HeadCrc(const BlockHead& head) {
  return base::Crc32c(std::as_bytes(std::span(&head, 1)).first(offsetof(BlockHead, head_crc)));
}

// The arrays of a block in the order they stand in the file.
template <class F>
Result<void> ForEachArray(const BlockHead& head, auto& rows, F visit) {
  TRY(visit(rows.labels, head.rows));
  TRY(visit(rows.samples, head.rows));
  if (head.has_weights) TRY(visit(rows.weights, head.rows));
  if (head.has_times) TRY(visit(rows.times, head.rows));
  if (head.width > 0) return visit(rows.dense, head.rows * head.width);
  TRY(visit(rows.offsets, head.rows + 1));
  TRY(visit(rows.indices, head.entries));
  return visit(rows.values, head.entries);
}

// What a header promises; ~0 when that is more than can be counted.
std::uint64_t BodyBytes(const BlockHead& head, Rows& rows) {
  unsigned __int128 bytes = 0;
  const unsigned __int128 dense = static_cast<unsigned __int128>(head.rows) * head.width;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  if (head.rows > kMost || head.entries > kMost || dense > kMost) return ~std::uint64_t{0};
  (void)ForEachArray(head, rows, [&](const auto& array, std::uint64_t count) -> Result<void> {
    bytes += static_cast<unsigned __int128>(count) * sizeof(array[0]);
    return {};
  });
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

CacheWriter::CacheWriter(base::Files& files, std::string path, std::unique_ptr<base::OutputFile> file)
    : files_(files), path_(std::move(path)), draft_(Str(path_, ".", getpid(), ".draft")), file_(std::move(file)) {}

Result<std::unique_ptr<CacheWriter>> CacheWriter::Create(base::Files& files, std::string path) {
  auto file = TRY(files.Create(Str(path, ".", getpid(), ".draft")));
  return std::unique_ptr<CacheWriter>(new CacheWriter(files, std::move(path), std::move(file)));
}

CacheWriter::~CacheWriter() {
  if (file_ != nullptr) (void)files_.Remove(draft_);
}

Result<void> CacheWriter::Append(const Rows& rows) {
  BlockHead head;
  head.rows = rows.size();
  head.entries = rows.indices.size();
  head.width = rows.width;
  head.has_weights = rows.weights.empty() ? 0 : 1;
  head.has_times = rows.times.empty() ? 0 : 1;
  TRY(ForEachArray(head, rows, [&](const auto& array, std::uint64_t count) -> Result<void> {
    CHECK(array.size() == count);
    head.bytes += array.span().size_bytes();
    head.body_crc = base::Crc32cOf(array.span(), head.body_crc);
    return {};
  }));
  head.head_crc = HeadCrc(head);
  blocks_.push_back(offset_);
  blocks_.push_back(head.rows);
  TRY(file_->Write(std::as_bytes(std::span(&head, 1))));
  offset_ += sizeof head + head.bytes;
  return ForEachArray(head, rows,
                      [&](const auto& array, std::uint64_t) { return file_->Write(std::as_bytes(array.span())); });
}

Result<void> CacheWriter::Close(const Description& description) {
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> storage;
  description.Save(metadata, tensors, storage);
  tensors.push_back({"blocks", DType::kU64, {blocks_.size() / 2, 2}, std::as_bytes(std::span(blocks_))});
  base::StringFile footer;
  TRY(WriteTensors(footer, tensors, metadata));
  const Trailer trailer{offset_, footer.text.size(), base::Crc32cOf(std::span(footer.text)), 0, kMagic};
  TRY(file_->Write(footer.text));
  TRY(file_->Write(std::as_bytes(std::span(&trailer, 1))));
  TRY(file_->Sync());
  TRY(files_.Rename(draft_, path_));
  file_ = nullptr;
  return files_.SyncDirectoryOf(path_);
}

bool CacheReader::Is(base::Files& files, const std::string& path) {
  if (files.IsDevice(path)) return false;  // which looking would take bytes from
  const auto file = files.OpenRead(path);
  if (!file.ok() || !file.value()->size()) return false;
  const std::uint64_t size = *file.value()->size();
  const auto has_magic = [&](std::uint64_t offset) {
    std::uint64_t magic = 0;
    const auto got = file.value()->ReadAt(offset, {reinterpret_cast<char*>(&magic), sizeof magic});
    return got.ok() && magic == kMagic;
  };
  return size >= sizeof kMagic && (has_magic(0) || has_magic(size - sizeof kMagic));
}

Result<std::unique_ptr<CacheReader>> CacheReader::Open(base::Files& files, const std::string& path) {
  auto file = TRY(files.OpenRead(path));
  std::unique_ptr<CacheReader> reader(new CacheReader(path, std::move(file)));
  const auto corrupt = [&](const auto&... why) {
    return Error{Code::kCorrupt, Str(path, ": ", why..., "; delete this cache and it will be written anew")};
  };
  const std::uint64_t size = reader->size_ = reader->file_->size().value_or(0);
  Trailer trailer{};
  if (size < sizeof trailer) return corrupt("too short for a cache");
  TRY(reader->file_->ReadAt(size - sizeof trailer, {reinterpret_cast<char*>(&trailer), sizeof trailer}));
  if (trailer.magic != kMagic) return corrupt("not a finished cache");
  if (trailer.footer_bytes > size || trailer.footer_offset > size - trailer.footer_bytes)
    return corrupt("its footer lies outside the file");
  std::string footer(trailer.footer_bytes, '\0');
  TRY(reader->file_->ReadAt(trailer.footer_offset, footer));
  if (base::Crc32cOf(std::span(footer)) != trailer.footer_crc) return corrupt("its footer is damaged");
  const TensorFile tensors = TRY(TensorFile::Parse(std::move(footer), path));
  reader->description_ = TRY(Description::Load(tensors));
  const auto blocks = TRY(tensors.Values<std::uint64_t>("blocks"));
  for (std::size_t i = 0; i + 1 < blocks.size(); i += 2) {
    reader->offsets_.push_back(blocks[i]);
    reader->counts_.push_back(blocks[i + 1]);
  }
  reader->Permute(0);
  return reader;
}

void CacheReader::Permute(std::uint64_t seed) {
  order_.resize(offsets_.size());
  std::iota(order_.begin(), order_.end(), 0);
  if (seed == 0) return;
  base::Random random(seed, "cache block order");
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

Result<bool> CacheReader::Next(Rows& rows) {
  const std::uint64_t mine = next_.fetch_add(1);
  if (mine >= order_.size()) return false;
  rows.Clear();
  TRY(ReadBlock(offsets_[order_[mine]], rows));
  rows.sequence = mine - first_;
  rows.begin = rows.end = {};
  rows.begin.block = mine;
  rows.end.block = mine + 1;
  return true;
}

Result<void> CacheReader::ReadBlock(std::uint64_t offset, Rows& rows) const {
  const auto corrupt = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 Str(path_, ": block at byte ", offset, ": ", why, "; delete this cache and it will be written anew")};
  };
  BlockHead head;
  if (TRY(file_->ReadAt(offset, {reinterpret_cast<char*>(&head), sizeof head})) != sizeof head)
    return corrupt("cut off");
  if (head.magic != kMagic || head.head_crc != HeadCrc(head)) return corrupt("its header is damaged");
  // A header can be whole and still lie; nothing is allocated that the file cannot hold.
  if (head.bytes > size_ - sizeof head || offset > size_ - sizeof head - head.bytes) return corrupt("cut off");
  if (BodyBytes(head, rows) != head.bytes) return corrupt("its header does not fit its size");
  std::uint64_t at = offset + sizeof head;
  std::uint32_t crc = 0;
  rows.width = head.width;
  TRY(ForEachArray(head, rows, [&](auto& array, std::uint64_t count) -> Result<void> {
    array.Resize(count);
    const auto bytes = std::as_writable_bytes(array.span());
    if (TRY(file_->ReadAt(at, {reinterpret_cast<char*>(bytes.data()), bytes.size()})) != bytes.size())
      return corrupt("cut off");
    crc = base::Crc32c(bytes, crc);
    at += bytes.size();
    return {};
  }));
  if (crc != head.body_crc) return corrupt("damaged");
  if (head.width == 0 && rows.offsets.back() != head.entries) return corrupt("its rows do not fit its entries");
  return {};
}

Result<void> CacheReader::Finish(Rows&) { return {}; }

Result<void> CacheReader::Seek(const Position& position) {
  if (position.block > order_.size())
    return Error{Code::kBadInput,
                 Str(path_, ": has ", order_.size(), " blocks, the earlier run stopped after ", position.block)};
  next_ = first_ = position.block;
  return {};
}

Result<void> CacheReader::Glimpse(const std::function<void(const Rows& rows)>& see) const {
  const std::size_t places = std::min<std::size_t>(offsets_.size(), 16);
  Rows rows;
  for (std::size_t place = 0; place < places; ++place) {
    rows.Clear();
    TRY(ReadBlock(offsets_[place * offsets_.size() / places], rows));
    see(rows);
  }
  return {};
}

std::optional<double> CacheReader::Fraction(const Position& position) const {
  if (order_.empty()) return std::nullopt;
  return static_cast<double>(position.block) / static_cast<double>(order_.size());
}

}  // namespace freshet::data
