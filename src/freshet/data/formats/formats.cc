#include <algorithm>
#include <array>

#include "base/option.h"
#include "data/formats/format.h"

namespace freshet::data {

// Each format defines its entry in its own file. Order matters: the strict ones ask first.
extern const Format kIdx, kCifar10, kLibsvm, kVw, kRatings, kCsv, kText;

std::span<const Format> Formats() {
  static const std::array formats = {kIdx, kVw, kLibsvm, kRatings, kCifar10, kCsv, kText};
  return formats;
}

Result<const Format*> FindFormat(std::string_view name) {
  std::vector<std::string> names;
  for (const Format& format : Formats()) {
    if (format.name == name) return &format;
    names.emplace_back(format.name);
  }
  return Error{Code::kInvalid, Str("format ", Quoted(name), " is unknown; expected auto, ", Join(names, ", "))};
}

namespace {

bool IsCommentOrBlank(std::string_view line) { return Trim(line).empty() || Trim(line).front() == '#'; }

}  // namespace

Result<const Format*> SniffFormat(const Head& head) {
  constexpr std::size_t kEnough = 4096;
  const auto lines = Split(head.bytes, '\n');
  if (std::all_of(lines.begin(), lines.end(), IsCommentOrBlank))
    return Error{Code::kBadInput, Str(head.path, ":1:1: found only comments and blank lines, expected rows of data")};
  for (const Format& format : Formats())
    if (format.looks_like(head)) return &format;
  std::vector<std::string> names;
  for (const Format& format : Formats()) names.emplace_back(format.name);
  const bool text = head.bytes.substr(0, kEnough).find('\0') == std::string_view::npos;
  return Error{Code::kBadInput,
               Str(head.path, ":1:1: found ", text ? Quoted(head.bytes.substr(0, 40)) : "bytes that are no text",
                   ", expected a format that can be told by its looks; say which it is with ", Option("format"), " (",
                   Join(names, ", "), ")")};
}

Result<void> SettleLabels(const Head& head, const InputOptions& options, const std::vector<std::string>& seen_here,
                          Labels& labels) {
  const auto seen = options.others == nullptr ? seen_here : TRY(AgreeOnLabels(*options.others, seen_here));
  labels.kind = options.task;
  labels.positive = options.positive;
  labels.names = options.classes;
  const bool told = labels.kind == Labels::Kind::kReal || !labels.positive.empty() || !labels.names.empty();
  if (seen.empty() && !told)
    return Error{Code::kBadInput, Str(head.path, ":1:1: found no row with a label, expected at least one")};
  const auto result = labels.Settle(seen);
  if (!result.ok()) return Error{result.error().code, Str(head.path, ": ", result.error().text)};
  return {};
}

Result<void> CheckBits(int bits) {
  constexpr int kMost = 31;  // indices have 32 bits, of which one value is taken (kUnseen)
  if (bits < 0 || bits > kMost) return Error{Code::kInvalid, Str(Option("bits"), " ", bits, ", expected 1 to ", kMost)};
  return {};
}

void NoteBadRow(Rows& rows, std::uint64_t line, const char* begin, const char* end, const char* at, std::string what) {
  constexpr std::ptrdiff_t kLongest = 1000;
  rows.bad.push_back({line, static_cast<std::uint64_t>(at - begin) + 1, std::move(what),
                      std::string(begin, std::min(end, begin + kLongest))});
}

}  // namespace freshet::data
