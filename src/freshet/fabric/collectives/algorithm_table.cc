#include <charconv>

#include "fabric/collectives/collectives.h"

namespace freshet::fabric {
namespace {

struct Named {
  Algorithm algorithm;
  std::string_view name;
};
constexpr Named kNames[] = {
    {Algorithm::kAuto, "auto"},     {Algorithm::kCentral, "central"}, {Algorithm::kRing, "ring"},
    {Algorithm::kTree, "tree"},     {Algorithm::kHalving, "halving"}, {Algorithm::kHierarchical, "hierarchical"},
    {Algorithm::kDirect, "direct"}, {Algorithm::kNative, "native"},
};

Result<AlgorithmTable::Entry> ParseEntry(std::string_view text) {
  const std::size_t space = text.find(' ');
  AlgorithmTable::Entry entry;
  const std::string_view number = text.substr(0, space);
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), entry.from_bytes);
  if (space == std::string_view::npos || parsed.ec != std::errc() || parsed.ptr != number.data() + number.size())
    return Error{Code::kInvalid, Str("the table of algorithms has ", Quoted(text),
                                     " where it needs a size in bytes and a name, such as "
                                     "\"65536 ring\"")};
  entry.algorithm = TRY(AlgorithmOf(Trim(text.substr(space))));
  if (entry.algorithm == Algorithm::kAuto)
    return Error{Code::kInvalid,
                 "the table of algorithms is what auto means: "
                 "name another algorithm in it"};
  return entry;
}

}  // namespace

std::string_view NameOf(Algorithm algorithm) {
  for (const Named& named : kNames) {
    if (named.algorithm == algorithm) return named.name;
  }
  return "unknown";
}

Result<Algorithm> AlgorithmOf(std::string_view name) {
  for (const Named& named : kNames) {
    if (named.name == name) return named.algorithm;
  }
  const std::string nearest = Nearest(name, AlgorithmNames());
  return Error{Code::kInvalid, Str("no all-reduce algorithm is called ", Quoted(name),
                                   nearest.empty() ? Str(": choose from ", Join(AlgorithmNames(), ", "))
                                                   : Str(": did you mean ", nearest, "?"))};
}

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names;
  for (const Named& named : kNames) names.emplace_back(named.name);
  return names;
}

Algorithm AlgorithmTable::For(std::uint64_t bytes) const {
  CHECK(!entries.empty() && entries.front().from_bytes == 0);
  Algorithm algorithm = entries.front().algorithm;
  for (const Entry& entry : entries) {
    if (entry.from_bytes <= bytes) algorithm = entry.algorithm;
  }
  return algorithm;
}

std::string AlgorithmTable::ToText() const {
  std::vector<std::string> parts;
  for (const Entry& entry : entries) parts.push_back(Str(entry.from_bytes, " ", NameOf(entry.algorithm)));
  return Join(parts, ", ");
}

Result<AlgorithmTable> AlgorithmTable::FromText(std::string_view text) {
  AlgorithmTable table;
  for (const std::string_view part : Split(text, ',')) {
    const Entry entry = TRY(ParseEntry(Trim(part)));
    const bool in_order =
        table.entries.empty() ? entry.from_bytes == 0 : entry.from_bytes > table.entries.back().from_bytes;
    if (!in_order)
      return Error{Code::kInvalid, Str("the table of algorithms ", Quoted(text), " is not in order at ",
                                       entry.from_bytes, ": sizes begin at 0 and rise")};
    table.entries.push_back(entry);
  }
  return table;
}

}  // namespace freshet::fabric
