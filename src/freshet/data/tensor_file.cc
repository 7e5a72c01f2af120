#include "data/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"

namespace freshet::data {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr std::string_view kChecksum = "crc32c";

struct TypeInfo {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr TypeInfo kTypes[] = {{"F32", 4}, {"F64", 8}, {"U8", 1}, {"U32", 4}, {"I64", 8}, {"U64", 8}};

const TypeInfo& Info(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

}  // namespace

Result<void> WriteTensors(base::OutputFile& file, const std::vector<Tensor>& tensors, Metadata metadata) {
  std::uint32_t crc = 0;
  for (const Tensor& tensor : tensors) crc = base::Crc32c(tensor.bytes, crc);
  metadata[std::string(kChecksum)] = Str(crc);
  Json header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.shape) elements *= size;
    CHECK(elements * Info(tensor.dtype).bytes == tensor.bytes.size());
    header[tensor.name] = {{"dtype", Info(tensor.dtype).name},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const std::uint64_t length = text.size();
  TRY(file.Write(std::as_bytes(std::span(&length, 1))));
  TRY(file.Write(text));
  for (const Tensor& tensor : tensors) TRY(file.Write(tensor.bytes));
  return {};
}

Result<TensorFile> TensorFile::Read(base::Files& files, const std::string& path) {
  return Parse(TRY(base::ReadAll(files, path)), path);
}

Result<TensorFile> TensorFile::Parse(std::string bytes, std::string_view path) {
  const auto corrupt = [&](const auto&... why) { return Error{Code::kCorrupt, Str(path, ": ", why...)}; };
  TensorFile file;
  file.path_ = path;
  file.bytes_ = std::move(bytes);
  const std::string& all = file.bytes_;
  if (all.size() < 8) return corrupt(all.size(), " bytes; a safetensors file has at least 8");
  std::uint64_t length = 0;
  std::memcpy(&length, all.data(), 8);
  if (length > kLongestHeader || length > all.size() - 8)
    return corrupt("header of ", length, " bytes in a file of ", all.size(),
                   "; truncated, or not a safetensors file");
  const Json header = Json::parse(all.begin() + 8, all.begin() + 8 + static_cast<std::ptrdiff_t>(length), nullptr, false);
  if (!header.is_object()) return corrupt("the header is not a JSON object");
  const std::uint64_t data_begin = 8 + length, data_size = all.size() - data_begin;
  std::uint64_t expected = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return corrupt("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return corrupt("metadata '", key, "' is not text");
        file.metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto field = [&](const char* key) { return entry.is_object() && entry.contains(key) ? entry[key] : Json(); };
    const Json dtype = field("dtype"), shape = field("shape"), range = field("data_offsets");
    const auto whole = [](const Json& number) { return number.is_number_unsigned(); };
    if (!dtype.is_string() || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole) ||
        !range.is_array() || range.size() != 2 || !std::all_of(range.begin(), range.end(), whole))
      return corrupt("tensor ", Quoted(name), ": dtype, shape or data_offsets missing or malformed");
    const auto* const type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeInfo& t) { return t.name == dtype.get<std::string>(); });
    if (type == std::end(kTypes)) return corrupt("tensor ", Quoted(name), ": type ", dtype.dump(), " is not one of ours");
    Tensor tensor{name, static_cast<DType>(type - kTypes), shape.get<std::vector<std::uint64_t>>(), {}};
    std::uint64_t size = type->bytes;
    for (const std::uint64_t extent : tensor.shape)
      if (__builtin_mul_overflow(size, extent, &size)) return corrupt("tensor ", Quoted(name), ": shape overflows");
    const std::uint64_t begin = range[0], end = range[1];
    if (begin != expected || end < begin || end > data_size)
      return corrupt("tensor ", Quoted(name), ": bytes ", begin, " to ", end, " of ", data_size,
                     "; truncated, or its ranges overlap or leave gaps");
    if (end - begin != size) return corrupt("tensor ", Quoted(name), ": ", end - begin, " bytes, its shape has ", size);
    expected = end;
    tensor.bytes = {reinterpret_cast<const std::byte*>(all.data()) + data_begin + begin, end - begin};
    file.tensors_.push_back(std::move(tensor));
  }
  if (expected != data_size) return corrupt(data_size - expected, " bytes after the last tensor");
  const auto stated = file.metadata_.find(std::string(kChecksum));
  if (stated != file.metadata_.end()) {
    const auto data = std::as_bytes(std::span(all)).subspan(data_begin);
    const std::string found = Str(base::Crc32c(data));
    if (found != stated->second)
      return corrupt("checksum ", found, ", the file says ", stated->second, "; the file is damaged, use a copy");
  }
  return file;
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
    return Error{Code::kCorrupt, Str(path_, ": tensor '", name, "' is ", Info(tensor->dtype).name, ", expected ",
                                     Info(dtype).name)};
  return tensor;
}

}  // namespace freshet::data
