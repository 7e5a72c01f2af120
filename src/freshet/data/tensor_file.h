#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace freshet::data {

// Named arrays and text in one file, in the safetensors format: u64 header length, JSON header, bytes of all tensors.
// Readable from Python in one line, and nothing in it is ever executed. Every file of ours carries two CRC-32C sums in
// its metadata, so that a damaged file is refused with the reason: crc32c of the tensors (in decimal), and
// header_crc32c of the header as it is with eight zeros in the place of this sum (in hexadecimal).
enum class DType { kF32, kF64, kU8, kU32, kI64, kU64 };

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  // borrowed
  // Of a tensor to be written whose bytes do not lie in one place: calls `take` with one piece after another, the same
  // each time it is asked. Takes the place of `bytes`.
  using Take = std::function<Result<void>(std::span<const std::byte> piece)>;
  std::function<Result<void>(const Take& take)> pieces = {};
};

using Metadata = std::map<std::string, std::string>;

// Appends a whole tensor file to what `file` holds. The header is padded so that the tensors start at a multiple of 64.
Result<void> WriteTensors(base::OutputFile& file, const std::vector<Tensor>& tensors, Metadata metadata);

// A tensor file in memory, checked: header well-formed, ranges inside the file and not overlapping, checksums right.
class TensorFile {
 public:
  TensorFile(TensorFile&&) = default;  // tensors point into the bytes, so there are no copies
  TensorFile& operator=(TensorFile&&) = default;

  // kCorrupt with `path` and the reason. Sizes are checked before anything is allocated by them.
  static Result<TensorFile> Parse(std::string bytes, std::string_view path);
  static Result<TensorFile> Read(base::Files& files, const std::string& path);

  const Metadata& metadata() const { return metadata_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* Find(std::string_view name) const;
  Result<std::string> Meta(const std::string& key) const;  // kCorrupt when it is not there

  // A tensor's values; kCorrupt when it is not there or of another type.
  template <class T>
  Result<std::vector<T>> Values(std::string_view name) const {
    const Tensor& tensor = *TRY(Typed(name, TypeOf<T>()));
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::copy_n(tensor.bytes.data(), tensor.bytes.size(), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  template <class T>
  static constexpr DType TypeOf() {
    if constexpr (std::is_same_v<T, float>)
      return DType::kF32;
    else if constexpr (std::is_same_v<T, double>)
      return DType::kF64;
    else if constexpr (std::is_same_v<T, std::uint8_t>)
      return DType::kU8;
    else if constexpr (std::is_same_v<T, std::uint32_t>)
      return DType::kU32;
    else if constexpr (std::is_same_v<T, std::uint64_t>)
      return DType::kU64;
    else
      return DType::kI64;
  }

 private:
  TensorFile() = default;
  Result<void> Check();
  Result<const Tensor*> Typed(std::string_view name, DType dtype) const;

  std::string path_;
  std::string bytes_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace freshet::data
