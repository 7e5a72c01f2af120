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
  // Rows of a factorization machine: of 600,000 features and 32 factors parameters and adagrad's sums are 158 MB.
  void WriteSparseRows() {
    constexpr int kFeatures = 600'000, kRows = 2000;
    std::ofstream file(scratch_ / "rows.svm");
    base::Random random(1, "rows");
    for (int r = 0; r < kRows; ++r) {
      file << r % 2;
      for (int e = 0; e < 8; ++e) file << ' ' << e * (kFeatures / 8) + random.Below(kFeatures / 8) + 1 << ":1";
      file << ' ' << kFeatures + 1 + r % 2 << ":1\n";
    }
  }
  // A perceptron of 16 hidden layers, and its rows: parameters, the sums of momentum and a gradient are 201 MB.
  void WriteDeepNetwork() {
    constexpr int kNumbers = 8, kRows = 96;
    std::ofstream network(scratch_ / "deep.toml");
    network << "input = [" << kNumbers << "]\nlayers = [\n";
    for (int layer = 0; layer < 17; ++layer) network << "  {dense = 1024, activation = \"relu\"},\n";
    network << "  {dense = \"classes\"},\n]\n";
    std::ofstream file(scratch_ / "rows.csv");
    base::Random random(1, "numbers");
    for (int r = 0; r < kRows; ++r) {
      for (int e = 0; e < kNumbers; ++e) file << random.Normal() + r % 2 << ',';
      file << r % 2 << '\n';
    }
  }
  Finished Train(int workers, const std::vector<std::string>& how, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"launch", "-n", Str(workers), "--"};
    arguments.insert(arguments.end(), {"train", "--threads", "1", "--quiet", "--scratch", scratch_.path()});
    arguments.insert(arguments.end(), how.begin(), how.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Process(scratch_, arguments, {}).Wait();
  }
  // That the same model is trained where each may have so much memory, and that there is not enough for all of it.
  void ExpectPartsFit(rlim_t bytes, int workers, const std::vector<std::string>& how) {
    const Finished free = Train(workers, how, {"-o", "free.model"});
    ASSERT_EQ(free.code, 0) << free.err;
    {
      const DataLimit limit(bytes);
      const Finished whole = Train(workers, how, {"-o", "whole.model"});
      EXPECT_NE(whole.code, 0);
      EXPECT_NE(whole.err.find("no memory for block"), std::string::npos) << whole.err;
      const Finished large = Train(workers, how, {"-o", "large.model", "--large-model"});
      ASSERT_EQ(large.code, 0) << large.err;
    }
    EXPECT_EQ(scratch_.Read("large.model"), scratch_.Read("free.model"));
  }

  static constexpr rlim_t kMegabyte = 1 << 20;
  const std::vector<std::string> machine_ = {"rows.svm", "--model",  "fm", "--factors",   "32",     "--batch",
                                             "50",       "--epochs", "2",  "--optimizer", "adagrad"};
  base::ScratchDirectory scratch_;
};

std::vector<std::string> With(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_F(LargeModelTest, ServersHaveTheirRowsAndWorkersThoseOfTheirBatches) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  WriteSparseRows();
  ExpectPartsFit(110 * kMegabyte, 4, With(machine_, {"--strategy", "server", "--servers", "2"}));
}

TEST_F(LargeModelTest, MembersOfARingHaveTheirColumns) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  WriteSparseRows();
  ExpectPartsFit(70 * kMegabyte, 5, With(machine_, {"--strategy", "ring"}));
}

TEST_F(LargeModelTest, MembersOfARingHaveTheirLayers) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  WriteDeepNetwork();
  ExpectPartsFit(100 * kMegabyte, 5,
                 {"rows.csv", "--model", "deep.toml", "--batch", "16", "--strategy", "ring", "--rate", "0.001"});
}

}  // namespace
}  // namespace freshet::cli
