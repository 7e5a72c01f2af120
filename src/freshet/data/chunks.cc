#include "data/chunks.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace freshet::data {
namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kHeadBytes = 1 << 20;

std::size_t CountOf(std::string_view bytes, char c) {
  return static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), c));
}

}  // namespace

Result<std::unique_ptr<Chunks>> Chunks::Open(base::Files& files, std::vector<std::string> patterns, Options options) {
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
    auto stream = TRY(OpenBytes(files, chunks->paths_[i]));
    seekable &= stream->size().has_value();
    if (seekable) chunks->sizes_.insert(chunks->sizes_.begin(), *stream->size());
    chunks->stream_ = std::move(stream);  // the first file's stays
  }
  if (seekable) {
    chunks->total_ = 0;
    for (const std::uint64_t size : chunks->sizes_) *chunks->total_ += size;
  }
  chunks->head_.resize(kHeadBytes);
  chunks->head_.resize(TRY(chunks->stream_->Read(chunks->head_)));
  if (chunks->total_) {
    TRY(chunks->Rewind());
  } else {
    chunks->carry_ = chunks->head_;
    chunks->carry_ended_ = chunks->head_.size() < kHeadBytes;
    chunks->file_end_ = kNoEnd;
  }
  if (chunks->head_.size() == kHeadBytes) {
    const std::size_t last = chunks->head_.rfind('\n');
    if (last != std::string::npos) chunks->head_.resize(last + 1);
  }
  return chunks;
}

void Chunks::SetCutting(Cutting cutting, std::uint64_t skip_lines) {
  const std::lock_guard lock(mutex_);
  cutting_ = cutting;
  skip_lines_ = skip_lines;
}

Result<void> Chunks::OpenFile() {
  stream_ = TRY(OpenBytes(files_, paths_[next_.file]));
  carry_.clear();
  carry_ended_ = false;
  file_end_ = kNoEnd;
  fresh_file_ = true;
  next_.offset = next_.line = 0;
  return {};
}

// Moves to where this part begins in the current file, if it has a share in it at all.
Result<void> Chunks::StartOfPart() {
  if (!fresh_file_) return {};
  fresh_file_ = false;
  const std::uint64_t begin_of_file = next_.offset;
  if (total_) {
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < next_.file; ++i) before += sizes_[i];
    const auto share = [&](std::uint64_t k) {
      const auto cut = static_cast<std::uint64_t>(static_cast<unsigned __int128>(*total_) * k / options_.part.count);
      return std::clamp(cut, before, before + sizes_[next_.file]) - before;
    };
    std::uint64_t begin = share(options_.part.index);
    file_end_ = share(options_.part.index + 1);
    if (cutting_.kind == Cutting::Kind::kRecords) {
      const auto align = [&](std::uint64_t at) {
        if (at == 0) return at;
        const std::uint64_t records = at <= cutting_.header_bytes ? 0 : (at - cutting_.header_bytes + cutting_.record_bytes - 1) / cutting_.record_bytes;
        return std::min(sizes_[next_.file], cutting_.header_bytes + records * cutting_.record_bytes);
      };
      begin = align(begin);
      file_end_ = file_end_ == sizes_[next_.file] ? file_end_ : align(file_end_);
    } else if (begin > 0) {
      // The first line that begins at or after `begin`: read on from the byte before it to the next line end. In quoted
      // text a line end inside quotes is none, so the quotes before have to be counted.
      std::string piece(1 << 16, '\0');
      bool inside = false;
      if (cutting_.kind == Cutting::Kind::kQuotedLines)
        for (std::uint64_t at = 0; at < begin - 1;) {
          const std::size_t want = std::min<std::uint64_t>(piece.size(), begin - 1 - at);
          const std::size_t got = TRY(stream_->ReadAt(at, std::span(piece).first(want)));
          inside ^= CountOf({piece.data(), got}, '"') % 2 == 1;
          at += got;
          if (got < want) break;
        }
      std::uint64_t at = begin - 1;
      bool found = false;
      while (!found) {
        const std::size_t got = TRY(stream_->ReadAt(at, piece));
        if (got == 0) break;
        for (std::size_t i = 0; i < got && !found; ++i) {
          if (piece[i] == '"' && cutting_.kind == Cutting::Kind::kQuotedLines) inside = !inside;
          else if (piece[i] == '\n' && !inside) {
            begin = at + i + 1;
            found = true;
          }
        }
        at += got;
      }
      if (!found) begin = sizes_[next_.file];
    }
    next_.offset = std::max(begin_of_file, begin);
    if (next_.offset > 0 && begin_of_file == 0) {  // lines before it, for error messages
      std::string piece(1 << 16, '\0');
      next_.line = 0;
      if (cutting_.kind == Cutting::Kind::kRecords) {
        next_.line = next_.offset > cutting_.header_bytes ? (next_.offset - cutting_.header_bytes) / cutting_.record_bytes : 0;
      } else {
        for (std::uint64_t at = 0; at < next_.offset;) {
          const std::size_t got = TRY(stream_->ReadAt(at, std::span(piece).first(std::min<std::uint64_t>(piece.size(), next_.offset - at))));
          if (got == 0) break;
          next_.line += CountOf({piece.data(), got}, '\n');
          at += got;
        }
      }
    }
  }
  if (next_.offset > 0) return {};
  // Headers: lines to skip, or the bytes before the first record.
  if (cutting_.kind == Cutting::Kind::kRecords) {
    if (file_end_ > 0) {
      Rows skipped;
      std::string header(cutting_.header_bytes, '\0');
      const std::size_t got = TRY(Fill(0, header));
      next_.offset = got;
      if (!total_) carry_.erase(0, got);
    }
    return {};
  }
  for (std::uint64_t i = 0; i < skip_lines_ && file_end_ > 0; ++i) {
    std::string line(1 << 16, '\0');
    const std::size_t got = TRY(Fill(next_.offset, line));
    const std::size_t end = std::string_view(line.data(), got).find('\n');
    const std::size_t skipped = end == std::string_view::npos ? got : end + 1;
    next_.offset += skipped;
    next_.line += 1;
    if (!total_) carry_.erase(0, skipped);
  }
  return {};
}

// Bytes from `offset` on; of a stream, offset must be where the last chunk ended.
Result<std::size_t> Chunks::Fill(std::uint64_t offset, std::span<char> out) {
  if (total_) return stream_->ReadAt(offset, out);
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

// How many of `bytes` make up whole lines or records; 0 when not one is whole.
Result<std::size_t> Chunks::CutAt(std::string_view bytes, bool at_end) const {
  if (at_end) return bytes.size();
  if (cutting_.kind == Cutting::Kind::kRecords) return bytes.size() / cutting_.record_bytes * cutting_.record_bytes;
  if (cutting_.kind == Cutting::Kind::kLines || std::memchr(bytes.data(), '"', bytes.size()) == nullptr) {
    const std::size_t last = bytes.rfind('\n');
    return last == std::string_view::npos ? 0 : last + 1;
  }
  std::size_t end = 0;
  bool inside = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '"') inside = !inside;
    else if (bytes[i] == '\n' && !inside) end = i + 1;
  }
  return end;
}

Result<bool> Chunks::Next(Rows& rows) {
  const std::lock_guard lock(mutex_);
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
  rows.Clear();
  while (true) {
    TRY(StartOfPart());
    const std::uint64_t whole_file = total_ ? sizes_[next_.file] : kNoEnd;
    const bool done = next_.offset >= file_end_;
    std::size_t want = options_.chunk_bytes;
    while (!done) {
      // The last line of a part may go on past the part's end: a line belongs to where it begins.
      const std::uint64_t limit = std::min<std::uint64_t>(want, whole_file - next_.offset);
      char* const text = rows.text.Room(limit + Parser::kPadding);
      const std::size_t got = TRY(Fill(next_.offset, {text, static_cast<std::size_t>(limit)}));
      if (got == 0) break;
      const bool at_end = total_ ? next_.offset + got >= whole_file : got < limit;
      if (got < limit && total_) return Error{Code::kIo, Str(paths_[next_.file], ": became shorter while it was read")};
      std::size_t cut = TRY(CutAt({text, got}, at_end));
      if (cut == 0) {
        if (want >= options_.longest_line_bytes)
          return Error{Code::kBadInput, Str(paths_[next_.file], ":", next_.line + 1, ":1: a line of more than ",
                                            options_.longest_line_bytes, " bytes, expected a line end before that")};
        want *= 2;
        continue;
      }
      if (next_.offset + cut > file_end_ && cutting_.kind != Cutting::Kind::kRecords) {
        // Cut where this part ends: after the line that begins before file_end_ and ends at or after it.
        const std::size_t last = static_cast<std::size_t>(file_end_ - next_.offset) - 1;
        if (cutting_.kind == Cutting::Kind::kLines || std::memchr(text, '"', cut) == nullptr) {
          const void* const found = std::memchr(text + last, '\n', cut - last);
          if (found != nullptr) cut = static_cast<std::size_t>(static_cast<const char*>(found) - text) + 1;
        } else {
          bool inside = false;
          for (std::size_t i = 0; i < cut; ++i) {
            if (text[i] == '"') inside = !inside;
            else if (text[i] == '\n' && !inside && i >= last) {
              cut = i + 1;
              break;
            }
          }
        }
      } else if (cutting_.kind == Cutting::Kind::kRecords && total_) {
        cut = static_cast<std::size_t>(std::min<std::uint64_t>(cut, file_end_ - next_.offset));
      }
      if (!total_) carry_.erase(0, cut);
      rows.begin = next_;
      next_.offset += cut;
      rows.end = next_;
      rows.end.block += 1;
      const bool lines = cutting_.kind != Cutting::Kind::kRecords;
      if (lines) next_.line += CountOf({text, cut}, '\n');
      else next_.line += (cut + cutting_.record_bytes - 1) / cutting_.record_bytes;
      rows.end.line = next_.line;
      std::memset(text + cut, '\n', Parser::kPadding);
      rows.text.SetEnd(text + cut + (lines && text[cut - 1] != '\n' ? 1 : 0));
      return true;
    }
    if (next_.file + 1 >= paths_.size()) return false;
    next_.file += 1;
    TRY(OpenFile());
  }
}

std::optional<double> Chunks::Fraction(const Position& position) const {
  if (!total_ || *total_ == 0) return std::nullopt;
  double before = static_cast<double>(position.offset);
  for (std::size_t i = 0; i < position.file; ++i) before += static_cast<double>(sizes_[i]);
  const double share = 1.0 / static_cast<double>(options_.part.count);
  return std::clamp((before / static_cast<double>(*total_) - share * static_cast<double>(options_.part.index)) / share, 0.0, 1.0);
}

Result<void> Chunks::SkipTo(std::uint64_t offset) {
  std::string piece(1 << 16, '\0');
  for (std::uint64_t at = 0; at < offset;) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), offset - at));
    const std::size_t got = TRY(stream_->Read(std::span(piece).first(want)));
    if (got == 0) return Error{Code::kBadInput, Str(paths_[next_.file], ": ends before byte ", offset, ", where the earlier run stopped; the file has changed")};
    at += got;
  }
  return {};
}

Result<void> Chunks::Seek(const Position& position) {
  const std::lock_guard lock(mutex_);
  if (position.file >= paths_.size())
    return Error{Code::kBadInput, Str("the earlier run stopped in file ", position.file + 1, ", but only ", paths_.size(), " were given")};
  if (paths_[position.file] == "-" && position.offset + position.block == 0 && next_.block == 0 && sequence_ == 0) return {};
  if (paths_[position.file] == "-")
    return Error{Code::kInvalid, "standard input cannot be read twice; give a file, or one epoch only"};
  next_ = position;
  TRY(OpenFile());
  next_ = position;
  sequence_ = 0;
  if (position.offset == 0) return {};
  if (!total_) {
    fresh_file_ = false;
    return SkipTo(position.offset);
  }
  TRY(StartOfPart());  // finds this part's end; the position itself is already inside the part
  next_ = position;
  return {};
}

}  // namespace freshet::data
