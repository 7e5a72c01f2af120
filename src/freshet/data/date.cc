#include "data/date.h"

#include <chrono>

namespace freshet::data {
namespace {

bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Takes pieces from the front of a text.
class Taker {
 public:
  explicit Taker(std::string_view text) : rest_(text) {}

  bool Number(std::size_t digits, int least, int most, int& out) {
    if (rest_.size() < digits) return false;
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!IsDigit(rest_[i])) return false;
      value = value * 10 + (rest_[i] - '0');
    }
    if (value < least || value > most) return false;
    rest_.remove_prefix(digits);
    out = value;
    return true;
  }
  bool Word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void Digits() {
    while (!rest_.empty() && IsDigit(rest_[0])) rest_.remove_prefix(1);
  }
  bool next_is_digit() const { return !rest_.empty() && IsDigit(rest_[0]); }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Seconds east of UTC; false when what is left is no offset.
bool TakeOffset(Taker& taker, int& seconds) {
  seconds = 0;
  if (taker.done()) return true;
  taker.Word(" ");
  if (taker.Word("Z") || taker.Word("z") || taker.Word("UTC")) return taker.done();
  const bool west = taker.Word("-");
  if (!west && !taker.Word("+")) return false;
  int hours = 0, minutes = 0;
  if (!taker.Number(2, 0, 23, hours)) return false;
  if (!taker.done()) {
    taker.Word(":");
    if (!taker.Number(2, 0, 59, minutes)) return false;
  }
  seconds = (hours * 60 + minutes) * 60 * (west ? -1 : 1);
  return taker.done();
}

}  // namespace

bool ParseDate(std::string_view text, Date& out) {
  Taker taker(text);
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offset = 0;
  if (!taker.Number(4, 0, 9999, year) || !taker.Word("-") || !taker.Number(2, 1, 12, month) || !taker.Word("-") ||
      !taker.Number(2, 1, 31, day))
    return false;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return false;
  const bool has_time = taker.Word("T") || taker.Word("t") || taker.Word(" ");
  if (has_time) {
    if (!taker.Number(2, 0, 23, hour)) return false;
    if (taker.Word(":")) {
      if (!taker.Number(2, 0, 59, minute)) return false;
      if (taker.Word(":")) {
        if (!taker.Number(2, 0, 60, second)) return false;  // 60: a leap second
        if (taker.Word(".") || taker.Word(",")) {
          if (!taker.next_is_digit()) return false;
          taker.Digits();
        }
      }
    }
    if (!TakeOffset(taker, offset)) return false;
  }
  if (!taker.done()) return false;
  const std::chrono::sys_days days(date);
  out.year = year;
  out.month = month;
  out.weekday = static_cast<int>(std::chrono::weekday(days).iso_encoding());
  out.hour = hour;
  out.has_time = has_time;
  out.seconds = std::int64_t{days.time_since_epoch().count()} * 86'400 + hour * 3'600 + minute * 60 + second - offset;
  return true;
}

}  // namespace freshet::data
