#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/bytes.h"
#include "data/cuts.h"
#include "data/formats/format.h"
#include "data/rows.h"

namespace freshet::data {

// Which share of the input one reader takes: part `index` of `count`.
struct Part {
  std::uint64_t index = 0, count = 1;
};

// Cuts one or many files, one after another, into chunks of whole lines or records. Left out are a byte-order mark
// before text and, where there is one, the header of each file: the first line that is not blank, which has to be the
// same in all.
//
// Parts: where every file can be read from anywhere, each part gets a range of bytes, of about the same size unless
// CutAt says otherwise, and a line belongs to the part in which it begins; otherwise (pipes, compressed files) every
// reader reads everything and keeps each count-th chunk. Either way each line belongs to exactly one part.
//
// An input that cannot be read again (Repeatable) is opened once, when its turn comes.
//
// Threads: Next from any thread; chunks are numbered in the order they were cut. The rest one at a time.
// Failure: kNotFound and kIo of the files; kBadInput for a line that does not end or a header unlike the first;
// kInvalid
//          for going back in what cannot be read again.
class Chunks {
 public:
  struct Options {
    std::size_t chunk_bytes = 256 << 10;  // fits a core's cache together with what is parsed from it
    std::size_t longest_line_bytes = 64 << 20;
    Part part;
  };
  static Result<std::unique_ptr<Chunks>> Open(base::Files& files, const std::vector<std::string>& patterns,
                                              Options options) UNCHECKED_LOCKS;  // nobody else knows it yet

  // What a format is told by (see Head). Looking does not move the reading position.
  Head head() const;
  const std::vector<std::string>& paths() const { return paths_; }
  // How far along a position is, from 0 to 1; nothing when the sizes are not known.
  std::optional<double> Fraction(const Position& position) const;

  // Bytes of all files together, where each can be read from anywhere.
  std::optional<std::uint64_t> bytes() const { return total_; }
  std::uint64_t BytesBefore(const Position& position) const;
  // Other parts from the next pass on (Seek); kInvalid when they are not of these files.
  Result<void> CutAt(Cuts cuts);

  // Some lines or records that are whole into rows.text (padded), without moving: `most` bytes from place `place` of
  // `places` on, where files can be read from anywhere, and otherwise the head, which is place 0. To be called after
  // SetCutting. False when there is nothing to see there.
  Result<bool> Glimpse(std::uint64_t place, std::uint64_t places, std::size_t most, Rows& rows) const;

  // How to cut, and whether text has a header; to be said before the first Next.
  void SetCutting(Cutting cutting, bool has_header);

  // Reads the next chunk into rows.text (padded) and sets rows.begin, rows.end, rows.sequence. False at the end.
  Result<bool> Next(Rows& rows);

  // Goes on from a position (of a block boundary); Rewind is Seek to the very beginning.
  Result<void> Seek(const Position& position);
  Result<void> Rewind() { return Seek({}); }

 private:
  struct Range {
    std::uint64_t begin, end;
  };
  using Visit = std::function<bool(std::uint64_t offset, std::string_view piece)>;  // false: seen enough

  Chunks(base::Files& files, std::vector<std::string> paths, Options options)
      : files_(files), paths_(std::move(paths)), options_(options) {}
  Result<void> ReadHead(bool seekable) UNCHECKED_LOCKS;  // while it is opened

  // From file to file.
  Result<bool> Cut(Rows& rows) REQUIRES(mutex_);
  Result<void> OpenFile(std::uint64_t file) REQUIRES(mutex_);
  Result<void> EnterFile() REQUIRES(mutex_);
  Result<void> SkipPreamble() REQUIRES(mutex_);
  Result<void> SkipHeader() REQUIRES(mutex_);

  // This part's share of the current file; only where files can be read from anywhere.
  Range ShareOfFile() const REQUIRES(mutex_);
  Range AlignToRecords(Range share) const REQUIRES(mutex_);
  Result<std::uint64_t> LineFrom(std::uint64_t offset) const REQUIRES(mutex_);
  Result<std::uint64_t> LinesBefore(std::uint64_t offset) const REQUIRES(mutex_);
  Result<void> ForEachPiece(Range range, const Visit& visit) const REQUIRES(mutex_);

  // Chunks of the current file.
  Result<bool> CutFromFile(Rows& rows) REQUIRES(mutex_);
  std::size_t CutAt(std::string_view text, bool at_end) const REQUIRES(mutex_);
  void HandOut(Rows& rows, std::size_t cut, std::size_t got) REQUIRES(mutex_);
  Error TooLong() const REQUIRES(mutex_);

  Result<std::size_t> Fill(std::span<char> out) REQUIRES(mutex_);
  Result<std::string> Peek(std::size_t bytes) REQUIRES(mutex_);
  void Advance(std::uint64_t bytes) REQUIRES(mutex_);
  Result<void> SkipTo(std::uint64_t offset) REQUIRES(mutex_);

  bool records() const { return cutting_.kind == Cutting::Kind::kRecords; }
  bool quoted() const { return cutting_.kind == Cutting::Kind::kQuotedLines; }

  base::Files& files_;
  const std::vector<std::string> paths_;
  const Options options_;
  std::string once_;                    // the first that cannot be read again; "" when all can
  std::string head_;                    // padded
  std::vector<std::uint64_t> sizes_;    // of each file, when all are seekable
  std::optional<std::uint64_t> total_;  // of all together
  Cuts cuts_;                           // into parts, when there is a total
  Cutting cutting_;
  bool has_header_ = false;
  std::string header_;  // of the first file, if the head has the whole of it

  base::Mutex mutex_;
  std::unique_ptr<ByteStream> stream_ GUARDED_BY(mutex_);
  Position next_ GUARDED_BY(mutex_);               // where the next chunk starts
  bool entered_ GUARDED_BY(mutex_) = false;        // the current file's preamble is behind us and file_end_ is known
  std::uint64_t file_end_ GUARDED_BY(mutex_) = 0;  // this part's end within the current file
  std::string carry_ GUARDED_BY(mutex_);           // of a stream: read but not yet handed out
  bool carry_ended_ GUARDED_BY(mutex_) = false;
  std::uint64_t sequence_ GUARDED_BY(mutex_) = 0;
};

}  // namespace freshet::data
