#pragma once

#include <cstdint>
#include <string_view>

namespace freshet::data {

// A date as ISO 8601 writes it: 2021-03-04, or with a time after T or a blank, 2021-03-04T12:34:56.5+02:00. Seconds may
// be left out, or minutes too; Z, UTC and +0200 are offsets as well.
struct Date {
  int year = 0, month = 0, weekday = 0;  // as written, whatever the offset; weekdays are 1 (Monday) to 7
  int hour = 0;
  bool has_time = false;
  std::int64_t seconds = 0;  // since 1970, with the offset taken into account; without one the time counts as UTC
};

// The whole of `text`. False, with `out` as it was, for anything else, 2021-02-29 among them.
bool ParseDate(std::string_view text, Date& out);

}  // namespace freshet::data
