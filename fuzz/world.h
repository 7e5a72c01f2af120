#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/check.h"
#include "base/env.h"
#include "data/reader.h"

namespace freshet::fuzz {

// Files in memory, to be read only.
class MemoryFiles final : public base::Files {
 public:
  explicit MemoryFiles(std::map<std::string, std::string> files) : files_(std::move(files)) {}

  Result<std::unique_ptr<base::InputFile>> OpenRead(const std::string& path) override;
  Result<std::unique_ptr<base::OutputFile>> Create(const std::string& path) override { return Refuse(path); }
  Result<std::unique_ptr<base::AppendFile>> OpenAppend(const std::string& path) override { return Refuse(path); }
  Result<void> Rename(const std::string& from, const std::string&) override { return Refuse(from); }
  Result<void> Remove(const std::string& path) override { return Refuse(path); }
  Result<void> MakeDirectory(const std::string& path) override { return Refuse(path); }
  Result<void> SyncDirectoryOf(const std::string& path) override { return Refuse(path); }
  Result<std::unique_ptr<base::FileLock>> Lock(const std::string& path) override { return Refuse(path); }
  bool Exists(const std::string& path) const override { return files_.contains(path); }
  bool IsDevice(const std::string&) const override { return false; }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override { return std::vector{pattern}; }

 private:
  static Error Refuse(const std::string& path) { return {Code::kIo, Str(path, ": is read only")}; }

  const std::map<std::string, std::string> files_;
};

// Reads the first of some files as `input` says, whole and in small pieces, labelled and not, and checks what must hold
// for any bytes: rows that hold together, errors that name the file, the same rows whatever the size of the pieces.
void ReadAnything(std::map<std::string, std::string> files, const std::string& path, const data::InputOptions& input);

// The rows of one block hold together.
void CheckRows(const data::Rows& rows);

}  // namespace freshet::fuzz
