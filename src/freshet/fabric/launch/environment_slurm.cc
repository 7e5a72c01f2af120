#include "fabric/launch/environment_slurm.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace freshet::fabric {
namespace {

constexpr std::size_t kMost = 65'536;  // nodes of a list: more is a mistake

std::optional<int> NumberOf(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text[0] == '-') return std::nullopt;
  return number;
}

Error Malformed(std::string_view list, std::string_view wanted) {
  return Error{Code::kInvalid, Str("found the list ", Quoted(list), ", expected ", wanted)};
}

// Splits at the commas that are not within brackets.
std::vector<std::string_view> SplitOutside(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] != ',') {
      depth += list[i] == '[' ? 1 : (list[i] == ']' ? -1 : 0);
    } else if (i == list.size() || depth == 0) {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return parts;
}

// What stands in brackets: "1-3,7" is 1 2 3 7, as wide as it was written.
std::optional<std::vector<std::string>> ExpandRanges(std::string_view ranges) {
  std::vector<std::string> out;
  for (const std::string_view range : Split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash),
                           last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    const auto begin = NumberOf(first), end = NumberOf(last);
    if (!begin || !end || *end < *begin || static_cast<std::size_t>(*end - *begin) >= kMost - out.size())
      return std::nullopt;
    for (int n = *begin; n <= *end; ++n) {
      const std::string digits = Str(n);
      out.push_back(std::string(first.size() - std::min(first.size(), digits.size()), '0') + digits);
    }
  }
  return out;
}

// One part of a list: names before, numbers within, and the same again for what follows.
std::optional<std::vector<std::string>> ExpandPart(std::string_view part) {
  const std::size_t open = part.find('['), close = part.find(']');
  if (open == std::string_view::npos) {
    if (close != std::string_view::npos) return std::nullopt;
    return std::vector{std::string(part)};
  }
  if (close == std::string_view::npos || close < open) return std::nullopt;
  const auto numbers = ExpandRanges(part.substr(open + 1, close - open - 1));
  const auto rest = ExpandPart(part.substr(close + 1));
  if (!numbers || !rest || numbers->size() * rest->size() > kMost) return std::nullopt;
  std::vector<std::string> out;
  for (const std::string& number : *numbers)
    for (const std::string& tail : *rest) out.push_back(Str(part.substr(0, open), number, tail));
  return out;
}

}  // namespace

Result<std::vector<std::string>> ExpandNodes(std::string_view list) {
  std::vector<std::string> out;
  for (const std::string_view part : SplitOutside(list)) {
    const auto nodes = ExpandPart(part);
    if (part.empty() || !nodes || out.size() + nodes->size() > kMost)
      return Malformed(list, "names of nodes such as n[1-3,7],m2");
    out.insert(out.end(), nodes->begin(), nodes->end());
  }
  return out;
}

Result<std::vector<int>> ExpandCounts(std::string_view list) {
  std::vector<int> out;
  for (const std::string_view part : Split(list, ',')) {
    const std::size_t open = part.find("(x");
    const auto count = NumberOf(part.substr(0, open));
    std::optional<int> times = 1;
    if (open != std::string_view::npos)
      times = part.ends_with(')') ? NumberOf(part.substr(open + 2, part.size() - open - 3)) : std::nullopt;
    if (!count || !times || static_cast<std::size_t>(*times) > kMost - out.size())
      return Malformed(list, "tasks of each node such as 2(x3),1");
    out.insert(out.end(), static_cast<std::size_t>(*times), *count);
  }
  return out;
}

}  // namespace freshet::fabric
