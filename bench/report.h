#pragma once

#include <optional>
#include <string>
#include <vector>

namespace freshet::bench {

// The middle of repeated measurements, and how far they lie apart.
struct Spread {
  double median = 0, low = 0, high = 0;
};
Spread SpreadOf(std::vector<double> values);

// What a figure should be: at least, or at most, so much.
struct Target {
  enum class Kind { kAtLeast, kAtMost } kind;
  double bound;
  bool Met(double value) const { return kind == Kind::kAtLeast ? value >= bound : value <= bound; }
};
inline Target AtLeast(double bound) { return {Target::Kind::kAtLeast, bound}; }
inline Target AtMost(double bound) { return {Target::Kind::kAtMost, bound}; }

struct Figure {
  std::string what;
  Spread value;
  std::string unit;
  int decimals = 1;
  std::optional<Target> target = {};
};

// Collects figures, which may miss their target, and checks, which may not fail: a benchmark whose answer is wrong is
// worth nothing. Prints both as a Markdown table, or as JSON.
//
// Threads: one at a time.
class Report {
 public:
  // Timings mean nothing at tiny sizes: they are then shown without a verdict.
  explicit Report(bool judge) : judge_(judge) {}

  void Section(std::string name) { section_ = std::move(name); }
  void Add(Figure figure) { rows_.push_back({section_, std::move(figure), std::nullopt, ""}); }
  // `found` is what the check looked at, for people.
  void Check(std::string what, bool ok, std::string found);
  // Something that a reader of the figures must know.
  void Note(std::string text) { notes_.push_back(section_ + ": " + text); }

  bool ok() const { return ok_; }
  std::string ToMarkdown() const;
  std::string ToJson() const;

 private:
  struct Row {
    std::string section;
    Figure figure;
    std::optional<bool> check;  // of a check; nothing for a figure
    std::string found;
  };
  std::string Verdict(const Row& row) const;

  const bool judge_;
  bool ok_ = true;
  std::string section_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
};

}  // namespace freshet::bench
