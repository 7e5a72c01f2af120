#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/files.h"

namespace freshet::data {

// Sets aside the rows of a source that cannot be read: counts them in each pass, writes them to a file in the first
// that has any, and says when there are too many.
//
// Threads: one at a time. Ownership: borrows files.
class BadRows {
 public:
  // `path` "": they are counted only.
  BadRows(base::Files& files, std::uint64_t most, std::string path)
      : files_(files), most_(most), path_(std::move(path)) {}

  // kBadInput, with place and reason, if this is one too many.
  Result<void> Add(const std::string& place, const std::string& what, const std::string& text);
  void NewPass();
  std::uint64_t count() const { return count_; }
  bool first_pass() const { return first_pass_; }

 private:
  base::Files& files_;
  const std::uint64_t most_;
  const std::string path_;
  std::uint64_t count_ = 0;
  bool first_pass_ = true;
  std::unique_ptr<base::OutputFile> file_;
};

}  // namespace freshet::data
