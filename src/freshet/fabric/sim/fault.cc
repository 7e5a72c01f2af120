#include "fabric/sim/fault.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "base/random.h"
#include "base/str.h"

namespace freshet::fabric::sim {
namespace {

using base::Clock;
using Kind = Fault::Kind;

// What is said of a kind, besides its time.
struct Form {
  Kind kind;
  std::string_view word;
  bool between;              // A|B instead of rank=
  std::string_view measure;  // by or times; "": none
  enum { kNever, kMay, kMust } lasts;
};
constexpr Form kForms[] = {
    {Kind::kCrash, "crash", false, "", Form::kMay},
    {Kind::kPowerOff, "power-off", false, "", Form::kNever},
    {Kind::kPause, "pause", false, "", Form::kMust},
    {Kind::kPartition, "partition", true, "", Form::kMay},
    {Kind::kDelay, "delay", true, "by", Form::kMay},
    {Kind::kDisconnect, "disconnect", true, "", Form::kNever},
    {Kind::kSlow, "slow", false, "times", Form::kMay},
    {Kind::kDiskFull, "disk-full", false, "", Form::kMay},
    {Kind::kTornWrite, "torn-write", false, "", Form::kNever},
    {Kind::kClockJump, "clock-jump", false, "by", Form::kNever},
};

const Form& FormOf(Kind kind) {
  return *std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& form) { return form.kind == kind; });
}

Error Wrong(std::string_view fault, const std::string& why) {
  return {Code::kInvalid, Str("fault ", Quoted(Trim(fault)), ": ", why)};
}

std::optional<double> NumberOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<Clock::Duration> TimeOf(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("+-.0123456789");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::map<std::string_view, double> seconds = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}};
  const auto found = seconds.find(text.substr(unit));
  const auto number = NumberOf(text.substr(0, unit));
  if (found == seconds.end() || !number.has_value() || std::abs(*number) * found->second > 1e9) return std::nullopt;
  return Clock::Duration(std::llround(*number * found->second * 1e9));
}

std::string TextOf(Clock::Duration time) {
  const auto count = time.count();
  if (count % 1'000'000'000 == 0) return Str(count / 1'000'000'000, "s");
  if (count % 1'000'000 == 0) return Str(count / 1'000'000, "ms");
  return Str(static_cast<double>(count) / 1e3, "us");
}

Result<std::vector<int>> RanksOf(std::string_view text, int size, std::string_view fault) {
  std::vector<int> ranks;
  const auto rank = [&](std::string_view word) -> Result<int> {
    int number = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0)
      return Wrong(fault, Str(Quoted(word), " is no rank"));
    if (number >= size) return Wrong(fault, Str("there is no rank ", number, ": the group has ", size, " members"));
    return number;
  };
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t dash = part.find('-');
    const int first = TRY(rank(part.substr(0, dash)));
    const int last = dash == std::string_view::npos ? first : TRY(rank(part.substr(dash + 1)));
    for (int i = first; i <= last; ++i) ranks.push_back(i);
  }
  if (ranks.empty()) return Wrong(fault, "it names no rank");
  return ranks;
}

std::string TextOf(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  for (const int rank : ranks) words.push_back(Str(rank));
  return Join(words, ",");
}

Result<void> ReadSides(std::string_view word, int size, std::string_view text, Fault& fault) {
  const std::size_t cut = word.find_first_of("|>");
  if (cut == std::string_view::npos) return Wrong(text, "between whom? Write 0-3|4-7, or 0>1 for one way");
  fault.one_way = word[cut] == '>';
  fault.ranks = TRY(RanksOf(word.substr(0, cut), size, text));
  fault.others = TRY(RanksOf(word.substr(cut + 1), size, text));
  for (const int rank : fault.ranks)
    if (std::find(fault.others.begin(), fault.others.end(), rank) != fault.others.end())
      return Wrong(text, Str("rank ", rank, " is on both sides"));
  return {};
}

Result<Fault> ParseFault(std::string_view text, int size) {
  std::vector<std::string_view> words;
  for (const std::string_view word : Split(text, ' '))
    if (!word.empty()) words.push_back(word);
  const auto form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& known) { return known.word == words[0]; });
  if (form == std::end(kForms)) {
    std::vector<std::string> known;
    for (const Form& each : kForms) known.emplace_back(each.word);
    return Wrong(text, Str("there is no ", Quoted(words[0]), "; known are ", Join(known, ", ")));
  }
  Fault fault{.kind = form->kind};
  bool when = false, measured = form->measure.empty();
  for (const std::string_view word : std::vector(words.begin() + 1, words.end())) {
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
    const auto time = [&]() -> Result<Clock::Duration> {
      const auto parsed = TimeOf(value);
      if (!parsed.has_value() || (parsed->count() < 0 && form->kind != Kind::kClockJump))
        return Wrong(text, Str(Quoted(word), ": a time is a number and a unit, such as 2.5s or 300ms"));
      return *parsed;
    };
    if (equals == std::string_view::npos && form->between && fault.ranks.empty()) {
      TRY(ReadSides(word, size, text, fault));
    } else if (key == "rank" && !form->between) {
      fault.ranks = TRY(RanksOf(value, size, text));
    } else if (key == "at" || key == "from") {
      fault.at = TRY(time());
      when = true;
    } else if (key == "for" && form->lasts != Form::kNever) {
      fault.lasts = TRY(time());
    } else if (key == "by" && form->measure == "by") {
      fault.by = TRY(time());
      measured = true;
    } else if (key == "times" && form->measure == "times") {
      const auto number = NumberOf(value);
      if (!number.has_value() || *number < 1) return Wrong(text, Str(Quoted(word), ": a number from 1 on"));
      fault.times = *number;
      measured = true;
    } else {
      return Wrong(text, Str(Quoted(word), " does not belong to ", form->word));
    }
  }
  if (fault.ranks.empty()) return Wrong(text, form->between ? "between whom? Write 0-3|4-7" : "whose? Write rank=3");
  if (!when) return Wrong(text, "when? Write at=2.5s");
  if (!measured) return Wrong(text, Str("how much? Write ", form->measure, "="));
  if (form->lasts == Form::kMust && fault.lasts == Fault::kForEver) return Wrong(text, "how long? Write for=2s");
  return fault;
}

}  // namespace

std::string Fault::ToText() const {
  const Form& form = FormOf(kind);
  std::string text = Str(form.word, " ");
  text += form.between ? Str(TextOf(ranks), one_way ? ">" : "|", TextOf(others)) : Str("rank=", TextOf(ranks));
  if (form.measure == "by") text += Str(" by=", TextOf(by));
  if (form.measure == "times") text += Str(" times=", times);
  text += Str(" at=", TextOf(at));
  if (form.lasts != Form::kNever && lasts != kForEver) text += Str(" for=", TextOf(lasts));
  return text;
}

Result<std::vector<Fault>> ParseFaults(std::string_view text, int size) {
  std::vector<Fault> faults;
  for (const std::string_view part : Split(text, ';'))
    if (!Trim(part).empty()) faults.push_back(TRY(ParseFault(Trim(part), size)));
  return faults;
}

Fault DrawFault(const std::vector<Fault::Kind>& kinds, std::uint64_t seed, int size, Clock::Duration length) {
  base::Random random(seed, "fault");
  const auto within = [&](Clock::Duration most) {
    // To the microsecond, so that it can be written down.
    return std::chrono::microseconds(random.Below(static_cast<std::uint64_t>(most.count() / 1000) + 1));
  };
  Fault fault{.kind = kinds[random.Below(kinds.size())]};
  const Form& form = FormOf(fault.kind);
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  const std::size_t cut = form.between ? 1 + random.Below(order.size() - 1) : 1;
  fault.ranks.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(cut));
  if (form.between) fault.others.assign(order.begin() + static_cast<std::ptrdiff_t>(cut), order.end());
  std::sort(fault.ranks.begin(), fault.ranks.end());
  std::sort(fault.others.begin(), fault.others.end());
  fault.one_way = form.between && fault.kind != Kind::kDisconnect && random.Below(3) == 0;
  fault.at = within(length);
  if (form.lasts == Form::kMust || (form.lasts == Form::kMay && random.Below(2) == 0)) fault.lasts = within(2 * length);
  if (form.measure == "by") fault.by = within(length);
  if (form.measure == "times") fault.times = 1 + static_cast<double>(random.Below(9));
  return fault;
}

}  // namespace freshet::fabric::sim
