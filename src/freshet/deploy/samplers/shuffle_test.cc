#include "deploy/samplers/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/str.h"

namespace freshet::deploy {
namespace {

// The whole shuffle, with every place written down.
TEST(LazyShuffle, IsTheShuffleOfFisherAndYatesHoweverFewWereExpected) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "shuffle"), same = random;
    const std::uint64_t size = random.Below(100), expected = random.Below(150);
    same.Seek(random.position());
    std::vector<std::uint64_t> all(size);
    std::iota(all.begin(), all.end(), 0);
    LazyShuffle lazy(size, expected);
    for (std::uint64_t i = 0; i < size; ++i) {
      std::swap(all[i], all[i + same.Below(size - i)]);
      ASSERT_EQ(lazy.left(), size - i);
      ASSERT_EQ(lazy.Next(random), all[i]);
    }
    ASSERT_EQ(lazy.left(), 0u);
    std::sort(all.begin(), all.end());
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(all[i], i);
  }
}

}  // namespace
}  // namespace freshet::deploy
