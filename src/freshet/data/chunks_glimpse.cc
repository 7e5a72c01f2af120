// A look at some place of the input that leaves the reading where it is.

#include <algorithm>
#include <cstring>

#include "data/chunks.h"
#include "data/formats/lines.h"

namespace freshet::data {

Result<bool> Chunks::Glimpse(std::uint64_t place, std::uint64_t places, std::size_t most, Rows& rows) const {
  rows.Clear();
  rows.begin = rows.end = {};
  std::string text;
  if (!total_ || place == 0) {
    const std::string_view head = this->head().bytes;
    std::uint64_t begin = records() ? cutting_.header_bytes : 0;
    if (has_header_) begin = std::min(EndOfHeader(head, quoted()), head.size());
    if (place > 0 || begin >= head.size()) return false;
    text = head.substr(begin, most);
    rows.begin.offset = begin;
  } else {
    std::uint64_t at = *total_ / places * place;
    while (at >= sizes_[rows.begin.file]) at -= sizes_[rows.begin.file++];
    if (records())
      at = cutting_.header_bytes +
           (at - std::min(at, cutting_.header_bytes)) / cutting_.record_bytes * cutting_.record_bytes;
    const auto stream = TRY(OpenBytes(files_, paths_[rows.begin.file]));
    text.resize(most);
    text.resize(TRY(stream->ReadAt(at, text)));
    if (!records()) text.erase(0, std::min(LineEnds(false).First(text), text.size()));
    rows.begin.offset = at;
  }
  if (records()) {
    text.resize(text.size() / cutting_.record_bytes * cutting_.record_bytes);
  } else if (const std::size_t end = LineEnds(false).Last(text); end != LineEnds::kNone) {
    text.resize(end);
  } else if (text.size() == most) {
    return false;
  }
  if (text.empty()) return false;
  const std::size_t size = text.size();
  text.append(Parser::kPadding, '\n');
  rows.text.Append(std::span<const char>(text));
  rows.text.Resize(size);
  return true;
}

}  // namespace freshet::data
