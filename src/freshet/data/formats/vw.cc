// Vowpal Wabbit text:  [label [importance [base]]] ['tag] |namespace[:scale] feature[:value] … |namespace …
// As there, the word that touches the first bar is the tag, with or without its apostrophe. Tags are skipped, and so is
// the base (a prediction to start from). Every feature is hashed, those that look like numbers too.

#include <array>
#include <cmath>

#include "base/random.h"
#include "data/formats/format.h"
#include "data/formats/lines.h"
#include "data/number.h"

namespace freshet::data {
namespace {

constexpr int kDefaultBits = 18;

// The words before the first bar.
struct Prefix {
  std::array<std::string_view, 3> words;  // label, importance, base: numbers all
  std::array<double, 3> numbers;
  std::size_t count = 0;
  std::string_view tag;
};

bool ReadPrefix(const char* begin, const char* bar, Prefix& prefix, Mistake& mistake) {
  for (const char* at = SkipBlanks(begin); at < bar; at = SkipBlanks(at)) {
    const std::string_view word = WordAt(at, bar);
    at += word.size();
    if (word[0] == '\'' || at == bar) {
      prefix.tag = word;
      if (SkipBlanks(at) == bar) return true;
      mistake = {SkipBlanks(at), Str("found ", Quoted(WordAt(SkipBlanks(at), bar)), " after the tag, expected a |")};
      return false;
    }
    if (prefix.count == prefix.words.size() || !ParseNumber(word, prefix.numbers[prefix.count])) {
      mistake = {word.data(), Str("found ", Quoted(word), ", expected label [importance [base]] ['tag] |")};
      return false;
    }
    prefix.words[prefix.count++] = word;
  }
  return true;
}

// The first bar of a line, or null.
const char* BarIn(const Line& line) {
  return static_cast<const char*>(std::memchr(line.begin(), '|', line.text.size()));
}

// Where the name of a namespace or feature ends: at a blank, colon, bar or `end`.
const char* NameEnd(const char* at, const char* end) {
  while (at < end && !IsBlank(*at) && *at != ':' && *at != '|') ++at;
  return at;
}

std::string_view Between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

// Rows weigh 1 until one of them does not; from then on each has its weight.
void AppendWeight(Rows& rows, float weight) {
  if (rows.weights.empty() && weight == 1) return;
  while (rows.weights.size() < rows.size()) rows.weights.Append(1);
  rows.weights.Append(weight);
}

class VwParser final : public Parser {
 public:
  VwParser(const Description& description, bool labelled)
      : labels_(description.labels), mask_((1u << description.bits) - 1), labelled_(labelled) {}

  void Parse(Rows& rows) const override {
    const char* at = rows.text.data();
    const char* const end = at + rows.text.size();
    // The shortest feature is " a".
    Entries entries{rows.indices.Room(rows.text.size() / 2 + 1), rows.values.Room(rows.text.size() / 2 + 1)};
    const std::uint32_t* const first = rows.indices.data();
    std::uint64_t number = 0;
    for (; at < end; ++number) {
      const Line line = LineAt(at, end);
      at = line.next;
      if (line.blank()) continue;
      const Entries before = entries;
      float label = 0, importance = 1;
      Mistake mistake;
      if (!ParseRow(line, label, importance, entries, mistake)) [[unlikely]] {
        NoteBadRow(rows, number, line.begin(), line.end(), mistake.at, std::move(mistake.what));
        entries = before;
        continue;
      }
      AppendWeight(rows, importance);
      rows.labels.Append(label);
      rows.offsets.Append(static_cast<std::uint32_t>(entries.index - first));
    }
    rows.indices.SetEnd(entries.index);
    rows.values.SetEnd(entries.value);
  }

 private:
  struct Entries {  // where the next one goes
    std::uint32_t* index;
    float* value;
  };

  bool ParseRow(const Line& line, float& label, float& importance, Entries& entries, Mistake& mistake) const {
    if (HasNul(line.text, mistake)) return false;
    const char* const bar = BarIn(line);
    if (bar == nullptr) {
      mistake = {line.end(), "found the end of the line, expected a | before the features"};
      return false;
    }
    Prefix prefix;
    return ReadPrefix(line.begin(), bar, prefix, mistake) && ReadLabel(prefix, bar, label, mistake) &&
           ReadImportance(prefix, importance, mistake) && ReadFeatures(bar, line.end(), entries, mistake);
  }

  bool ReadLabel(const Prefix& prefix, const char* bar, float& label, Mistake& mistake) const {
    if (prefix.count == 0) {
      label = std::nanf("");
      if (!labelled_) return true;
      if (prefix.tag.empty())
        mistake = {bar, Str("found no label before the |, expected ", labels_.Expected())};
      else
        mistake = {prefix.tag.data(), Str("found only the tag ", Quoted(prefix.tag),
                                          " before the |, expected a label (", labels_.Expected(), ") and a blank")};
      return false;
    }
    label = labels_.Map(prefix.numbers[0]);
    if (std::isfinite(label)) return true;
    if (!labelled_) {
      label = std::nanf("");
      return true;
    }
    mistake = {prefix.words[0].data(), Str("label ", Quoted(prefix.words[0]), ", expected ", labels_.Expected())};
    return false;
  }

  static bool ReadImportance(const Prefix& prefix, float& importance, Mistake& mistake) {
    if (prefix.count < 2) return true;
    importance = static_cast<float>(prefix.numbers[1]);
    if (std::isfinite(importance) && importance >= 0) return true;
    mistake = {prefix.words[1].data(),
               Str("importance ", Quoted(prefix.words[1]), ", expected a finite number that is not negative")};
    return false;
  }

  // Everything from the first bar to the end of the line.
  bool ReadFeatures(const char* at, const char* end, Entries& entries, Mistake& mistake) const {
    while (at < end) {
      const char* const name = at + 1;  // behind a bar
      at = NameEnd(name, end);
      const std::uint64_t seed = base::Hash64(Between(name, at));
      double scale = 1;
      if (!ReadNumber(at, end, scale, mistake)) return false;
      for (at = SkipBlanks(at); at < end && *at != '|'; at = SkipBlanks(at)) {
        const char* const feature = at;
        at = NameEnd(feature, end);
        if (at == feature) {
          mistake = {at, Str("found ", Quoted(WordAt(at, end)), ", expected feature[:value]")};
          return false;
        }
        const std::uint64_t hash = base::Hash64(Between(feature, at), seed);
        double value = 1;
        if (!ReadNumber(at, end, value, mistake)) return false;
        const float scaled = static_cast<float>(value * scale);
        if (!std::isfinite(scaled)) [[unlikely]] {
          mistake = {feature, Str("found ", Quoted(WordAt(feature, end)),
                                  ", expected a finite number after the scale of ", scale)};
          return false;
        }
        *entries.index++ = static_cast<std::uint32_t>(hash) & mask_;
        *entries.value++ = scaled;
      }
    }
    return true;
  }

  // The :number that may stand behind a name, and moves past it.
  static bool ReadNumber(const char*& at, const char* end, double& number, Mistake& mistake) {
    if (at == end || *at != ':') return true;
    const char* const begin = at + 1;
    at = ParseDouble(begin, end, number);
    if (at != nullptr && (at == end || IsBlank(*at) || *at == '|') && std::isfinite(static_cast<float>(number)))
      return true;
    mistake = {begin, Str("found ", Quoted(WordAt(begin, end)), ", expected a finite number")};
    return false;
  }

  const Labels& labels_;
  const std::uint32_t mask_;
  const bool labelled_;
};

// Numbers before the bar, or nothing at all; and a blank behind it, which a table with bars between its columns lacks.
bool IsRow(const Line& line) {
  Mistake mistake;
  const char* const bar = BarIn(line);
  if (bar == nullptr || HasNul(line.text, mistake)) return false;
  Prefix prefix;
  if (!ReadPrefix(line.begin(), bar, prefix, mistake)) return false;
  if (prefix.count == 0 && !prefix.tag.empty() && prefix.tag[0] != '\'') return false;
  const char* const name_end = NameEnd(bar + 1, line.end());
  return prefix.count > 0 || name_end == line.end() || *name_end != '|';
}

bool LooksLike(const Head& head) {
  constexpr int kEnough = 10;
  int rows = 0;
  const char* const end = head.bytes.data() + head.bytes.size();
  for (const char* at = head.bytes.data(); at < end && rows < kEnough;) {
    const Line line = LineAt(at, end);
    at = line.next;
    if (line.blank()) continue;
    if (!IsRow(line)) return false;
    ++rows;
  }
  return rows > 0;
}

Result<void> Describe(const Head& head, const InputOptions& options, base::Files&, Description& description) {
  TRY(CheckBits(options.bits));
  description.bits = options.bits > 0 ? options.bits : kDefaultBits;
  std::vector<std::string> seen;
  const char* const end = head.bytes.data() + head.bytes.size();
  for (const char* at = head.bytes.data(); at < end;) {
    const Line line = LineAt(at, end);
    at = line.next;
    const char* const bar = BarIn(line);
    Prefix prefix;
    Mistake mistake;  // the parser will say what is wrong
    if (bar != nullptr && ReadPrefix(line.begin(), bar, prefix, mistake) && prefix.count > 0)
      seen.emplace_back(prefix.words[0]);
  }
  return SettleLabels(head, options, seen, description.labels);
}

Result<std::unique_ptr<Parser>> Make(const Head&, const Description& description, const InputOptions&, base::Files&,
                                     bool labelled) {
  return std::unique_ptr<Parser>(std::make_unique<VwParser>(description, labelled));
}

}  // namespace

extern const Format kVw = {"vw", "label |namespace feature:value …, one row a line", LooksLike, Describe, Make};

}  // namespace freshet::data
