#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::base {

// A file open for reading. Read goes on from where the last Read ended; ReadAt does not move that place.
// Both fill as much of `out` as there is and return how much; less than asked for means the end.
// Threads: ReadAt from any thread at once; Read from one at a time.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual Result<std::size_t> Read(std::span<char> out) = 0;
  virtual Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const = 0;
  // Bytes, for a regular file; nothing for a pipe or terminal, which has no end in sight and no ReadAt.
  virtual std::optional<std::uint64_t> size() const = 0;
};

// A file open for writing. After an error nothing more is written: the first error is returned for ever.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual Result<void> Write(std::span<const std::byte> bytes) = 0;
  virtual Result<void> Sync() = 0;  // returns when the bytes are on the disk
  Result<void> Write(std::string_view text) { return Write(std::as_bytes(std::span(text.data(), text.size()))); }
};

// An output that collects what is written, in memory.
class StringFile final : public OutputFile {
 public:
  using OutputFile::Write;
  Result<void> Write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  Result<void> Sync() override { return {}; }
  std::string text;
};

// A file that grows at its end, for logs. Unlike an OutputFile it can be tried again after an error: what a failed
// Append left behind is removed by Truncate.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  virtual Result<void> Append(std::span<const std::byte> bytes) = 0;
  virtual Result<void> Sync() = 0;  // returns when the bytes are on the disk; any thread, also beside Append
  virtual Result<void> Truncate(std::uint64_t size) = 0;
};

// Held by one process at a time; let go by the destructor or by the process's death.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// The file system as an input, so that tests can fill the disk.
//
// Threads: any. Failure: kNotFound, or kIo with the path and the system's reason.
class Files {
 public:
  virtual ~Files() = default;
  virtual Result<std::unique_ptr<InputFile>> OpenRead(const std::string& path) = 0;     // "-" is standard input
  virtual Result<std::unique_ptr<OutputFile>> Create(const std::string& path) = 0;      // new and empty; replaces
  virtual Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) = 0;  // made when it is not there
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> Remove(const std::string& path) = 0;
  virtual Result<void> MakeDirectory(const std::string& path) = 0;              // with its parents; fine if it is there
  virtual Result<void> SyncDirectoryOf(const std::string& path) = 0;            // makes a rename in it durable
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;  // kBusy when another process holds it
  virtual bool Exists(const std::string& path) const = 0;
  // A device, a pipe or standard output (-): it can be written to but not replaced.
  virtual bool IsDevice(const std::string& path) const = 0;
  // The files a pattern (*, ?, [..]) stands for, sorted; a plain path is itself. kNotFound when there is none.
  virtual Result<std::vector<std::string>> Glob(const std::string& pattern) const = 0;
};

class PosixFiles final : public Files {
 public:
  Result<std::unique_ptr<InputFile>> OpenRead(const std::string& path) override;
  Result<std::unique_ptr<OutputFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> MakeDirectory(const std::string& path) override;
  Result<void> SyncDirectoryOf(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
  bool Exists(const std::string& path) const override;
  bool IsDevice(const std::string& path) const override;
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override;
};

Result<std::string> ReadAll(Files& files, const std::string& path);

// Replaces `path` by what `write` writes, wholly or not at all: a file beside it is written, synced and renamed over
// it, and the directory is synced. On an error the old file is as it was and the draft is removed; only when the
// directory alone could not be synced is the new file there already. A device is written to as it is.
Result<void> WriteAtomic(Files& files, const std::string& path,
                         const std::function<Result<void>(OutputFile& file)>& write);

}  // namespace freshet::base
