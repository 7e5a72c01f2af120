#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/description.h"
#include "data/source.h"

namespace freshet::data {

// A cache holds parsed rows, so that later passes read instead of parse. docs/formats.md describes the file: blocks of
// rows, each with a checksum, then the description and the list of blocks, so that blocks can be read in any order.

// Writes a cache, one block at a time. The file takes its name only when all of it is on the disk.
class CacheWriter {
 public:
  static Result<std::unique_ptr<CacheWriter>> Create(base::Files& files, std::string path);
  ~CacheWriter();  // removes what was written if Close was not called
  Result<void> Append(const Rows& rows);
  Result<void> Close(const Description& description);

 private:
  CacheWriter(base::Files& files, std::string path, std::unique_ptr<base::OutputFile> file);
  base::Files& files_;
  const std::string path_, draft_;
  std::unique_ptr<base::OutputFile> file_;
  std::uint64_t offset_ = 0;
  std::vector<std::uint64_t> blocks_;  // offset, rows; for each block
};

// Rows from a cache. Threads, order and positions as RowSource; blocks can be permuted.
class CacheReader final : public RowSource {
 public:
  // kCorrupt when the file is damaged, unfinished or of another version.
  static Result<std::unique_ptr<CacheReader>> Open(base::Files& files, const std::string& path);
  // Does the file begin like a cache, or, if it has no blocks, end like one?
  static bool Is(base::Files& files, const std::string& path);

  Description& description() { return description_; }
  std::size_t blocks() const { return offsets_.size(); }

  Result<bool> Next(Rows& rows) override;
  Result<void> Finish(Rows& rows) override;
  Result<void> Seek(const Position& position) override;
  void Permute(std::uint64_t seed) override;
  std::optional<double> Fraction(const Position& position) const override;
  Result<void> Glimpse(const std::function<void(const Rows& rows)>& see) const override;

 private:
  CacheReader(std::string path, std::unique_ptr<base::InputFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Result<void> ReadBlock(std::uint64_t offset, Rows& rows) const;

  const std::string path_;
  const std::unique_ptr<base::InputFile> file_;
  std::uint64_t size_ = 0;
  Description description_;
  std::vector<std::uint64_t> offsets_, counts_;
  std::vector<std::uint64_t> order_;
  std::atomic<std::uint64_t> next_{0};
  std::uint64_t first_ = 0;  // where this pass began; sequence counts from there
};

}  // namespace freshet::data
