#include "data/date.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace freshet::data {
namespace {

Date Parsed(std::string_view text) {
  Date date;
  EXPECT_TRUE(ParseDate(text, date)) << text;
  return date;
}

TEST(Date, ReadsWhatIso8601Writes) {
  const Date day = Parsed("2021-03-04");
  EXPECT_EQ(day.year, 2021);
  EXPECT_EQ(day.month, 3);
  EXPECT_EQ(day.weekday, 4) << "a Thursday";
  EXPECT_EQ(day.hour, 0);
  EXPECT_FALSE(day.has_time);
  EXPECT_EQ(day.seconds, 1'614'816'000);
  for (const char* const text : {"2021-03-04T12:34:56Z", "2021-03-04 12:34:56", "2021-03-04t12:34:56.789z",
                                 "2021-03-04T14:34:56+02:00", "2021-03-04 07:04:56 -0530", "2021-03-04 12:34:56 UTC"}) {
    EXPECT_EQ(Parsed(text).seconds, 1'614'861'296) << text;
    EXPECT_TRUE(Parsed(text).has_time);
  }
  EXPECT_EQ(Parsed("2021-03-04T12:34").seconds, 1'614'861'240);
  EXPECT_EQ(Parsed("2021-03-04T12+01").seconds, 1'614'855'600);
  EXPECT_EQ(Parsed("2021-03-04T23:30:00-08:00").hour, 23) << "as written";
  EXPECT_EQ(Parsed("2021-03-04T23:30:00-08:00").weekday, 4);
  EXPECT_EQ(Parsed("2000-02-29").weekday, 2);
  EXPECT_EQ(Parsed("1969-12-31T23:59:60").seconds, 0);
}

TEST(Date, RefusesEverythingElse) {
  for (const char* const text : {"",
                                 "2021",
                                 "2021-03",
                                 "2021-3-4",
                                 "2021-13-01",
                                 "2021-00-01",
                                 "2021-02-29",
                                 "2021-04-31",
                                 "21-03-04",
                                 "2021/03/04",
                                 "04.03.2021",
                                 "20210304",
                                 "2021-03-04x",
                                 "2021-03-04T",
                                 "2021-03-04 ",
                                 "2021-03-04T24:00",
                                 "2021-03-04T12:60",
                                 "2021-03-04T12:34:61",
                                 "2021-03-04T12:34:56.",
                                 "2021-03-04T12:34+",
                                 "2021-03-04T12:34+2",
                                 "2021-03-04Z",
                                 "-2021-03-04",
                                 "2021-03-04T12:34Zulu",
                                 "2021-03-04T12:34+02:000"}) {
    Date date;
    EXPECT_FALSE(ParseDate(text, date)) << text;
  }
}

TEST(Date, CountsDaysAsTheCalendarDoes) {
  for (std::int64_t day = -800'000; day < 100'000; day += 997) {
    const std::time_t seconds = day * 86'400;
    std::tm fields{};
    ASSERT_NE(gmtime_r(&seconds, &fields), nullptr);
    char text[32];
    ASSERT_GT(std::strftime(text, sizeof text, "%Y-%m-%d", &fields), 0u);
    if (fields.tm_year + 1900 < 1000) continue;  // strftime writes no leading zeros
    const Date date = Parsed(text);
    EXPECT_EQ(date.seconds, seconds) << text;
    EXPECT_EQ(date.weekday, fields.tm_wday == 0 ? 7 : fields.tm_wday) << text;
  }
}

}  // namespace
}  // namespace freshet::data
