#include "data/chunks.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/formats/lines.h"

namespace freshet::data {
namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kHeadBytes = 1 << 20;
constexpr std::size_t kPieceBytes = 1 << 16;

std::uint64_t LinesIn(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

bool IsText(std::string_view head) { return head.find('\0') == std::string_view::npos; }

// What there is to see of the first file. Binary data is not cut: a byte of it may look like a line end.
std::string_view WholeLines(std::string_view head, bool ended) {
  const std::size_t end = LineEnds(false).Last(head);
  return !ended && IsText(head) && end != LineEnds::kNone ? head.substr(0, end) : head;
}

// Are there lines enough to tell what they are: a header and a row? A line end between quotes may be none; but a quote
// that is never closed should not have all of a file looked through, nor a stream waited for.
bool ShowsLines(std::string_view head) {
  constexpr std::size_t kMostForQuotes = 16 * kHeadBytes;
  const auto two = [&](bool quoted) {
    const std::size_t first = LineEnds(quoted).First(head);
    return first != LineEnds::kNone && LineEnds(quoted).First(head.substr(first)) != LineEnds::kNone;
  };
  return two(false) && (two(true) || head.size() >= kMostForQuotes);
}

}  // namespace

Result<std::unique_ptr<Chunks>> Chunks::Open(base::Files& files, const std::vector<std::string>& patterns,
                                             Options options) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    const auto found = TRY(files.Glob(pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  if (paths.empty()) return Error{Code::kInvalid, "no input files; name at least one, or - for standard input"};
  if (paths.size() > 1 && std::find(paths.begin(), paths.end(), "-") != paths.end())
    return Error{Code::kInvalid, "standard input (-) cannot be mixed with other files"};
  std::unique_ptr<Chunks> chunks(new Chunks(files, std::move(paths), options));
  bool seekable = true;
  for (std::size_t i = chunks->paths_.size(); i-- > 0;) {
    const std::string& path = chunks->paths_[i];
    if (!Repeatable(files, path)) {
      chunks->once_ = path == "-" ? "standard input" : path;
      seekable = seekable && i == 0;
      if (i > 0) continue;  // until its turn comes
    }
    auto stream = TRY(OpenBytes(files, path));
    seekable &= stream->size().has_value();
    if (seekable) chunks->sizes_.insert(chunks->sizes_.begin(), *stream->size());
    chunks->stream_ = std::move(stream);  // the first file's stays
  }
  TRY(chunks->ReadHead(seekable));
  return chunks;
}

Result<void> Chunks::ReadHead(bool seekable) {
  const std::uint64_t most = stream_->size().value_or(kNoEnd);
  std::string start;
  bool ended = false;
  // Rows of a table may be longer than what is enough for most.
  for (std::size_t want = kHeadBytes; !ended; want *= 2) {
    const std::size_t had = start.size();
    start.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, want)));
    start.resize(had + TRY(stream_->Read(std::span(start).subspan(had))));
    ended = start.size() < want;
    if (!IsText(start) || ShowsLines(start) || want >= options_.longest_line_bytes) break;
  }
  head_ = WholeLines(start, ended);
  if (head_.starts_with(kByteOrderMark)) head_.erase(0, kByteOrderMark.size());
  head_.append(Parser::kPadding, '\n');
  if (seekable) {
    total_ = 0;
    for (const std::uint64_t size : sizes_) *total_ += size;
    cuts_ = EvenCuts(*total_, options_.part.count);
    return Rewind();
  }
  carry_ended_ = ended;
  carry_ = std::move(start);
  file_end_ = kNoEnd;
  return {};
}

Head Chunks::head() const {
  return {std::string_view(head_).substr(0, head_.size() - Parser::kPadding),
          paths_[0] == "-" ? "standard input" : paths_[0]};
}

void Chunks::SetCutting(Cutting cutting, bool has_header) {
  const base::Lock lock(mutex_);
  cutting_ = cutting;
  has_header_ = has_header && !records();
  const std::size_t end = EndOfHeader(head().bytes, quoted());
  header_ = end == LineEnds::kNone ? "" : Trim(head().bytes.substr(0, end));
}

Result<bool> Chunks::Next(Rows& rows) {
  const base::Lock lock(mutex_);
  while (true) {
    if (!TRY(Cut(rows))) return false;
    const bool mine = total_ || options_.part.count == 1 || next_.block % options_.part.count == options_.part.index;
    next_.block += 1;
    if (!mine) continue;
    rows.sequence = sequence_++;
    return true;
  }
}

Result<bool> Chunks::Cut(Rows& rows) {
  while (true) {
    if (!entered_) TRY(EnterFile());
    if (TRY(CutFromFile(rows))) return true;
    if (next_.file + 1 >= paths_.size()) return false;
    TRY(OpenFile(next_.file + 1));
  }
}

Result<void> Chunks::OpenFile(std::uint64_t file) {
  stream_ = TRY(OpenBytes(files_, paths_[file]));
  carry_.clear();
  carry_ended_ = false;
  file_end_ = kNoEnd;
  entered_ = false;
  next_.file = file;
  next_.offset = next_.line = 0;
  return {};
}

// Moves to where this part begins in the current file, and finds where it ends. It may have no share in it at all.
Result<void> Chunks::EnterFile() {
  TRY(SkipPreamble());
  entered_ = true;
  if (!total_) return {};
  const std::uint64_t data_begin = next_.offset;
  Range share = ShareOfFile();
  if (records()) share = AlignToRecords(share);
  file_end_ = share.begin < share.end ? share.end : 0;
  if (file_end_ == 0) return {};
  if (share.begin > data_begin) next_.offset = records() ? share.begin : TRY(LineFrom(share.begin));
  next_.line = TRY(LinesBefore(next_.offset));  // for error messages
  return {};
}

// Leaves out what stands before the rows of a file.
Result<void> Chunks::SkipPreamble() {
  if (records()) {
    Advance(TRY(Peek(cutting_.header_bytes)).size());
    return {};
  }
  if (TRY(Peek(kByteOrderMark.size())) == kByteOrderMark) Advance(kByteOrderMark.size());
  if (has_header_) TRY(SkipHeader());
  return {};
}

Result<void> Chunks::SkipHeader() {
  std::string start;
  std::size_t end = LineEnds::kNone;
  for (std::size_t want = kPieceBytes; end == LineEnds::kNone; want *= 2) {
    start = TRY(Peek(want));
    end = EndOfHeader(start, quoted());
    if (start.size() < want) end = std::min(end, start.size());  // a header is all there is
    if (end == LineEnds::kNone && want >= options_.longest_line_bytes) return TooLong();
  }
  start.resize(end);
  if (!header_.empty() && !Trim(start).empty() && Trim(start) != header_)
    return Error{Code::kBadInput, Str(paths_[next_.file], ":1:1: found ", Quoted(Trim(start)), ", expected ",
                                      Quoted(header_), ", the first line of ", paths_[0])};
  next_.line += LinesIn(start);
  Advance(end);
  return {};
}

Chunks::Range Chunks::ShareOfFile() const {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < next_.file; ++i) before += sizes_[i];
  const std::uint64_t after = before + sizes_[next_.file];
  const auto cut = [&](std::uint64_t k) { return std::clamp(cuts_[k], before, after) - before; };
  return {cut(options_.part.index), cut(options_.part.index + 1)};
}

// The records that begin in the share.
Chunks::Range Chunks::AlignToRecords(Range share) const {
  const std::uint64_t size = sizes_[next_.file], header = cutting_.header_bytes, record = cutting_.record_bytes;
  const auto align = [&](std::uint64_t at) {
    if (at == 0 || at == size) return at;
    return std::min(size, header + (at - std::min(at, header) + record - 1) / record * record);
  };
  return {align(share.begin), align(share.end)};
}

Result<void> Chunks::ForEachPiece(Range range, const Visit& visit) const {
  std::string piece(kPieceBytes, '\0');
  while (range.begin < range.end) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), range.end - range.begin));
    const std::size_t got = TRY(stream_->ReadAt(range.begin, std::span(piece).first(want)));
    if (got == 0 || !visit(range.begin, {piece.data(), got})) break;
    range.begin += got;
  }
  return {};
}

// Where the first line begins that begins at or after `offset`: behind the first line end from the byte before it on.
// In quoted text all quotes before it have to be counted.
Result<std::uint64_t> Chunks::LineFrom(std::uint64_t offset) const {
  if (offset == 0) return 0;
  LineEnds ends(quoted());
  if (quoted())
    TRY(ForEachPiece({0, offset - 1}, [&](std::uint64_t, std::string_view piece) {
      ends.Skip(piece);
      return true;
    }));
  std::uint64_t line = sizes_[next_.file];
  TRY(ForEachPiece({offset - 1, line}, [&](std::uint64_t at, std::string_view piece) {
    const std::size_t end = ends.First(piece);
    if (end != LineEnds::kNone) line = at + end;
    return end == LineEnds::kNone;
  }));
  return line;
}

Result<std::uint64_t> Chunks::LinesBefore(std::uint64_t offset) const {
  if (records()) return (offset - std::min(offset, cutting_.header_bytes)) / cutting_.record_bytes;
  std::uint64_t lines = 0;
  TRY(ForEachPiece({0, offset}, [&](std::uint64_t, std::string_view piece) {
    lines += LinesIn(piece);
    return true;
  }));
  return lines;
}

// The next chunk of the current file; false when this part of it is done. A line that is longer than a chunk makes the
// chunk longer.
Result<bool> Chunks::CutFromFile(Rows& rows) {
  rows.Clear();
  for (std::size_t want = options_.chunk_bytes; next_.offset < file_end_; want *= 2) {
    const std::uint64_t left = (total_ ? sizes_[next_.file] : kNoEnd) - next_.offset;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(want + cutting_.ahead_bytes, left));
    char* const text = rows.text.Room(size + Parser::kPadding);
    const std::size_t got = TRY(Fill({text, size}));
    if (got < size && total_) return Error{Code::kIo, Str(paths_[next_.file], ": became shorter while it was read")};
    if (got == 0) return false;
    const std::size_t cut = CutAt({text, got}, got < size || got == left);
    if (cut > 0) {
      HandOut(rows, cut, got);
      return true;
    }
    if (want >= options_.longest_line_bytes) return TooLong();
  }
  return false;
}

// How much of `text`, which begins at next_, makes up whole lines or records of this part; 0 when not one is whole.
std::size_t Chunks::CutAt(std::string_view text, bool at_end) const {
  const std::uint64_t mine = file_end_ - next_.offset;
  if (records()) {
    const std::size_t usable = text.size() - (at_end ? 0 : cutting_.ahead_bytes);
    if (mine <= usable) return static_cast<std::size_t>(mine);
    return at_end ? usable : usable / cutting_.record_bytes * cutting_.record_bytes;
  }
  if (mine <= text.size()) {
    // A line belongs to where it begins: the part ends behind the one that ends at or after the last byte of its share.
    const std::size_t end = LineEnds(quoted()).First(text, static_cast<std::size_t>(mine) - 1);
    if (end != LineEnds::kNone) return end;
  }
  if (at_end) return text.size();
  const std::size_t end = LineEnds(quoted()).Last(text);
  return end == LineEnds::kNone ? 0 : end;
}

// The first `cut` of `got` bytes behind the end of rows.text become the chunk.
void Chunks::HandOut(Rows& rows, std::size_t cut, std::size_t got) {
  char* const text = rows.text.data();
  rows.begin = next_;
  Advance(cut);
  next_.line += records() ? (cut + cutting_.record_bytes - 1) / cutting_.record_bytes : LinesIn({text, cut});
  rows.end = next_;
  rows.end.block += 1;
  const auto shown = static_cast<std::size_t>(std::min<std::uint64_t>(cut + cutting_.ahead_bytes, got));
  std::memset(text + shown, '\n', Parser::kPadding);
  const bool line_end_missing = !records() && text[cut - 1] != '\n';
  rows.text.SetEnd(text + shown + (line_end_missing ? 1 : 0));
}

Error Chunks::TooLong() const {
  return {Code::kBadInput, Str(paths_[next_.file], ":", next_.line + 1, ":1: found a ", records() ? "record" : "line",
                               " of more than ", options_.longest_line_bytes, " bytes, expected its end before that",
                               quoted() ? "; is there a quote that is never closed?" : "")};
}

// Bytes from next_ on; moves nothing. Less than asked for means the end of the file.
Result<std::size_t> Chunks::Fill(std::span<char> out) {
  if (total_) return stream_->ReadAt(next_.offset, out);
  if (carry_.size() < out.size() && !carry_ended_) {
    const std::size_t have = carry_.size();
    carry_.resize(out.size());
    const std::size_t got = TRY(stream_->Read(std::span(carry_).subspan(have)));
    carry_ended_ = got < out.size() - have;
    carry_.resize(have + got);
  }
  const std::size_t size = std::min(out.size(), carry_.size());
  std::copy_n(carry_.data(), size, out.data());
  return size;
}

Result<std::string> Chunks::Peek(std::size_t bytes) {
  std::string start(bytes, '\0');
  start.resize(TRY(Fill(start)));
  return start;
}

void Chunks::Advance(std::uint64_t bytes) {
  next_.offset += bytes;
  if (!total_) carry_.erase(0, static_cast<std::size_t>(bytes));
}

Result<void> Chunks::Seek(const Position& position) {
  const base::Lock lock(mutex_);
  if (position.file >= paths_.size())
    return Error{Code::kBadInput, Str("the earlier run stopped in file ", position.file + 1, ", but only ",
                                      paths_.size(), " were given")};
  const bool at_start = position.offset + position.block == 0;
  if (!once_.empty() && at_start && next_.block == 0 && next_.offset == 0) return {};
  if (!once_.empty()) return Error{Code::kInvalid, Str(once_, " cannot be read twice; give a file, or one epoch only")};
  TRY(OpenFile(position.file));
  next_ = position;
  sequence_ = 0;
  if (position.offset == 0) return {};
  entered_ = true;  // a block ended here, so the preamble is behind it
  if (!total_) return SkipTo(position.offset);
  const Range share = ShareOfFile();
  file_end_ = (records() ? AlignToRecords(share) : share).end;
  return {};
}

// Reads on to `offset` in a stream that cannot jump.
Result<void> Chunks::SkipTo(std::uint64_t offset) {
  std::string piece(kPieceBytes, '\0');
  while (offset > 0) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), offset));
    const std::size_t got = TRY(stream_->Read(std::span(piece).first(want)));
    if (got == 0)
      return Error{Code::kBadInput, Str(paths_[next_.file], ": ends ", offset,
                                        " bytes before where the earlier run stopped; the file has changed")};
    offset -= got;
  }
  return {};
}

std::optional<double> Chunks::Fraction(const Position& position) const {
  if (!total_ || *total_ == 0) return std::nullopt;
  const std::uint64_t begin = cuts_[options_.part.index], end = cuts_[options_.part.index + 1];
  if (begin == end) return 1.0;
  const double done = static_cast<double>(BytesBefore(position)) - static_cast<double>(begin);
  return std::clamp(done / static_cast<double>(end - begin), 0.0, 1.0);
}

std::uint64_t Chunks::BytesBefore(const Position& position) const {
  std::uint64_t before = position.offset;
  for (std::size_t i = 0; i < position.file; ++i) before += sizes_[i];
  return before;
}

Result<void> Chunks::CutAt(Cuts cuts) {
  const base::Lock lock(mutex_);
  if (!total_ || cuts.size() != options_.part.count + 1 || cuts.front() != 0 || cuts.back() != *total_ ||
      !std::is_sorted(cuts.begin(), cuts.end()))
    return Error{Code::kInvalid, Str(Join(paths_, ", "), ": ", total_.value_or(0), " bytes cannot be cut as ",
                                     cuts.empty() ? 0 : cuts.back(), " were; have the files changed?")};
  cuts_ = std::move(cuts);
  return {};
}

}  // namespace freshet::data
