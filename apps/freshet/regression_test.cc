// Numbers as people have them, from training to serving: prices, not numbers near one.

#include <cmath>
#include <nlohmann/json.hpp>

#include "serve_testing.h"

namespace freshet::cli {
namespace {

constexpr double kNoise = 10'000;

class RegressionTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  Finished Must(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    Finished finished = Run(arguments, around);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  Json MustJson(const std::vector<std::string>& arguments) {
    const Json json = Json::parse(Must(arguments).out, nullptr, false);
    EXPECT_TRUE(json.is_object());
    return json;
  }
  // Columns of very different sizes that make up a price of 180,000 ± 80,000, and noise.
  struct House {
    double area, rooms, distance, price;
  };
  static House HouseOf(std::uint64_t n) {
    base::Random random(9, n);
    const double a = random.Normal(), b = random.Normal(), c = random.Normal();
    return {1500 + 400 * a, 3 + b, 0.002 * c,
            std::round(180'000 + 60'000 * a + 40'000 * b - 30'000 * c + kNoise * random.Normal())};
  }
  void WriteTable(const std::string& name, std::uint64_t rows) {
    std::string text = "area,rooms,distance,price\n";
    for (std::uint64_t n = 0; n < rows; ++n) {
      const House house = HouseOf(n);
      text += Str(house.area, ",", house.rooms, ",", house.distance, ",", house.price, "\n");
    }
    scratch_.Write(name, text);
  }
  void WriteSparse(const std::string& name, std::uint64_t rows) {
    std::string text;
    for (std::uint64_t n = 0; n < rows; ++n) {
      const House house = HouseOf(n);
      text += Str(house.price, " 1:", (house.area - 1500) / 400, " 2:", house.rooms - 3, " 3:", house.distance / 0.002,
                  "\n");
    }
    scratch_.Write(name, text);
  }
  static Json Input(std::uint64_t first, std::uint64_t rows) {
    std::vector<std::vector<double>> values;
    for (std::uint64_t n = first; n < first + rows; ++n) {
      const House house = HouseOf(n);
      values.push_back({house.area, house.rooms, house.distance});
    }
    return serve::Matrix(values);
  }
  std::vector<double> Predicted(const std::string& model, const std::string& data) {
    const std::string text = Must({"predict", "-i", model, data}).out;
    std::vector<double> numbers;
    for (const std::string_view line : Split(text, '\n'))
      if (!line.empty()) numbers.push_back(std::stod(std::string(line)));
    return numbers;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(RegressionTest, EveryKindOfModelLearnsPricesAndSaysThemInTheirUnits) {
  WriteTable("prices.csv", 4000);
  WriteSparse("prices.svm", 4000);
  const struct {
    std::string data;
    std::vector<std::string> how;
    double most;  // of the RMSE, in that of the noise
  } table[] = {
      {"prices.csv", {}, 1.1},
      {"prices.csv", {"--optimizer", "lbfgs"}, 1.03},
      {"prices.csv", {"--workers", "2"}, 1.3},
      {"prices.csv", {"--model", "mlp", "--hidden", "16", "--epochs", "5"}, 1.3},
      {"prices.svm", {"--loss", "squared"}, 1.2},
      {"prices.svm", {"--loss", "squared", "--model", "fm", "-k", "3"}, 1.5},
  };
  for (const auto& [data, how, most] : table) {
    SCOPED_TRACE(Str(data, " ", Join(how, " ")));
    std::vector<std::string> train = {"train", data, "--quiet", "--json", "-o", "model"};
    train.insert(train.end(), how.begin(), how.end());
    MustJson(train);
    const Json judged = MustJson({"evaluate", "-i", "model", data, "--json"});
    EXPECT_LT(judged["rmse"].get<double>(), most * kNoise);
    EXPECT_NEAR(judged["rmse_of_mean"].get<double>(), 78'700, 4000);
    EXPECT_NEAR(judged["squared_loss"].get<double>(), judged["mse"].get<double>() / 2, 1000);
    const std::vector<double> predicted = Predicted("model", data);
    ASSERT_EQ(predicted.size(), 4000u);
    for (std::uint64_t n = 0; n < 20; ++n) EXPECT_NEAR(predicted[n], HouseOf(n).price, 6 * kNoise);
    const std::string shown = Must({"inspect", "model"}).out;
    EXPECT_NE(shown.find("target   mean 1"), std::string::npos) << shown;
    EXPECT_NEAR(MustJson({"inspect", "model", "--json"})["input"]["target"]["mean"].get<double>(), 180'000, 5000);
  }
}

TEST_F(RegressionTest, WhoLearnsNothingIsToldSoAndWhatToTry) {
  WriteTable("prices.csv", 2000);
  const Finished raw = Must({"train", "prices.csv", "--quiet", "--no-scale-target", "-o", "raw"});
  EXPECT_NE(raw.err.find("learned nothing"), std::string::npos) << raw.err;
  EXPECT_NE(raw.err.find("--no-scale-target"), std::string::npos) << raw.err;
  EXPECT_EQ(Must({"inspect", "raw"}).out.find("target"), std::string::npos);
  EXPECT_EQ(Must({"train", "prices.csv", "--quiet", "-o", "scaled"}).err, "");
}

TEST_F(RegressionTest, LabelsOfAnySizeOrAllTheSameAreLearnedAndThoseThatAreNoNumbersAreRefused) {
  const auto train = [&](const std::string& label) {
    std::string text = "a,y\n";
    for (int i = 0; i < 300; ++i) text += Str(i % 10, ",", i % 10, label, "\n");
    scratch_.Write("rows.csv", text);
    return Run({"train", "rows.csv", "--loss", "squared", "--quiet", "--json", "-e", "5"});
  };
  for (const std::string unit : {"e-30", "e-9", "e9", "e30"}) {
    SCOPED_TRACE(unit);
    const Json report = Json::parse(train(unit).out, nullptr, false);
    EXPECT_LT(report["last_epoch"]["rmse"].get<double>(), 0.1 * std::stod("1" + unit));
  }
  scratch_.Write("same.csv", "a,y\n1,42.5\n2,42.5\n3,42.5\n4,42.5\n");
  EXPECT_EQ(MustJson({"train", "same.csv", "--loss", "squared", "--quiet", "--json"})["progressive"]["rmse"], 0);
  EXPECT_EQ(train("e39").code, 3);
  scratch_.Write("nan.csv", "a,y\n1,2.5\n2,nan\n3,3.5\n4,4.5\n");
  EXPECT_EQ(Run({"train", "nan.csv", "--loss", "squared", "--quiet"}).code, 3);
}

TEST_F(RegressionTest, StandardInputIsScaledByItsHeadAndAModelThatGoesOnKeepsItsScale) {
  WriteTable("prices.csv", 2000);
  Surroundings piped;
  piped.input = scratch_ / "prices.csv";
  Must({"train", "-", "--quiet", "-o", "piped"}, piped);
  Must({"train", "prices.csv", "--quiet", "-o", "file"});
  EXPECT_EQ(Predicted("piped", "prices.csv"), Predicted("file", "prices.csv"));
  const Json target = MustJson({"inspect", "file", "--json"})["input"]["target"];
  scratch_.Write("others.csv", "area,rooms,distance,price\n1400,3,0.001,1000000\n1500,2,0.001,3000000\n");
  Must({"train", "others.csv", "--from", "file", "--quiet", "-o", "further"});
  EXPECT_EQ(MustJson({"inspect", "further", "--json"})["input"]["target"], target);
  const Finished refused = Run({"train", "others.csv", "--from", "file", "--no-scale-target", "--quiet", "-o", "raw"});
  EXPECT_EQ(refused.code, 2) << refused.err;
}

TEST_F(RegressionTest, ACacheOfRowsTeachesWhatTheFileDoes) {
  WriteTable("prices.csv", 2000);
  Must({"data", "convert", "prices.csv", "-o", "rows"});
  Must({"train", "rows", "--quiet", "-o", "cached"});
  EXPECT_LT(MustJson({"evaluate", "-i", "cached", "prices.csv", "--json"})["rmse"].get<double>(), 1.2 * kNoise);
}

TEST_F(RegressionTest, ANetworkOfPricesGoesThroughOnnxAndBack) {
  WriteTable("prices.csv", 1000);
  scratch_.Write("net.toml", "input = \"data\"\nlayers = [{dense = 8, activation = \"relu\"}, {dense = 1}]\n");
  Must({"train", "prices.csv", "--model", "net.toml", "--loss", "squared", "--no-standardise", "--rate", "1e-9",
        "--quiet", "-o", "a"});
  Must({"export", "-i", "a", "--onnx", "a.onnx"});
  Must({"import", "a.onnx", "-o", "b", "--like", "prices.csv"});
  const std::vector<double> before = Predicted("a", "prices.csv"), after = Predicted("b", "prices.csv");
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5 * std::abs(before[i]) + 1);
  EXPECT_NEAR(MustJson({"inspect", "b", "--json"})["input"]["target"]["mean"].get<double>(), 180'000, 6000);
  const Finished refused = Run({"import", "a.onnx", "-o", "c", "--loss", "hinge"});
  EXPECT_EQ(refused.code, 2);
}

TEST_F(RegressionTest, ServesPricesWarmAndColdAndGoesOnAfterAStop) {
  WriteTable("prices.csv", 1000);
  Must({"train", "prices.csv", "--quiet", "-o", "warm.model"});
  const std::vector<std::string> arguments = {"warm.model", "--cold", "cold", "--loss", "squared", "--features", "3"};
  const auto answers = [&](Server& server, const std::string& model) {
    const Reply reply = server.Post(Str("/v2/models/", model, "/infer"), serve::Inputs({Input(5000, 30)}));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json["outputs"][0]["data"].get<std::vector<float>>();
  };
  std::vector<std::vector<float>> said;
  {
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    for (const std::string model : {"warm", "cold"}) {
      SCOPED_TRACE(model);
      for (std::uint64_t first = 0; first < 900; first += 30) {
        Json prices = Json::array();
        for (std::uint64_t n = first; n < first + 30; ++n) prices.push_back(HouseOf(2000 + n).price);
        const Reply taught =
            server.Post(Str("/v2/models/", model, "/learn"),
                        serve::Inputs({Input(2000 + first, 30), serve::Tensor("labels", "FP64", prices)}));
        ASSERT_EQ(taught.status, 200) << taught.body;
      }
      const Json stats = server.SettledStats(model, 900);
      EXPECT_LT(std::sqrt(stats["quality"]["last_thousand"].get<double>()), 4.5 * kNoise) << stats["quality"];
      said.push_back(answers(server, model));
      for (std::uint64_t r = 0; r < 30; ++r) EXPECT_NEAR(said.back()[r], HouseOf(5000 + r).price, 6 * kNoise);
    }
    EXPECT_EQ(server.Stop().code, 0);
  }
  Server again(scratch_, arguments);
  ASSERT_TRUE(again.up()) << again.Wait().err;
  EXPECT_EQ(answers(again, "warm"), said[0]);
  EXPECT_EQ(answers(again, "cold"), said[1]);
}

TEST_F(RegressionTest, ReplaysPricesWithErrorsInTheirUnits) {
  WriteTable("prices.csv", 3000);
  const Json report = MustJson({"replay", "prices.csv", "--quiet", "--json", "--compare", "baseline+,continuous"});
  for (const Json& run : report["runs"])
    EXPECT_LT(std::sqrt(run["error"].get<double>()), 1.5 * kNoise) << run["method"];
}

}  // namespace
}  // namespace freshet::cli
