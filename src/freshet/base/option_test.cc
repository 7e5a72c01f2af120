#include "base/option.h"

#include <gtest/gtest.h>

#include "base/str.h"

namespace freshet {
namespace {

TEST(Option, IsShownAsWhoeverShowsItNamesOptions) {
  const std::string text = Str(Option("batch"), " 3 has no row; use ", Option("strategy"), " average -- or none");
  EXPECT_EQ(ShowOptions(text), "batch 3 has no row; use strategy average -- or none");
  EXPECT_EQ(ShowOptions(text, "--"), "--batch 3 has no row; use --strategy average -- or none");
}

TEST(Option, TextWithoutNamesStaysAsItIs) {
  for (const char* const text : {"", "a", "--batch", "\xe2\x81", "no names \xe2\x80\xa6"})
    EXPECT_EQ(ShowOptions(text, "--"), text);
}

}  // namespace
}  // namespace freshet
