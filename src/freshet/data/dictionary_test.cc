#include "data/dictionary.h"

#include <gtest/gtest.h>

#include <map>

#include "base/flood_testing.h"
#include "base/random.h"

namespace freshet::data {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Dictionary, NumbersNamesAsAMapWould) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "dictionary");
    Dictionary dictionary;
    std::map<std::string, std::uint32_t> model;
    for (int i = 0; i < 500; ++i) {
      std::string name;
      for (std::uint64_t n = random.Below(4); n > 0; --n) name += static_cast<char>(random.Below(seed % 2 ? 6 : 256));
      const auto known = model.find(name);
      ASSERT_EQ(dictionary.Find(name), known == model.end() ? kUnseen : known->second);
      if (random.Below(3) == 0) continue;
      const auto number = model.emplace(name, static_cast<std::uint32_t>(model.size())).first->second;
      ASSERT_EQ(dictionary.Add(name), number);
      ASSERT_EQ(dictionary.Name(number), name);
      ASSERT_EQ(dictionary.size(), model.size());
    }
    const auto loaded = Dictionary::Deserialize(BytesOf(dictionary.Serialize()));
    ASSERT_TRUE(loaded.ok());
    for (const auto& [name, number] : model) ASSERT_EQ(loaded.value().Find(name), number);
    ASSERT_EQ(loaded.value().size(), model.size());
  }
}

TEST(Dictionary, FindsNamesThatWereMadeToCollideAsFastAsOthers) {
  Dictionary dictionary;
  for (std::uint64_t n = 0; n < 2'000; ++n) ASSERT_EQ(dictionary.Add(base::FloodName(n)), n);
  EXPECT_LT(dictionary.LongestProbe(), 100u);
}

TEST(Dictionary, FindsNothingWhenEmpty) {
  EXPECT_EQ(Dictionary().Find(""), kUnseen);
  EXPECT_EQ(Dictionary().size(), 0u);
  EXPECT_EQ(Dictionary().Serialize(), "");
  EXPECT_EQ(Dictionary::Deserialize({}).value().size(), 0u);
}

TEST(Dictionary, RefusesBytesThatAreCutOff) {
  Dictionary dictionary;
  for (const char* name : {"one", "", "three"}) dictionary.Add(name);
  const std::string bytes = dictionary.Serialize();
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    const bool between_names = size == 7 || size == 11;
    const auto loaded = Dictionary::Deserialize(BytesOf(bytes).first(size));
    ASSERT_EQ(loaded.ok(), between_names) << size;
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.error().code, Code::kCorrupt);
    }
  }
}

TEST(Dictionary, RefusesLengthsBeyondTheEndAndNamesTwice) {
  const std::string huge =
      "\xff\xff\xff\xff"
      "ab";
  EXPECT_EQ(Dictionary::Deserialize(BytesOf(huge)).error().code, Code::kCorrupt);
  const std::string twice("\1\0\0\0a\1\0\0\0a", 10);
  EXPECT_EQ(Dictionary::Deserialize(BytesOf(twice)).error().text, "dictionary: a name stands twice");
}

}  // namespace
}  // namespace freshet::data
