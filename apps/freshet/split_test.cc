// Workers who each read their own part of the input: what they know of it is what one worker would know.

#include <cmath>
#include <cstdlib>

#include "base/files.h"
#include "base/random.h"
#include "data/description.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

class SplitTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  data::Description Train(Arguments arguments, const std::string& out) {
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(), {"--quiet", "-o", out});
    const Finished finished = Process(scratch_, arguments, {}).Wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    base::PosixFiles files;
    auto file = data::TensorFile::Read(files, scratch_ / out);
    if (!file.ok()) return {};
    return data::Description::Load(file.value()).value();
  }
  // Trains alone, and by three workers who each read their part; what both know must be the same.
  void ExpectSameNames(const Arguments& arguments) {
    const data::Description alone = Train(arguments, "alone.model");
    Arguments apart = arguments;
    apart.insert(apart.end(), {"--workers", "3", "--split", "bytes"});
    const data::Description merged = Train(apart, "apart.model");
    ASSERT_EQ(alone.dictionaries.size(), merged.dictionaries.size());
    for (std::size_t d = 0; d < alone.dictionaries.size(); ++d) {
      EXPECT_GT(alone.dictionaries[d].size(), 3u);
      EXPECT_EQ(alone.dictionaries[d].Serialize(), merged.dictionaries[d].Serialize());
    }
    const std::vector<double> a = alone.moments.Save(), b = merged.moments.Save();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < 1 + 3 * alone.moments.columns(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(a[i])));
  }

  base::ScratchDirectory scratch_;
};

// Numbers, and categories that come up late; long enough for several chunks.
std::string TableOfCategories() {
  base::Random random(1, "table");
  std::string text = "size,colour,place,label\n";
  for (int row = 0; row < 4000; ++row) {
    const std::uint64_t colour = random.Below(5 + static_cast<std::uint64_t>(row) / 400);
    text += Str(random.Normal() * 3 + 8, ",colour", colour, ",place-of-a-long-name-", random.Below(40), ",",
                (colour + random.Below(3)) % 2 == 0 ? "yes" : "no", "\n");
  }
  return text;
}

TEST_F(SplitTest, PartsOfATableKnowItsCategoriesAndMomentsAsOneWorkerDoes) {
  scratch_.Write("table.csv", TableOfCategories());
  ExpectSameNames({"table.csv", "--batch", "30"});
  ExpectSameNames({"table.csv", "--batch", "30", "--epochs", "2", "--strategy", "average", "--every", "4"});
}

TEST_F(SplitTest, SoDoWorkersWhoTakeTheChunksOfACompressedTableInTurn) {
  scratch_.Write("table.csv", TableOfCategories());
  ASSERT_EQ(std::system(Str("gzip ", scratch_ / "table.csv").c_str()), 0);
  ExpectSameNames({"table.csv.gz", "--batch", "30"});
}

TEST_F(SplitTest, PartsOfRatingsKnowUsersAndItemsAsOneWorkerDoes) {
  ASSERT_EQ(Process(scratch_,
                    {"data", "generate", "--kind", "ratings", "--rows", "4000", "--users", "300", "--items", "80", "-o",
                     "ratings.dat"},
                    {})
                .Wait()
                .code,
            0);
  ExpectSameNames({"ratings.dat", "--batch", "30", "--epochs", "2"});
  ExpectSameNames({"ratings.dat", "--batch", "30", "--model", "fm"});
}

}  // namespace
}  // namespace freshet::cli
