#include "data/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"

namespace freshet::data {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kChecksum = "crc32c", kHeaderChecksum = "header_crc32c";
constexpr std::string_view kNoSum = "00000000";

struct TypeInfo {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr TypeInfo kTypes[] = {{"F32", 4}, {"F64", 8}, {"U8", 1}, {"U32", 4}, {"I64", 8}, {"U64", 8}};

const TypeInfo& Info(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

std::string Hex(std::uint32_t number) {
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[number >> shift & 15];
  return out;
}

// Where the sum of the header stands in it, or npos. A quote inside a JSON string is escaped, so this is found nowhere
// else.
std::size_t FindHeaderSum(std::string_view header) {
  const std::string key = Str("\"", kHeaderChecksum, "\":\"");
  const std::size_t at = header.find(key);
  return at == std::string_view::npos || header.size() - at - key.size() < kNoSum.size() ? std::string_view::npos
                                                                                         : at + key.size();
}

std::string SumOfHeader(std::string header, std::size_t sum_at) {
  header.replace(sum_at, kNoSum.size(), kNoSum);
  return Hex(base::Crc32cOf(std::span(header)));
}

Result<void> ForEachPiece(const Tensor& tensor, const Tensor::Take& take) {
  return tensor.pieces ? tensor.pieces(take) : take(tensor.bytes);
}

}  // namespace

Result<void> WriteTensors(base::OutputFile& file, const std::vector<Tensor>& tensors, Metadata metadata) {
  std::uint32_t crc = 0;
  for (const Tensor& tensor : tensors)
    TRY(ForEachPiece(tensor, [&](std::span<const std::byte> piece) -> Result<void> {
      crc = base::Crc32c(piece, crc);
      return {};
    }));
  metadata[std::string(kChecksum)] = Str(crc);
  metadata[std::string(kHeaderChecksum)] = kNoSum;
  Json header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.shape) elements *= size;
    const std::uint64_t size = elements * Info(tensor.dtype).bytes;
    CHECK(tensor.pieces || size == tensor.bytes.size());
    header[tensor.name] = {
        {"dtype", Info(tensor.dtype).name}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const std::size_t sum_at = FindHeaderSum(text);
  text.replace(sum_at, kNoSum.size(), SumOfHeader(text, sum_at));
  const std::uint64_t length = text.size();
  TRY(file.Write(std::as_bytes(std::span(&length, 1))));
  TRY(file.Write(text));
  for (const Tensor& tensor : tensors)
    TRY(ForEachPiece(tensor, [&](std::span<const std::byte> piece) { return file.Write(piece); }));
  return {};
}

namespace {

// The parts of Parse. Each says what is wrong; Parse adds the path.
Error Corrupt(std::string why) { return {Code::kCorrupt, std::move(why)}; }

Result<std::string_view> HeaderOf(std::string_view all) {
  if (all.size() < 8) return Corrupt(Str(all.size(), " bytes; a safetensors file has at least 8"));
  std::uint64_t length = 0;
  std::memcpy(&length, all.data(), 8);
  if (length > kLongestHeader || length > all.size() - 8)
    return Corrupt(
        Str("header of ", length, " bytes in a file of ", all.size(), "; truncated, or not a safetensors file"));
  const std::string_view header = all.substr(8, static_cast<std::size_t>(length));
  const std::size_t sum_at = FindHeaderSum(header);
  if (sum_at != std::string_view::npos &&
      SumOfHeader(std::string(header), sum_at) != header.substr(sum_at, kNoSum.size()))
    return Corrupt("the checksum of its header is wrong; the file is damaged, use a copy");
  return header;
}

Result<Metadata> ReadMetadata(const Json& entry) {
  if (!entry.is_object()) return Corrupt("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return Corrupt(Str("metadata ", Quoted(key), " is not text"));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// One tensor of the header, whose bytes are to begin at `expected` in `data`.
Result<Tensor> ReadTensor(const std::string& name, const Json& entry, std::uint64_t expected,
                          std::span<const std::byte> data) {
  const auto corrupt = [&](const auto&... why) { return Corrupt(Str("tensor ", Quoted(name), ": ", why...)); };
  const auto field = [&](const char* key) { return entry.is_object() && entry.contains(key) ? entry[key] : Json(); };
  const Json dtype = field("dtype"), shape = field("shape"), range = field("data_offsets");
  const auto whole = [](const Json& number) { return number.is_number_unsigned(); };
  if (!dtype.is_string() || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole) || !range.is_array() ||
      range.size() != 2 || !std::all_of(range.begin(), range.end(), whole))
    return corrupt("dtype, shape or data_offsets missing or malformed");
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [&](const TypeInfo& t) { return t.name == dtype.get<std::string>(); });
  if (type == std::end(kTypes)) return corrupt("type ", Quoted(dtype.get<std::string>()), " is not one of ours");
  Tensor tensor{name, static_cast<DType>(type - kTypes), shape.get<std::vector<std::uint64_t>>(), {}};
  std::uint64_t size = type->bytes;
  for (const std::uint64_t extent : tensor.shape)
    if (__builtin_mul_overflow(size, extent, &size)) return corrupt("shape overflows");
  const std::uint64_t begin = range[0], end = range[1];
  if (begin != expected || end < begin || end > data.size())
    return corrupt("bytes ", begin, " to ", end, " of ", data.size(),
                   "; truncated, or its ranges overlap or leave gaps");
  if (end - begin != size) return corrupt(end - begin, " bytes, its shape has ", size);
  tensor.bytes = data.subspan(begin, size);
  return tensor;
}

Result<void> CheckSum(const Metadata& metadata, std::span<const std::byte> data) {
  const auto stated = metadata.find(std::string(kChecksum));
  if (stated == metadata.end()) return {};  // not a file of ours
  const std::string found = Str(base::Crc32c(data));
  if (found == stated->second) return {};
  return Corrupt(Str("checksum ", found, ", the file says ", stated->second, "; the file is damaged, use a copy"));
}

}  // namespace

Result<TensorFile> TensorFile::Read(base::Files& files, const std::string& path) {
  return Parse(TRY(base::ReadAll(files, path)), path);
}

Result<TensorFile> TensorFile::Parse(std::string bytes, std::string_view path) {
  TensorFile file;
  file.path_ = path;
  file.bytes_ = std::move(bytes);
  const auto result = file.Check();
  if (!result.ok()) return Error{result.error().code, Str(path, ": ", result.error().text)};
  return file;
}

Result<void> TensorFile::Check() {
  const std::string_view text = TRY(HeaderOf(bytes_));
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) return Corrupt("the header is not a JSON object");
  const auto data = std::as_bytes(std::span(bytes_)).subspan(8 + text.size());
  std::uint64_t expected = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = TRY(ReadMetadata(entry));
      continue;
    }
    tensors_.push_back(TRY(ReadTensor(name, entry, expected, data)));
    expected += tensors_.back().bytes.size();
  }
  if (expected != data.size()) return Corrupt(Str(data.size() - expected, " bytes after the last tensor"));
  return CheckSum(metadata_, data);
}

const Tensor* TensorFile::Find(std::string_view name) const {
  const auto at = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
  return at == tensors_.end() ? nullptr : &*at;
}

Result<std::string> TensorFile::Meta(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end())
    return Error{Code::kCorrupt, Str(path_, ": no '", key, "' in its metadata; not a file that freshet wrote")};
  return found->second;
}

Result<const Tensor*> TensorFile::Typed(std::string_view name, DType dtype) const {
  const Tensor* const tensor = Find(name);
  if (tensor == nullptr) return Error{Code::kCorrupt, Str(path_, ": no tensor '", name, "'")};
  if (tensor->dtype != dtype)
    return Error{Code::kCorrupt,
                 Str(path_, ": tensor '", name, "' is ", Info(tensor->dtype).name, ", expected ", Info(dtype).name)};
  return tensor;
}

}  // namespace freshet::data
