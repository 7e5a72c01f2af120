// LIBSVM / SVMlight text:  label [qid:n] index:value index:value … [# comment]
// Indices ascend. Speed comes from reading eight bytes at a time (number.h) and from asking for room once per chunk.

#include <cmath>

#include "base/option.h"
#include "base/random.h"
#include "data/formats/format.h"
#include "data/formats/lines.h"
#include "data/number.h"

namespace freshet::data {
namespace {

// Without hashing the model has a weight for every index up to the largest; this bounds its memory.
constexpr std::uint64_t kMostFeatures = 1u << 28;

constexpr float kNoLabel = std::numeric_limits<float>::quiet_NaN();

bool EndsLine(const char* at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }
const char* LineEnd(const char* at, const char* end) {
  const void* const found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
  return found == nullptr ? end : static_cast<const char*>(found);
}
std::string_view TokenAt(const char* at, const char* end) {
  const char* stop = at;
  while (stop < end && !IsBlank(*stop) && *stop != '\n' && *stop != '\r') ++stop;
  return {at, static_cast<std::size_t>(stop - at)};
}

class LibsvmParser final : public Parser {
 public:
  LibsvmParser(const Description& description, bool labelled)
      : labels_(description.labels),
        labelled_(labelled),
        base_(static_cast<std::uint64_t>(description.index_base)),
        bits_(description.bits) {}

  void Parse(Rows& rows) const override {
    if (bits_ > 0)
      ParseAll<true>(rows);
    else
      ParseAll<false>(rows);
  }

 private:
  template <bool kHashed>
  void ParseAll(Rows& rows) const {
    const char* at = rows.text.data();
    const char* const end = at + rows.text.size();
    // The shortest entry is "1:1 ", the shortest row "1\n".
    std::uint32_t* index = rows.indices.Room(rows.text.size() / 4 + 1);
    float* value = rows.values.Room(rows.text.size() / 4 + 1);
    const std::uint32_t* const first = rows.indices.data();
    std::uint64_t line = 0;
    for (; at < end; ++line) {
      const char* const begin = at;
      at = SkipBlanks(at);
      if (*at == '#') {
        at = LineEnd(at, end) + 1;
        continue;
      }
      if (EndsLine(at)) {
        at = LineEnd(at, end) + 1;
        continue;
      }
      std::uint32_t* const row_index = index;
      float* const row_value = value;
      Mistake mistake;
      float label = 0;
      at = ParseRow<kHashed>(at, end, label, index, value, mistake);
      if (mistake.at != nullptr) [[unlikely]] {
        const char* const stop = LineEnd(begin, end);
        NoteBadRow(rows, line, begin, stop, mistake.at, std::move(mistake.what));
        index = row_index;
        value = row_value;
        at = stop + 1;
        continue;
      }
      rows.labels.Append(label);
      rows.offsets.Append(static_cast<std::uint32_t>(index - first));
    }
    rows.indices.SetEnd(index);
    rows.values.SetEnd(value);
  }

  // Reads one row and returns the start of the next. On a mistake the return value means nothing.
  template <bool kHashed>
  const char* ParseRow(const char* at, const char* end, float& label, std::uint32_t*& index_out, float*& value_out,
                       Mistake& mistake) const {
    const auto wrong = [&](const char* where, std::string what) {
      mistake = {where, std::move(what)};
      return where;
    };
    double number = 0;
    const char* next = ParseDouble(at, end, number);
    if (!labelled_ && next != nullptr && *next == ':') [[unlikely]] {  // the row begins with its features
      label = kNoLabel;
      next = at;
    } else if (next == nullptr || !(IsBlank(*next) || EndsLine(next))) {
      return wrong(
          at, Str("found ", Quoted(TokenAt(at, end)), ", expected a label (", labels_.Expected(), ") and a blank"));
    } else {
      label = labels_.Map(number);
      if (!std::isfinite(label)) [[unlikely]] {
        if (labelled_) return wrong(at, Str("label ", Quoted(TokenAt(at, end)), ", expected ", labels_.Expected()));
        label = kNoLabel;
      }
    }
    at = SkipBlanks(next);
    if (*at == 'q' && std::string_view(at, 4) == "qid:") at = SkipBlanks(at + TokenAt(at, end).size());
    std::uint64_t least = base_;  // the smallest index that may come next
    std::uint32_t* index_at = index_out;
    float* value_at = value_out;
    while (true) {
      std::uint64_t index = 0;
      next = ParseWhole(at, index);
      if (next == nullptr || *next != ':') [[unlikely]] {
        if (IsBlank(*at)) {
          at = SkipBlanks(at);
          continue;
        }
        if (EndsLine(at)) break;
        if (*at == '#') {
          at = LineEnd(at, end);
          break;
        }
        return wrong(at, Str("found ", Quoted(TokenAt(at, end)), ", expected index:value"));
      }
      if (index < least) [[unlikely]]
        return wrong(at, IndexMistake(index, least));
      if (!kHashed && index - base_ >= kMostFeatures) [[unlikely]]
        return wrong(at, Str("index ", index, " is too large for a model with one weight each (most ",
                             kMostFeatures - 1 + base_, "), hash the features with ", Option("bits")));
      least = index + 1;
      *index_at++ = kHashed ? static_cast<std::uint32_t>(base::Hash64(index)) & ((1u << bits_) - 1)
                            : static_cast<std::uint32_t>(index - base_);
      const char* const value_begin = next + 1;
      if (static_cast<unsigned char>(*value_begin - '0') < 10 &&
          value_begin[1] == ' ') {  // one digit: most of what there is
        *value_at++ = static_cast<float>(*value_begin - '0');
        at = value_begin + 2;
        continue;
      }
      next = ParseDouble(value_begin, end, number);
      if (next == nullptr || !(IsBlank(*next) || EndsLine(next)) || !std::isfinite(static_cast<float>(number)))
          [[unlikely]]
        return wrong(value_begin, Str("found ", Quoted(TokenAt(value_begin, end)), ", expected a finite number"));
      *value_at++ = static_cast<float>(number);
      at = next + (*next == ' ' ? 1 : 0);
    }
    index_out = index_at;
    value_out = value_at;
    return at + (*at == '\r' ? 2 : 1);
  }

  std::string IndexMistake(std::uint64_t index, std::uint64_t least) const {
    if (index < base_)
      return Str("index ", index, " where features count from ", base_, ", use ", Option("index-base"),
                 " 0 if they count from 0");
    if (index + 1 == least) return Str("index ", index, " stands twice in the row, expected each once");
    return Str("index ", index, " after index ", least - 1, ", expected ascending order");
  }

  const Labels& labels_;
  const bool labelled_;
  const std::uint64_t base_;
  const int bits_;
};

bool LooksLike(const Head& head) {
  // The first line that is not a comment: a number, then index:value or the end of the line.
  for (std::string_view line : Split(head.bytes.substr(0, 1 << 16), '\n')) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t blank = line.find_first_of(" \t");
    double number = 0;
    if (!ParseNumber(line.substr(0, blank), number)) return false;
    if (blank == std::string_view::npos) continue;  // a row without features
    const std::string_view token = Trim(line.substr(blank));
    const std::size_t colon = token.find(':');
    return colon != std::string_view::npos && colon > 0 &&
           (token.starts_with("qid:") ||
            token.substr(0, colon).find_first_not_of("0123456789") == std::string_view::npos) &&
           colon + 1 < token.size() && token[colon + 1] != ':';
  }
  return false;
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  TRY(CheckBits(options.bits));
  std::vector<std::string> seen;
  bool any = false, zero = false;
  for (std::string_view line : Split(head.bytes, '\n')) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    any = true;
    seen.emplace_back(line.substr(0, line.find_first_of(" \t")));
    double number = 0;
    if (!ParseNumber(seen.back(), number)) seen.pop_back();  // the parser will say what is wrong with it
    zero |= line.find(" 0:") != std::string_view::npos || line.find("\t0:") != std::string_view::npos;
  }
  description.index_base = options.index_base >= 0 ? options.index_base : (zero ? 0 : 1);
  description.bits = options.bits;
  if (!any)
    return Error{Code::kBadInput,
                 Str(head.path, ":1:1: found only comments and blank lines, expected label index:value …")};
  return SettleLabels(head, options, seen, description.labels);
}

Result<std::unique_ptr<Parser>> Make(const Head&, const Description& description, const InputOptions&, base::Files&,
                                     bool labelled) {
  return std::unique_ptr<Parser>(std::make_unique<LibsvmParser>(description, labelled));
}

}  // namespace

extern const Format kLibsvm = {"libsvm", "label index:value …, one row a line", LooksLike, Describe, Make};

}  // namespace freshet::data
