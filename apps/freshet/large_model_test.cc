// A model that no member has memory for: servers have their part of it, workers what they need. Memory is limited by the
// system, so that who takes more is refused it.

#include <sys/resource.h>

#include <fstream>

#include "base/random.h"
#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

// What processes that are started now may have of their own: what they write to, but for files they map.
class DataLimit {
 public:
  explicit DataLimit(rlim_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_DATA, &limit);
  }
  ~DataLimit() { setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

class LargeModelTest : public testing::Test {
 protected:
  static constexpr int kFeatures = 600'000, kRows = 2000;

  LargeModelTest() {
    std::ofstream file(scratch_ / "rows.svm");
    base::Random random(1, "rows");
    for (int r = 0; r < kRows; ++r) {
      file << r % 2;
      for (int e = 0; e < 8; ++e) file << ' ' << e * (kFeatures / 8) + random.Below(kFeatures / 8) + 1 << ":1";
      file << ' ' << kFeatures + 1 + r % 2 << ":1\n";
    }
  }
  Finished Train(bool large, const std::string& model) {
    std::vector<std::string> arguments = {
        "launch",    "-n",         "4",       "--",        "train",    "rows.svm",  "--model",       "fm",
        "--factors", "32",         "--batch", "50",        "--epochs", "2",         "--threads",     "1",
        "--quiet",   "--strategy", "server",  "--servers", "2",        "--scratch", scratch_.path(), "-o",
        model};
    if (large) arguments.emplace_back("--large-model");
    return Process(scratch_, arguments, {}).Wait();
  }

  base::ScratchDirectory scratch_;
};

TEST_F(LargeModelTest, TrainsWhereNobodyHasMemoryForAllOfIt) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const Finished free = Train(false, "free.model");
  ASSERT_EQ(free.code, 0) << free.err;
  {
    const DataLimit limit(rlim_t{110} << 20);  // parameters and the sums of the rule are 158 MB
    const Finished whole = Train(false, "whole.model");
    EXPECT_NE(whole.code, 0);
    EXPECT_NE(whole.err.find("no memory for block"), std::string::npos) << whole.err;
    const Finished large = Train(true, "large.model");
    ASSERT_EQ(large.code, 0) << large.err;
  }
  EXPECT_EQ(scratch_.Read("large.model"), scratch_.Read("free.model"));
}

}  // namespace
}  // namespace freshet::cli
