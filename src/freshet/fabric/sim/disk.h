#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/files.h"

namespace freshet::fabric::sim {

// The files of a member of a simulated world: real ones, but what changes them takes simulated time, so that anything
// may happen between two such operations, and fails when the disk is full or its machine is gone.
//
// Threads: as base::Fibers. Ownership: borrows the files and the clock.
class Disk final : public base::Files {
 public:
  Disk(base::Files& real, base::Clock& clock, base::Clock::Duration each) : real_(real), clock_(clock), each_(each) {}

  void Fill(bool full) { full_ = full; }
  void TurnOff() { off_ = true; }                                              // for ever
  void TearNextWrite(std::function<void()> then) { tear_ = std::move(then); }  // half of it is written

  Result<std::unique_ptr<base::InputFile>> OpenRead(const std::string& path) override { return real_.OpenRead(path); }
  Result<std::unique_ptr<base::OutputFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<base::AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> MakeDirectory(const std::string& path) override;
  Result<void> SyncDirectoryOf(const std::string& path) override;
  Result<std::unique_ptr<base::FileLock>> Lock(const std::string& path) override { return real_.Lock(path); }
  bool Exists(const std::string& path) const override { return real_.Exists(path); }
  bool IsDevice(const std::string& path) const override { return real_.IsDevice(path); }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override { return real_.Glob(pattern); }

  // For what it has opened: time passes; then whether it can be done.
  Result<void> Work(bool writes = false);
  // Of a write of so many bytes, how many are written.
  std::size_t Share(std::size_t bytes);

 private:
  base::Files& real_;
  base::Clock& clock_;
  const base::Clock::Duration each_;
  bool full_ = false, off_ = false;
  std::function<void()> tear_;
};

}  // namespace freshet::fabric::sim
