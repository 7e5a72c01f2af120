// Models out of the program and networks into it, as ONNX files.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class OnnxTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Finished Must(const std::vector<std::string>& arguments) {
    Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  void Fails(int code, const std::vector<std::string>& arguments, const std::string& why) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, code) << Join(arguments, " ");
    EXPECT_NE(finished.err.find(why), std::string::npos) << "'" << why << "' is not in: " << finished.err;
  }
  // A table of three numbers and one of two labels.
  void WriteTable() {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += Str(i % 7, ",", i % 5, ",", i % 3, ",", i % 7 > 3 ? "yes" : "no", "\n");
    scratch_.Write("rows.csv", rows);
  }

  base::ScratchDirectory scratch_;
};

TEST_F(OnnxTest, ANetworkComesBackAndGoesOnLearning) {
  WriteTable();
  scratch_.Write("net.toml",
                 "input = \"data\"\nlayers = [{dense = 8, activation = \"relu\"}, {dense = \"classes\"}]\n");
  Must({"train", "rows.csv", "--model", "net.toml", "--loss", "softmax", "--no-standardise", "--quiet", "-o", "a"});
  Must({"export", "-i", "a", "--onnx", "a.onnx"});
  Must({"import", "a.onnx", "-o", "b"});
  const std::string predicted = Must({"predict", "-i", "a", "rows.csv", "--probabilities"}).out;
  EXPECT_EQ(Must({"predict", "-i", "b", "rows.csv", "--probabilities"}).out, predicted);
  Must({"evaluate", "-i", "b", "rows.csv"});
  Must({"train", "-i", "b", "rows.csv", "--quiet", "-o", "c"});
  EXPECT_NE(Must({"predict", "-i", "c", "rows.csv", "--probabilities"}).out, predicted);
}

TEST_F(OnnxTest, ALinearModelComesBackAsANetworkThatPredictsTheSame) {
  WriteTable();
  Must({"train", "rows.csv", "--quiet", "-o", "a"});
  for (const std::string form : {"--no-onnx-ml", "--onnx-ml"}) {
    Must({"export", "-i", "a", "--onnx", "a.onnx", form});
    Must({"import", "a.onnx", "-o", "b"});
    const auto numbers = [&](const std::string& model) {
      std::vector<double> all;
      const std::string out = Must({"predict", "-i", model, "rows.csv", "--scores"}).out;
      for (const std::string_view line : Split(out, '\n'))
        if (!line.empty()) all.push_back(std::stod(std::string(line)));
      return all;
    };
    const std::vector<double> wanted = numbers("a"), got = numbers("b");
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-4) << form << ", row " << i;
  }
}

TEST_F(OnnxTest, WeightsLieInTheModelsFolderOrNowhere) {
  // x [N, 1] times w [1, 1], which is in another file: the fields of onnx.proto by hand.
  const auto model = [](const std::string& file) {
    const auto field = [](int number, const std::string& bytes) {
      return Str(static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size()), bytes);
    };
    const auto number = [](int at, int value) { return Str(static_cast<char>(at << 3), static_cast<char>(value)); };
    const auto value = [&](const std::string& name) {
      const std::string dims = field(1, field(2, "N")) + field(1, number(1, 1));
      return field(1, name) + field(2, field(1, number(1, 1) + field(2, dims)));
    };
    const std::string place = field(13, field(1, "location") + field(2, file));
    const std::string tensor = number(1, 1) + number(1, 1) + number(2, 1) + field(8, "w") + place + number(14, 1);
    const std::string node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "MatMul");
    const std::string graph = field(1, node) + field(5, tensor) + field(11, value("x")) + field(12, value("y"));
    return number(1, 7) + field(8, number(2, 13)) + field(7, graph);
  };
  std::filesystem::create_directory(scratch_ / "net");
  const std::string two("\0\0\0\x40", 4);
  scratch_.Write("net/w", two);
  scratch_.Write("secret", two);
  scratch_.Write("net/in.onnx", model("w"));
  scratch_.Write("net/out.onnx", model("../secret"));
  scratch_.Write("rows.csv", "3,0\n4,0\n");
  Must({"import", "net/in.onnx", "-o", "a"});
  EXPECT_EQ(Must({"predict", "-i", "a", "rows.csv"}).out, "6\n8\n");
  Fails(3, {"import", "net/out.onnx", "-o", "b"}, "'../secret' leads out of the folder");
}

TEST_F(OnnxTest, ExportTellsWhatItWrote) {
  WriteTable();
  Must({"train", "rows.csv", "--quiet", "-o", "a"});
  const auto json = nlohmann::json::parse(Must({"export", "-i", "a", "--onnx", "a.onnx", "--json"}).out);
  EXPECT_EQ(json["inputs"][0]["shape"], "[N, 3]");
  EXPECT_EQ(json["outputs"][0]["name"], "probability");
  EXPECT_EQ(json["outputs"][1]["name"], "label");
}

TEST_F(OnnxTest, RefusalsSayWhatAndWhere) {
  WriteTable();
  Must({"train", "rows.csv", "--quiet", "-o", "a"});
  Must({"export", "-i", "a", "--onnx", "a.onnx"});
  Fails(2, {"export", "-i", "a"}, "nowhere to write to");
  Fails(6, {"export", "-i", "rows.csv", "--onnx", "x"}, "rows.csv");
  Fails(2, {"import", "a.onnx"}, "nowhere to write to");
  Must({"train", "rows.csv", "--model", "kmeans", "--clusters", "2", "--quiet", "-o", "k"});
  Must({"export", "-i", "k", "--onnx", "k.onnx"});
  Fails(3, {"import", "k.onnx", "-o", "b"}, "k.onnx: node ");
  Fails(3, {"import", "rows.csv", "-o", "b"}, "rows.csv: ");
  Fails(1, {"import", "none.onnx", "-o", "b"}, "none.onnx");
}

TEST_F(OnnxTest, HelpHasExamples) {
  EXPECT_NE(Must({"export", "--help"}).out.find("Examples:\n  freshet export"), std::string::npos);
  EXPECT_NE(Must({"import", "--help"}).out.find("Examples:\n  freshet import"), std::string::npos);
}

}  // namespace
}  // namespace freshet::cli
