#pragma once

#include <atomic>

#include "base/files.h"

namespace freshet::base {

// Files that fail on purpose, for tests: the Nth operation that changes the disk (create, write, sync, rename)
// fails as a full disk does; a write that fails has written half of its bytes. Later operations fail too if `for_ever`.
class FaultyFiles final : public Files {
 public:
  explicit FaultyFiles(Files& real) : real_(real) {}
  void FailAt(int nth, bool for_ever = false) {
    left_ = nth;
    for_ever_ = for_ever;
    failures_ = 0;
  }
  int failures() const { return failures_; }

  Result<std::unique_ptr<InputFile>> OpenRead(const std::string& path) override { return real_.OpenRead(path); }
  Result<std::unique_ptr<OutputFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override { return real_.Remove(path); }
  Result<void> MakeDirectory(const std::string& path) override { return real_.MakeDirectory(path); }
  Result<void> SyncDirectoryOf(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override { return real_.Lock(path); }
  bool Exists(const std::string& path) const override { return real_.Exists(path); }
  bool IsDevice(const std::string& path) const override { return real_.IsDevice(path); }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override { return real_.Glob(pattern); }

  bool FailsNow();  // counts one operation

 private:
  Files& real_;
  std::atomic<int> left_{0};
  std::atomic<int> failures_{0};
  bool for_ever_ = false;
};

}  // namespace freshet::base
