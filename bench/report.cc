#include "report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "machine.h"

namespace freshet::bench {
namespace {

using Cells = std::vector<std::string>;

// Columns that people see: continuation bytes of UTF-8 take none.
std::size_t WidthOf(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string Table(const std::vector<Cells>& lines) {
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const Cells& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], WidthOf(line[c]));
  std::string out;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    for (std::size_t c = 0; c < lines[r].size(); ++c)
      out += Str("| ", lines[r][c], std::string(widths[c] - WidthOf(lines[r][c]) + 1, ' '));
    out += "|\n";
    if (r > 0) continue;
    for (const std::size_t width : widths) out += Str("|", std::string(width + 2, '-'));
    out += "|\n";
  }
  return out;
}

std::string Shown(double value, int decimals) {
  return decimals > 0 ? Fixed(value, decimals) : Grouped(static_cast<unsigned long long>(std::llround(value)));
}

std::string Shown(const Target& target, int decimals) {
  return Str(target.kind == Target::Kind::kAtLeast ? "≥ " : "≤ ", Shown(target.bound, decimals));
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void Report::Check(std::string what, bool ok, std::string found) {
  ok_ = ok_ && ok;
  rows_.push_back({section_, {.what = std::move(what), .value = {}, .unit = ""}, ok, std::move(found)});
}

std::string Report::Verdict(const Row& row) const {
  if (row.check) return *row.check ? "right" : "WRONG";
  if (!row.figure.target || !judge_) return "";
  return row.figure.target->Met(row.figure.value.median) ? "pass" : "FAIL";
}

std::string Report::ToMarkdown() const {
  std::vector<Cells> figures = {{"section", "what", "median", "low – high", "target", ""}};
  std::vector<Cells> checks = {{"section", "checked", "found", ""}};
  for (const Row& row : rows_) {
    const Figure& figure = row.figure;
    const auto& [median, low, high] = figure.value;
    const auto shown = [&](double value) { return Shown(value, figure.decimals); };
    if (row.check) {
      checks.push_back({row.section, figure.what, row.found, Verdict(row)});
      continue;
    }
    figures.push_back({row.section, figure.what, Str(shown(median), " ", figure.unit),
                       low == high ? "" : Str(shown(low), " – ", shown(high)),
                       figure.target ? Shown(*figure.target, figure.decimals) : "", Verdict(row)});
  }
  std::string out = Str(ThisMachine().ToText(), "\n", Table(figures), "\n", Table(checks));
  for (const std::string& note : notes_) out += Str("\nNOTE ", note, "\n");
  return out;
}

std::string Report::ToJson() const {
  nlohmann::ordered_json json;
  const Machine machine = ThisMachine();
  json["schema"] = 1;
  json["machine"] = {{"cpu", machine.cpu},     {"cores", machine.cores},   {"compiler", machine.compiler},
                     {"flags", machine.flags}, {"commit", machine.commit}, {"warning", machine.warning}};
  json["ok"] = ok_;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows_) {
    nlohmann::ordered_json entry = {{"section", row.section}, {"what", row.figure.what}};
    if (row.check) {
      entry["ok"] = *row.check;
      entry["found"] = row.found;
    } else {
      entry["value"] = row.figure.value.median;
      entry["low"] = row.figure.value.low;
      entry["high"] = row.figure.value.high;
      entry["unit"] = row.figure.unit;
      if (row.figure.target) {
        entry["target"] = row.figure.target->bound;
        entry["at_least"] = row.figure.target->kind == Target::Kind::kAtLeast;
        if (judge_) entry["met"] = row.figure.target->Met(row.figure.value.median);
      }
    }
    json["rows"].push_back(std::move(entry));
  }
  json["notes"] = notes_;
  return json.dump(2) + "\n";
}

}  // namespace freshet::bench
