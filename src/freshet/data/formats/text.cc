#include "data/formats/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/option.h"
#include "data/bytes.h"
#include "data/formats/format.h"
#include "data/go_on.h"

namespace freshet::data {
namespace {

constexpr std::uint64_t kFewestSteps = 2, kMostSteps = 65'536;
constexpr std::size_t kBytes = 256;
using Occurs = std::array<bool, kBytes>;

void Note(std::string_view text, Occurs& occurs) {
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
}

std::vector<std::string> NamesOf(const Occurs& occurs) {
  std::vector<std::string> names;
  for (std::size_t byte = 0; byte < kBytes; ++byte)
    if (occurs[byte]) names.push_back(SymbolName(static_cast<unsigned char>(byte)));
  return names;
}

class TextParser final : public Parser {
 public:
  // Borrows the description, whose alphabet may still grow before the first chunk is parsed.
  TextParser(const Description& description, bool labelled)
      : description_(description), steps_(static_cast<std::size_t>(description.features)), labelled_(labelled) {}

  Cutting cutting() const override {
    return {.kind = Cutting::Kind::kRecords, .record_bytes = steps_, .ahead_bytes = 1};
  }

  void Parse(Rows& rows) const override {
    rows.width = steps_;
    const std::string_view text(rows.text.data(), rows.text.size());
    const Numbers numbers = NumberSymbols();
    rows.dense.Reserve(rows.dense.size() + text.size());
    for (std::size_t i = 0; (i + 1) * steps_ + (labelled_ ? 1 : 0) <= text.size(); ++i)
      ParseRow(text.substr(i * steps_, steps_ + 1), i, numbers, rows);
  }

 private:
  using Numbers = std::array<float, kBytes>;

  float unknown() const { return static_cast<float>(description_.labels.names.size()); }

  Numbers NumberSymbols() const {
    const std::vector<std::string>& names = description_.labels.names;
    Numbers numbers;
    for (std::size_t byte = 0, next = 0; byte < kBytes; ++byte) {
      const bool known = next < names.size() && names[next] == SymbolName(static_cast<unsigned char>(byte));
      numbers[byte] = known ? static_cast<float>(next++) : unknown();
    }
    return numbers;
  }

  // `symbols`: those of the row and, where there is one, the symbol that follows. `number` counts rows of the chunk.
  void ParseRow(std::string_view symbols, std::uint64_t number, const Numbers& numbers, Rows& rows) const {
    const auto number_of = [&](char symbol) { return numbers[static_cast<unsigned char>(symbol)]; };
    const auto foreign = [&](char symbol) { return number_of(symbol) == unknown(); };
    const char* const begin = symbols.data();
    const char* const end = begin + symbols.size();
    if (const char* const at = std::find_if(begin, end, foreign); labelled_ && at != end) {
      const std::uint64_t byte = rows.begin.offset + static_cast<std::uint64_t>(at - rows.text.data()) + 1;
      NoteBadRow(rows, number, begin, end, at,
                 Str("byte ", byte, ": symbol ", SymbolName(static_cast<unsigned char>(*at)),
                     " is not of the alphabet, expected ", description_.labels.Expected()));
      return;
    }
    for (const char symbol : symbols.substr(0, steps_)) rows.dense.Append(number_of(symbol));
    const bool known = symbols.size() > steps_ && !foreign(symbols[steps_]);
    rows.labels.Append(known ? number_of(symbols[steps_]) : std::nanf(""));
  }

  const Description& description_;
  const std::size_t steps_;
  const bool labelled_;
};

// How long the data is, as far as that can be seen; of a packed file or a pipe, how much of it was looked at.
Result<std::uint64_t> SymbolsIn(const Head& head, base::Files& files) {
  if (!files.Exists(head.path) || !Repeatable(files, head.path)) return head.bytes.size();
  return TRY(OpenBytes(files, head.path))->size().value_or(head.bytes.size());
}

bool LooksLike(const Head&) { return false; }  // any bytes could be text: only when asked for

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  if (options.task == Labels::Kind::kReal || options.task == Labels::Kind::kBinary || !options.positive.empty() ||
      !options.classes.empty())
    return Error{Code::kInvalid, Str("the labels of text are its symbols, as classes: use ", Option("loss"),
                                     " softmax, and neither ", Option("positive"), " nor ", Option("classes"))};
  if (options.steps < kFewestSteps || options.steps > kMostSteps)
    return Error{Code::kInvalid,
                 Str(Option("steps"), " ", options.steps, ", expected ", kFewestSteps, " to ", kMostSteps)};
  Occurs occurs{};
  Note(head.bytes, occurs);
  description.dense = true;
  description.standardise = false;
  description.features = options.steps;
  description.shape = {options.steps};
  description.labels.kind = Labels::Kind::kClasses;
  description.labels.names = NamesOf(occurs);
  if (options.others != nullptr)
    description.labels.names = TRY(AgreeOnLabels(*options.others, description.labels.names));
  description.labels.Index();
  return {};
}

Result<std::unique_ptr<Parser>> Make(const Head& head, const Description& description, const InputOptions&,
                                     base::Files& files, bool labelled) {
  const std::uint64_t steps = description.features;
  if (steps < kFewestSteps || steps > kMostSteps || description.labels.kind != Labels::Kind::kClasses)
    return Error{Code::kCorrupt, "input description: not one of text"};
  const std::uint64_t fewest = steps + (labelled ? 1 : 0), found = TRY(SymbolsIn(head, files));
  if (found < fewest)
    return Error{Code::kBadInput, Str(head.path, ":1:1: found ", found, " symbols, expected at least ", fewest,
                                      ": the ", steps, " of a row", labelled ? " and the one that follows" : "")};
  return std::unique_ptr<Parser>(std::make_unique<TextParser>(description, labelled));
}

}  // namespace

std::string SymbolName(unsigned char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7f) return std::string(1, static_cast<char>(byte));
  char escaped[8];
  std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
  return escaped;
}

Result<std::vector<std::string>> ScanSymbols(base::Files& files, const std::vector<std::string>& patterns,
                                             const std::atomic<bool>* stop) {
  Occurs occurs{};
  std::string piece(1 << 16, '\0');
  for (const std::string& pattern : patterns)
    for (const std::string& path : TRY(files.Glob(pattern))) {
      const auto stream = TRY(OpenBytes(files, path));
      for (std::size_t got = piece.size(); got == piece.size();) {
        TRY(GoOn(stop));
        got = TRY(stream->Read(piece));
        Note(std::string_view(piece).substr(0, got), occurs);
      }
    }
  return NamesOf(occurs);
}

extern const Format kText = {kTextFormat, "symbols of text, each row followed by its label", LooksLike, Describe, Make};

}  // namespace freshet::data
