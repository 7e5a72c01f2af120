#include <array>

#include "data/format.h"

namespace freshet::data {

// Each format defines its entry in its own file. Order matters: the strict ones ask first.
extern const Format kIdx, kCifar10, kLibsvm, kVw, kRatings, kCsv;

std::span<const Format> Formats() {
  static const std::array formats = {kIdx, kVw, kLibsvm, kRatings, kCifar10, kCsv};
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

Result<const Format*> SniffFormat(const Head& head) {
  for (const Format& format : Formats())
    if (format.looks_like(head)) return &format;
  return Error{Code::kBadInput, Str(head.path, ": cannot tell what format this is; it begins with ",
                                    Quoted(head.bytes.substr(0, 40)), "; say it with --format")};
}

Result<void> SettleLabels(const InputOptions& options, const std::vector<std::string>& seen, Labels& labels) {
  labels.kind = options.task;
  labels.positive = options.positive;
  labels.names = options.classes;
  return labels.Settle(seen);
}

void NoteBadRow(Rows& rows, std::uint64_t line, const char* begin, const char* end, const char* at, std::string what) {
  constexpr std::ptrdiff_t kLongest = 1000;
  rows.bad.push_back({line, static_cast<std::uint64_t>(at - begin) + 1, std::move(what),
                      std::string(begin, std::min(end, begin + kLongest))});
}

}  // namespace freshet::data
