#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/bytes.h"
#include "data/format.h"
#include "data/rows.h"

namespace freshet::data {

// Which share of the input one reader takes: part `index` of `count`.
struct Part {
  std::uint64_t index = 0, count = 1;
};

// Cuts one or many files, one after another, into chunks of whole lines or records.
//
// Parts: where every file can be read from anywhere, each part gets a range of bytes of about the same size, and a line
// belongs to the part in which it begins; otherwise (pipes, compressed files) every reader reads everything and keeps
// each count-th chunk. Either way each line belongs to exactly one part.
//
// Threads: Next from any thread; chunks are numbered in the order they were cut.
class Chunks {
 public:
  struct Options {
    std::size_t chunk_bytes = 256 << 10;  // fits a core's cache together with what is parsed from it
    std::size_t longest_line_bytes = 64 << 20;
    Part part;
  };
  static Result<std::unique_ptr<Chunks>> Open(base::Files& files, std::vector<std::string> paths, Options options);

  // The first bytes of the first file, up to the end of a line; for looking, does not move the reading position.
  const std::string& head() const { return head_; }
  const std::vector<std::string>& paths() const { return paths_; }
  // How far along a position is, from 0 to 1; nothing when the sizes are not known.
  std::optional<double> Fraction(const Position& position) const;

  // How to cut; to be set before the first Next. `skip_lines` are left out at the start of every file (headers).
  void SetCutting(Cutting cutting, std::uint64_t skip_lines);

  // Reads the next chunk into rows.text (padded) and sets rows.begin, rows.sequence. False at the end.
  Result<bool> Next(Rows& rows);

  // Goes on from a position (of a block boundary); Rewind is Seek to the very beginning.
  Result<void> Seek(const Position& position);
  Result<void> Rewind() { return Seek({}); }

 private:
  Chunks(base::Files& files, std::vector<std::string> paths, Options options)
      : files_(files), paths_(std::move(paths)), options_(options) {}
  Result<bool> Cut(Rows& rows);
  Result<void> OpenFile();
  Result<void> SkipTo(std::uint64_t offset);
  Result<void> StartOfPart();
  Result<std::size_t> Fill(std::uint64_t offset, std::span<char> out);
  Result<std::size_t> CutAt(std::string_view bytes, bool at_end) const;

  base::Files& files_;
  const std::vector<std::string> paths_;
  const Options options_;
  std::string head_;
  Cutting cutting_;
  std::uint64_t skip_lines_ = 0;
  std::vector<std::uint64_t> sizes_;     // of each file, when all are seekable
  std::optional<std::uint64_t> total_;

  std::mutex mutex_;  // guards everything below
  std::unique_ptr<ByteStream> stream_;
  Position next_;              // where the next chunk starts
  std::uint64_t file_end_ = 0;   // this part's end within the current file
  std::string carry_;          // of a stream: read but not yet handed out
  bool carry_ended_ = false;
  std::uint64_t sequence_ = 0;
  bool fresh_file_ = true;
};

}  // namespace freshet::data
