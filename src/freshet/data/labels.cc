#include "data/labels.h"

#include <algorithm>

#include "base/option.h"
#include "data/number.h"

namespace freshet::data {

std::string CanonicalLabel(std::string_view text, char mark) {
  double number = 0;
  return (mark == '.' ? ParseNumber(text, number) : ParseMarked(text, mark, number)) ? Str(number) : std::string(text);
}

void Labels::Index() {
  values_.clear();
  for (const std::string& name : names) {
    double number = 0;
    values_.push_back(ParseNumber(name, number) ? number : std::nan(""));
  }
  double number = 0;
  positive_value_ = ParseNumber(positive, number) ? number : std::nan("");
}

float Labels::Map(std::string_view text) const {
  double number = 0;
  if (ParseNumber(text, number)) return Map(number);
  if (kind == Kind::kReal) return kUnknown;
  if (!positive.empty()) return text == positive ? 1.0f : 0.0f;
  const auto at = std::find(names.begin(), names.end(), text);
  return at == names.end() ? kUnknown : static_cast<float>(at - names.begin());
}

Result<void> Labels::Settle(const std::vector<std::string>& seen) {
  if (!positive.empty()) {
    positive = CanonicalLabel(positive);
    kind = Kind::kBinary;
    names = {"rest", positive};
    Index();
    return {};
  }
  std::vector<std::string> distinct;
  bool all_numbers = true, all_whole = true;
  for (const std::string& text : seen) {
    double number = 0;
    const bool is_number = ParseNumber(text, number);
    if (is_number && !std::isfinite(number)) continue;  // the parser will refuse the row
    all_numbers &= is_number;
    all_whole &= is_number && number == std::floor(number);
    distinct.push_back(CanonicalLabel(text));
  }
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (kind == Kind::kAuto) {
    constexpr std::size_t kMostClasses = 100;
    const bool classes = distinct.size() > 2 && (!all_numbers || (all_whole && distinct.size() <= kMostClasses));
    kind = distinct.size() <= 2 ? Kind::kBinary : (classes ? Kind::kClasses : Kind::kReal);
  }
  if (kind == Kind::kReal) {
    names.clear();
    return {};
  }
  if (names.empty()) {
    names = distinct;
    if (all_numbers)
      std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        double x = 0, y = 0;
        (void)ParseNumber(a, x);
        (void)ParseNumber(b, y);
        return x < y;
      });
    // A head with one side only: the other side of the two customary pairs.
    if (kind == Kind::kBinary && names.size() == 1 && (names[0] == "1" || names[0] == "-1")) names = {"-1", "1"};
    if (kind == Kind::kBinary && names.size() == 1 && names[0] == "0") names = {"0", "1"};
  } else {
    for (std::string& name : names) name = CanonicalLabel(name);
    std::vector<std::string> sorted = names;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return Error{Code::kInvalid, Str(Option("classes"), ": ", Quoted(*twice), " stands twice")};
  }
  Index();
  if (kind == Kind::kBinary && names.size() != 2)
    return Error{Code::kBadInput,
                 Str("a two-class loss needs two label values, found ", names.size(), names.empty() ? "" : ": ",
                     Join({names.begin(), names.begin() + std::min<long>(static_cast<long>(names.size()), 8)}, ", "),
                     "; use ", Option("positive"), " LABEL for one class against the rest, ", Option("loss"),
                     " softmax for several classes, ", Option("classes"), " A,B to name the two, or ", Option("loss"),
                     " squared to predict numbers")};
  return {};
}

std::string Labels::Expected() const {
  if (kind == Kind::kReal) return "a number";
  std::vector<std::string> some(names.begin(), names.begin() + std::min<long>(static_cast<long>(names.size()), 8));
  if (some.size() < names.size()) some.push_back("…");
  return Str("one of ", Join(some, ", "));
}

}  // namespace freshet::data
