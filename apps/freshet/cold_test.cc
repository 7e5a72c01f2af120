// Models that are served before they have seen anything.

#include "serve_testing.h"

namespace freshet::cli {
namespace {

using serve::Tensor;

class ColdModel : public testing::Test {
 protected:
  static std::string OneLineOf(const Finished& finished) {
    EXPECT_EQ(finished.code, 2);
    return finished.ErrorLines().empty() ? "" : finished.ErrorLines().front();
  }
  Finished Refused(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"serve", "--listen", "127.0.0.1:0", "--cold", "m"});
    return Process(scratch_, arguments, {}).Wait();
  }

  base::ScratchDirectory scratch_;
};

TEST_F(ColdModel, LearnsATableWithCategoriesItMeetsByAndBy) {
  const std::vector<std::string> arguments = {
      "--cold",    "visits", "--columns", "age,city:category,day:date,answer:label",
      "--classes", "no,yes", "--state",   "state"};
  Json scores;
  {
    Server server(scratch_, arguments);
    ASSERT_TRUE(server.up()) << server.Wait().err;
    const Json inputs = server.Get("/v2/models/visits")["inputs"];
    ASSERT_EQ(inputs.size(), 3u);
    EXPECT_EQ(inputs[1], (Json{{"name", "city"}, {"datatype", "BYTES"}, {"shape", {-1}}}));
    Json ages = Json::array(), cities = Json::array(), days = Json::array(), answers = Json::array();
    for (int i = 0; i < 600; ++i) {
      ages.push_back(20 + i % 41);
      cities.push_back(i % 3 == 0 ? "Rome" : "Oslo");
      days.push_back(Str("2021-03-0", 1 + i % 9));
      answers.push_back(i % 3 == 0 ? "yes" : "no");
    }
    const Reply taught = server.Post("/v2/models/visits/learn",
                                     serve::Inputs({Tensor("age", "FP32", ages), Tensor("city", "BYTES", cities),
                                                    Tensor("day", "BYTES", days), Tensor("answer", "BYTES", answers)}));
    ASSERT_EQ(taught.status, 200) << taught.body;
    server.SettledStats("visits", 600);
    const Reply reply =
        server.Post("/v2/models/visits/infer",
                    serve::Inputs({Tensor("age", "FP32", {30, 30}), Tensor("city", "BYTES", {"Rome", "Oslo"}),
                                   Tensor("day", "BYTES", {"2021-03-02", "2021-03-02"})}));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json["outputs"][1]["data"], Json({"yes", "no"})) << reply.body;
    scores = reply.json["outputs"][0];
    EXPECT_EQ(server.Stop().code, 0);
  }
  Server again(scratch_, arguments);
  ASSERT_TRUE(again.up()) << again.Wait().err;
  const Reply reply =
      again.Post("/v2/models/visits/infer",
                 serve::Inputs({Tensor("age", "FP32", {30, 30}), Tensor("city", "BYTES", {"Rome", "Oslo"}),
                                Tensor("day", "BYTES", {"2021-03-02", "2021-03-02"})}));
  EXPECT_EQ(reply.json["outputs"][0], scores);
}

TEST_F(ColdModel, MayBeOfRatings) {
  Server server(scratch_, {"--cold", "films", "--kind", "factorization", "-k", "4", "--state", "state"});
  ASSERT_TRUE(server.up()) << server.Wait().err;
  const Json pair = {Tensor("user", "BYTES", {"ann", "bob"}), Tensor("item", "BYTES", {"Alien", "Brazil"})};
  const Reply taught =
      server.Post("/v2/models/films/learn", serve::Inputs({pair[0], pair[1], Tensor("labels", "FP32", {5, 3})}));
  ASSERT_EQ(taught.status, 200) << taught.body;
  server.SettledStats("films", 2);
  const Reply reply = server.Post("/v2/models/films/infer", serve::Inputs({pair[0], pair[1]}));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json["outputs"][0]["data"].size(), 2u);
  EXPECT_EQ(server.Stop().code, 0);
}

TEST_F(ColdModel, MayBeAPerceptron) {
  Server server(scratch_, {"--cold", "rings", "--kind", "mlp", "--hidden", "16", "--features", "2", "--classes",
                           "inner,middle,outer", "--optimizer", "adam"});
  ASSERT_TRUE(server.up()) << server.Wait().err;
  // Three rings: no plane tells them apart.
  const auto rows = [](std::uint64_t first, std::uint64_t count, Json& labels) {
    std::vector<std::vector<double>> points;
    for (std::uint64_t n = first; n < first + count; ++n) {
      base::Random random(5, n);
      const double radius = 3 * random.Uniform(), angle = 6.2832 * random.Uniform();
      points.push_back({radius * std::cos(angle), radius * std::sin(angle)});
      labels.push_back(radius < 1 ? "inner" : (radius < 2 ? "middle" : "outer"));
    }
    return serve::Matrix(points);
  };
  for (std::uint64_t first = 0; first < 20'000; first += 500) {
    Json labels = Json::array();
    const Json input = rows(first, 500, labels);
    const Reply taught =
        server.Post("/v2/models/rings/learn", serve::Inputs({input, Tensor("labels", "BYTES", labels)}));
    ASSERT_EQ(taught.status, 200) << taught.body;
  }
  const Json stats = server.SettledStats("rings", 20'000);
  EXPECT_EQ(stats["kind"], "network");
  EXPECT_LT(stats["quality"]["last_thousand"].get<double>(), 0.2) << stats["quality"];
}

TEST_F(ColdModel, SaysWhichFlagsDoNotGoTogether) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--columns", "age,city:town"},
       "--columns 'city:town': expected NAME or NAME:KIND, with a kind of number, category, date, datetime, weight, "
       "time, ignored, label"},
      {{"--columns", "age,age:category"}, "--columns: two are called 'age'"},
      {{"--columns", "y:label"}, "--columns: there is none to learn from beside the label"},
      {{"--columns", "age", "--features", "3"}, "--features: the columns that --columns names say how many there are"},
      {{"--features", "2", "--loss", "logistic", "--classes", "a,b,c"},
       "--classes: a loss of two classes wants two labels"},
      {{"--kind", "mlp"}, "--model mlp over sparse rows needs --features N; while --cold m"},
  };
  for (const auto& [arguments, line] : cases) EXPECT_EQ(OneLineOf(Refused(arguments)), line);
}

TEST_F(ColdModel, OfNumbersIsTrainedByAdagradUnlessItsStateWasByAnotherRule) {
  base::PosixFiles files;
  const auto rule = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--cold", "sea", "--features", "3", "--state", "state"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Server server(scratch_, arguments);
    EXPECT_TRUE(server.up()) << server.Wait().err;
    EXPECT_EQ(server.Post("/v2/models/sea/learn", SeaLesson(1, {Str("row ", more.size())})).status, 200);
    EXPECT_EQ(server.Stop().code, 0);
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "state/sea/versions"))
      if (entry.path().extension() == ".model") newest = std::max(newest, entry.path().string());
    return data::TensorFile::Read(files, newest).value().Meta("optimizer").value();
  };
  EXPECT_EQ(rule({}), "adagrad");
  EXPECT_EQ(rule({"--optimizer", "adaptive"}), "adaptive");
  EXPECT_EQ(rule({"--durability", "always"}), "adaptive");
}

}  // namespace
}  // namespace freshet::cli
