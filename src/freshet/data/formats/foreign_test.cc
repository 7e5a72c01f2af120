#include "data/formats/foreign.h"

#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

using namespace std::string_literals;

TEST(Foreign, IsCalledByItsName) {
  World world;
  const struct {
    std::string bytes;
    const char* says;
  } table[] = {
      {"PAR1\x15\x04\x15\x10"s, "a Parquet file"},
      {"ARROW1\0\0\xff"s, "a Feather (Arrow) file"},
      {"\x93NUMPY\x01\0v\0{'descr': '<f8', 'shape': (3, 4)}"s, "a NumPy array"},
      {"PK\x03\x04\x14\0"s, "a zip archive"},
      {"\xff\xfe"
       "a\0,\0b\0\n\0"s,
       "text in UTF-16"},
      {"{\"a\": 1, \"b\": 2}\n{\"a\": 3, \"b\": 4}\n", "JSON"},
      {"[{\"a\": 1, \"b\": 2}]\n", "JSON"},
      {"<!DOCTYPE html>\n<html>, <body>\n", "a web page"},
  };
  for (const auto& [bytes, says] : table) {
    SCOPED_TRACE(says);
    const std::string path = world.Write("file", bytes);
    const auto reading = ReadRows(world, FilesAt({path}));
    ASSERT_FALSE(reading.ok());
    EXPECT_EQ(reading.error().code, Code::kBadInput);
    EXPECT_TRUE(reading.error().text.starts_with(Str(path, ": found ", says))) << reading.error().text;
  }
}

TEST(Foreign, IsTextWhoseOwnerSaysWhatItIs) {
  EXPECT_TRUE(RefuseForeign(TestHead("[1],2\n[3],4\n"), false).ok()) << "a table of odd texts";
  EXPECT_TRUE(RefuseForeign(TestHead("{\"a\": 1}\n"), true).ok());
  EXPECT_FALSE(RefuseForeign(TestHead("PAR1,2\n"), true).ok());
  EXPECT_TRUE(RefuseForeign(TestHead("a,b\n1,2\n"), false).ok());
  EXPECT_TRUE(RefuseForeign(TestHead(""), false).ok());
}

}  // namespace
}  // namespace freshet::data
