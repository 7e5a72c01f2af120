#include "base/utf8.h"

#include <gtest/gtest.h>

namespace freshet::base {
namespace {

TEST(Utf8, TellsCharactersFromOtherBytes) {
  for (const char* const text : {"", "a", "gro\xc3\x9f", "income (\xe2\x82\xac)", "\xf0\x9f\x8c\x8a", "\xed\x9f\xbf"})
    EXPECT_TRUE(IsUtf8(text)) << text;
  for (const char* const text : {"gro\xdf", "\xc3", "\xc0\x80", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80",
                                 "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xff"})
    EXPECT_FALSE(IsUtf8(text)) << text;
  EXPECT_EQ(CharacterBytes("\xe2\x82\xac"
                           "uro"),
            3u);
  EXPECT_EQ(CharacterBytes(""), 0u);
}

}  // namespace
}  // namespace freshet::base
