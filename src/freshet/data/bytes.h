#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files.h"

namespace freshet::data {

// The bytes of an input as they were before compression, from first to last.
//
// Threads: one at a time, except ReadAt. Failure: kIo, or kBadInput for a damaged or absurdly packed file.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out` and returns its size, or less at the end.
  virtual Result<std::size_t> Read(std::span<char> out) = 0;
  // Size, and reading from anywhere: only for a regular file that is not compressed.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
  virtual Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const;
};

// Can this input be opened and read again? Not so standard input, a pipe, a terminal or a device.
bool Repeatable(const base::Files& files, const std::string& path);

// Opens a file ("-" is standard input) and looks at its first bytes, never at its name: gzip, xz and zstd are unpacked.
// Guards against decompression bombs: more than 1,000 times the packed bytes, after the first megabyte, is refused.
Result<std::unique_ptr<ByteStream>> OpenBytes(base::Files& files, const std::string& path);

}  // namespace freshet::data
