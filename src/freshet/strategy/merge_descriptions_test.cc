#include "strategy/merge_descriptions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::strategy {
namespace {

// What one worker would have made of all rows, for inputs that are cut into ranges or dealt out chunk by chunk.
TEST(MergeDescriptions, NumbersNamesAsOneWorkerWouldHave) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "merge");
    const int workers = 1 + static_cast<int>(random.Below(4));
    const bool ranges = random.Below(2) == 0;
    const std::size_t chunks = random.Below(12), known = random.Below(4);
    data::Description before;
    before.dictionaries.resize(2);
    before.moments = data::Moments(1);
    for (std::size_t i = 0; i < known; ++i)
      before.dictionaries[0].Add(Str("n", random.Below(30)));  // of an earlier model
    struct Row {
      std::string names[2];
      float number;
    };
    std::vector<std::vector<Row>> input(chunks);
    data::Description serial = before;
    for (auto& chunk : input)
      for (std::size_t r = 0, rows = random.Below(5); r < rows; ++r) {
        chunk.push_back(
            {{Str("n", random.Below(30)), Str("m", random.Below(10))}, static_cast<float>(random.Normal())});
        for (std::size_t d = 0; d < 2; ++d) serial.dictionaries[d].Add(chunk.back().names[d]);
        serial.moments.Observe(&chunk.back().number);
      }
    fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
      const auto rank = static_cast<std::size_t>(fabric.rank()), size = static_cast<std::size_t>(workers);
      data::Description mine = before;
      Survey survey;
      survey.first_met.resize(2);
      survey.first_met[0].resize(before.dictionaries[0].size());
      survey.moments = data::Moments(1);
      for (std::size_t c = 0; c < chunks; ++c) {
        if ((ranges ? c * size / chunks : c % size) != rank) continue;
        for (const Row& row : input[c]) {
          for (std::size_t d = 0; d < 2; ++d) {
            mine.dictionaries[d].Add(row.names[d]);
            survey.first_met[d].resize(mine.dictionaries[d].size(), {c / 3, c});
          }
          survey.moments.Observe(&row.number);
        }
      }
      fabric::Collectives collectives(fabric);
      if (ranges) survey.first_met.clear();  // ranks are then in the order of the input
      ASSERT_TRUE(MergeDescriptions(collectives, survey, mine).ok());
      for (std::size_t d = 0; d < 2; ++d)
        EXPECT_EQ(mine.dictionaries[d].Serialize(), serial.dictionaries[d].Serialize());
      const auto a = mine.moments.Save(), b = serial.moments.Save();
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i])));
    });
  }
}

}  // namespace
}  // namespace freshet::strategy
