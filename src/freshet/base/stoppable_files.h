#pragma once

#include <atomic>

#include "base/files.h"

namespace freshet::base {

// The files of a process that somebody may ask to stop. Pipes, terminals and devices give when others have written,
// which may be never: to open one does not wait, and reading it ends with kStopped once *stop is set. All else is as
// PosixFiles has it.
//
// Threads: any. Ownership: borrows `stop`, which outlives it.
class StoppableFiles final : public Files {
 public:
  explicit StoppableFiles(const std::atomic<bool>& stop) : stop_(stop) {}

  Result<std::unique_ptr<InputFile>> OpenRead(const std::string& path) override;
  Result<std::unique_ptr<OutputFile>> Create(const std::string& path) override { return posix_.Create(path); }
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override { return posix_.OpenAppend(path); }
  Result<void> Rename(const std::string& from, const std::string& to) override { return posix_.Rename(from, to); }
  Result<void> Remove(const std::string& path) override { return posix_.Remove(path); }
  Result<void> MakeDirectory(const std::string& path) override { return posix_.MakeDirectory(path); }
  Result<void> SyncDirectoryOf(const std::string& path) override { return posix_.SyncDirectoryOf(path); }
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override { return posix_.Lock(path); }
  bool Exists(const std::string& path) const override { return posix_.Exists(path); }
  bool IsDevice(const std::string& path) const override { return posix_.IsDevice(path); }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override { return posix_.Glob(pattern); }

 private:
  PosixFiles posix_;
  const std::atomic<bool>& stop_;
};

}  // namespace freshet::base
