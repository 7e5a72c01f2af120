// Networks from the command line: the same model whatever the number of threads, and a word about layers that oneDNN
// can compute only by its reference.

#include "process_testing.h"

namespace freshet::cli {
namespace {

class NetworkThreadsTest : public testing::Test {
 protected:
  Finished Must(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    Finished finished = Process(scratch_, arguments, around).Wait();
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  // Rows of `count` numbers that follow from their place, in two classes.
  void WriteRows(const std::string& name, int rows, int count) {
    std::string text;
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < count; ++i) text += Str((r * 7 + i * (3 + r % 2)) % 11 - 5, ",");
      text += Str(r % 2, "\n");
    }
    scratch_.Write(name, text);
  }

  base::ScratchDirectory scratch_;
};

TEST_F(NetworkThreadsTest, AnyNumberOfThemMakesTheSameModel) {
  WriteRows("rows.csv", 200, 3 * 12 * 12);
  scratch_.Write("net.toml", R"(
input = [3, 12, 12]
layers = [
  {convolution = 24, kernel = 5, pad = 2, bias = false},
  {batch-norm = true, activation = "relu"},
  {convolution = 10, kernel = 3, activation = "relu"},
  {dense = "classes"},
]
)");
  std::string first;
  for (const char* const threads : {"1", "2", "3"}) {
    Must({"train", "rows.csv", "--model", "net.toml", "--threads", threads, "--epochs", "2", "--quiet", "-o", "m"});
    const std::string model = scratch_.Read("m");
    ASSERT_FALSE(model.empty());
    if (first.empty()) first = model;
    EXPECT_TRUE(model == first) << threads << " threads make another model";
  }
}

// On processors without AVX2, which oneDNN can be told to take this one for.
TEST_F(NetworkThreadsTest, AreToldOfALayerWithoutAFastKernel) {
  WriteRows("rows.csv", 8, 3 * 12 * 12);
  scratch_.Write("net.toml", R"(
input = [3, 12, 12]
layers = [
  {convolution = 1, kernel = 5, pad = 2, name = "narrow"},
  {dense = "classes"},
]
)");
  const std::vector<std::string> train = {"train", "rows.csv", "--model", "net.toml", "--quiet", "-o", "m"};
  EXPECT_EQ(Must(train).err.find("slow_layer"), std::string::npos);
#if defined(__x86_64__)
  const std::string told = Must(train, {.environment = {{"ONEDNN_MAX_CPU_ISA", "SSE41"}}}).err;
  EXPECT_NE(told.find("slow_layer"), std::string::npos) << told;
  EXPECT_NE(told.find("narrow"), std::string::npos) << told;
#endif
}

}  // namespace
}  // namespace freshet::cli
