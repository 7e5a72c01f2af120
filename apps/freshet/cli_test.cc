// The program as its users meet it: exit codes, what goes where, and that nothing is ever left half-done.

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class CliTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  // Runs what must succeed.
  Finished Must(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    Finished finished = Run(arguments, around);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  // Runs what must fail with this code and one clear line.
  std::string Fails(int code, const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    const Finished finished = Run(arguments, around);
    EXPECT_EQ(finished.code, code) << Join(arguments, " ") << "\n" << finished.err;
    const auto lines = finished.ErrorLines();
    EXPECT_EQ(lines.size(), 1u) << Join(arguments, " ") << "\n" << finished.err;
    return lines.empty() ? "" : lines[0];
  }
  void Generate(const std::string& kind, int rows, const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"data", "generate", "--kind", kind, "--rows", Str(rows), "-o", name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Must(arguments);
  }
  Json JsonOf(const Finished& finished) {
    const Json json = Json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << finished.out;
    return json;
  }
  bool Exists(const std::string& name) const { return access((scratch_ / name).c_str(), F_OK) == 0; }
  std::vector<std::string> Drafts() const {
    std::vector<std::string> drafts;
    for (const std::string& name : scratch_.Names())
      if (name.ends_with(".draft")) drafts.push_back(name);
    return drafts;
  }
  static void ExpectMentions(const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }

  base::ScratchDirectory scratch_;
};

const std::vector<std::vector<std::string>>& AllVerbs() {
  static const std::vector<std::vector<std::string>> verbs = {
      {"train"},   {"predict"},         {"evaluate"},        {"recommend"},        {"replay"},
      {"inspect"}, {"data", "inspect"}, {"data", "convert"}, {"data", "generate"}, {"data", "split"}};
  return verbs;
}

TEST_F(CliTest, HelpOfServeAndReplayShowsWhatTheRecipesMakeOfFlags) {
  for (const std::string verb : {"serve", "replay"}) {
    const std::string help = Must({verb, "--help"}).out;
    ExpectMentions(help, "none [by the recipe: light sweep, heavy sweep]");
    ExpectMentions(help, "[by the recipe: light 0.3, heavy 2]");
    ExpectMentions(help, "none [by the recipe: light adwin, heavy none]");
    ExpectMentions(help, "draw only rows that came since [by the recipe: light yes, heavy no]");
  }
}

TEST_F(CliTest, HelpOfEveryVerbHasExamplesAndEveryFlagADescription) {
  for (std::vector<std::string> verb : AllVerbs()) {
    SCOPED_TRACE(Join(verb, " "));
    verb.push_back("--help");
    const Finished help = Must(verb);
    verb.pop_back();
    ExpectMentions(help.out, "Examples:\n  freshet " + Join(verb, " "));
    EXPECT_EQ(help.err, "");
    int flags = 0;
    for (const std::string_view line : Split(help.out, '\n')) {
      const std::size_t flag = line.find("--");
      if (flag == std::string_view::npos || (!line.starts_with("      --") && !line.starts_with("  -"))) continue;
      ++flags;
      const std::size_t text = line.find("  ", flag);
      ASSERT_NE(text, std::string_view::npos) << line;
      EXPECT_GT(Trim(line.substr(text)).size(), 3u) << line;
    }
    EXPECT_GT(flags, 2);
  }
  ExpectMentions(Must({"--help"}).out, "Verbs:");
  ExpectMentions(Must({"help", "train"}).out, "Examples:");
  ExpectMentions(Must({}).out, "Verbs:");
  ExpectMentions(Must({"--version"}).out, "freshet ");
}

TEST_F(CliTest, SuggestsWhatWasMeant) {
  ExpectMentions(Fails(2, {"trian"}), "did you mean 'train'?");
  ExpectMentions(Fails(2, {"data", "genrate"}), "did you mean 'generate'?");
  ExpectMentions(Fails(2, {"train", "x", "--epoch=3"}), "did you mean 'epochs'?");
  ExpectMentions(Fails(2, {"train", "x", "--optimizer", "magic"}), "expected one of auto, adaptive");
}

TEST_F(CliTest, SaysAllMistakesAtOnceOnePerLine) {
  const Finished finished = Run({"train", "--epoch=3", "--rate", "fast", "--batch", "-1"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.ErrorLines().size(), 3u) << finished.err;
  EXPECT_EQ(finished.out, "");
}

TEST_F(CliTest, ExitCodesTellWhatKindOfFailure) {
  Generate("sea", 500, "sea.csv");
  Must({"train", "sea.csv", "-o", "m", "--quiet"});
  Fails(2, {"train"});
  Fails(2, {"predict", "sea.csv"});
  scratch_.Write("bad.csv", "x1,x2,x3,label\n1,2,3,1\n1,3,0\n1,2,3,0\n");
  ExpectMentions(Fails(3, {"train", "bad.csv", "--label", "label", "--header", "yes", "--categorical", ""}),
                 "bad.csv:");
  ExpectMentions(Fails(3, {"train", scratch_.Write("empty.csv", "")}), "empty.csv");
  ExpectMentions(Fails(5, {"train", "sea.csv", "--loss", "squared", "--optimizer", "sgd", "--rate", "100",
                           "--no-standardise", "--quiet"}),
                 "--rate");
  scratch_.Write("damaged", scratch_.Read("m").substr(0, 300));
  ExpectMentions(Fails(6, {"predict", "-i", "damaged", "sea.csv"}), "damaged");
  ExpectMentions(Fails(6, {"inspect", "sea.csv"}), "sea.csv");
  ExpectMentions(Fails(1, {"train", "missing.csv"}), "missing.csv");
  ExpectMentions(Fails(1, {"evaluate", "-i", "missing", "sea.csv"}), "missing");
  ExpectMentions(Fails(3, {"train", "."}), "is a directory");
  ExpectMentions(Fails(1, {"train", "sea.csv", "--test", "missing.csv", "-o", "never"}), "missing.csv");
  EXPECT_FALSE(Exists("never"));  // a test file that is not there is found out before training, not after
}

TEST_F(CliTest, AnUnreadableFileEndsInOneClearLine) {
  if (geteuid() == 0) GTEST_SKIP() << "everything is readable to root";
  scratch_.Write("secret.csv", "1,2\n");
  chmod((scratch_ / "secret.csv").c_str(), 0);
  ExpectMentions(Fails(1, {"train", "secret.csv"}), "Permission denied");
}

TEST_F(CliTest, JsonIsAllThatGoesToStandardOutput) {
  Generate("sea", 3000, "sea.csv");
  Generate("ratings", 2000, "r.dat", {"--users", "50", "--items", "300"});
  const Json trained = JsonOf(Must({"train", "sea.csv", "-o", "m", "--json", "--holdout", "0.2", "--test", "sea.csv"}));
  EXPECT_EQ(trained["schema"], 1);
  EXPECT_EQ(trained["rows"].get<int>() + trained["held_out"]["rows"].get<int>(), 3000);
  EXPECT_EQ(trained["test"]["rows"], 3000);
  EXPECT_EQ(trained["model"]["kind"], "linear");
  for (const char* const key : {"log_loss", "error_rate", "auc"}) EXPECT_TRUE(trained["test"][key].is_number()) << key;
  const Json evaluated = JsonOf(Must({"evaluate", "-i", "m", "--json", "sea.csv"}));
  for (const char* const key : {"rows", "log_loss", "error_rate", "auc"})
    EXPECT_EQ(evaluated[key], trained["test"][key]) << key;
  EXPECT_EQ(JsonOf(Must({"inspect", "m", "--json"}))["blocks"].size(), 2u);
  EXPECT_EQ(JsonOf(Must({"data", "inspect", "--json", "sea.csv"}))["rows"], 3000);
  Must({"train", "r.dat", "-o", "r", "--quiet"});
  EXPECT_EQ(JsonOf(Must({"recommend", "-i", "r", "--user", "1", "--json"}))["items"].size(), 10u);
}

TEST_F(CliTest, WritesNoEscapesToPipesAndNothingToStandardErrorWhenQuiet) {
  Generate("sea", 20'000, "sea.csv");
  const Finished loud = Must({"train", "sea.csv"});
  for (const std::string* text : {&loud.out, &loud.err})
    for (const char c : *text) ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << *text;
  ExpectMentions(loud.err, "average");
  EXPECT_LT(Split(loud.err, '\n').size(), 12u);  // a line whenever the rows have doubled
  EXPECT_EQ(Must({"train", "sea.csv", "--quiet"}).err, "");
}

struct Task {
  std::string name;
  std::vector<std::string> generate, train;
  std::string measure;
  double worst;
};

TEST_F(CliTest, EveryKindOfModelGoesFromDataToPredictionsAndBack) {
  scratch_.Write("classes.csv", [] {
    std::string text = "a,b,colour,kind\n";
    for (int i = 0; i < 900; ++i)
      text += Str(i % 3 == 0 ? 5 + i % 7 * 0.1 : -i % 5 * 0.1, ",", i % 3 == 1 ? 4 : 0, ",",
                  i % 2 == 0 ? "red" : "blue", ",", i % 3 == 0 ? "oak" : (i % 3 == 1 ? "elm" : "ash"), "\n");
    return text;
  }());
  const std::vector<Task> tasks = {
      {"logistic", {"--kind", "sea", "--rows", "3000", "--drift-rows", "100000"}, {}, "error_rate", 0.14},
      {"hinge",
       {"--kind", "hyperplane", "--rows", "3000", "--drift-rows", "100000"},
       {"--loss", "hinge"},
       "error_rate",
       0.14},
      {"sparse", {"--kind", "url-like", "--rows", "1000"}, {"--bits", "18"}, "error_rate", 0.36},
      {"squared", {"--kind", "sea", "--rows", "3000", "--drift-rows", "100000"}, {"--loss", "squared"}, "rmse", 0.45},
      {"factorization",
       {"--kind", "ratings", "--rows", "6000", "--users", "60", "--items", "50"},
       {"-k", "4"},
       "rmse",
       1.0},
      {"fm",
       {"--kind", "ratings", "--rows", "6000", "--users", "60", "--items", "50"},
       {"-m", "fm", "-k", "4", "--epochs", "5"},
       "rmse",
       1.0},
      {"kmeans", {"--kind", "sea", "--rows", "3000"}, {"-m", "kmeans", "--clusters", "5"}, "half_squared_distance", 3},
      {"classes", {}, {"--label", "kind"}, "error_rate", 0.05},
      {"lbfgs",
       {"--kind", "sea", "--rows", "2000", "--drift-rows", "100000"},
       {"--optimizer", "lbfgs"},
       "error_rate",
       0.14},
  };
  for (const Task& task : tasks) {
    SCOPED_TRACE(task.name);
    std::string data = "classes.csv";
    if (!task.generate.empty()) {
      data = task.name + ".rows";
      std::vector<std::string> generate = {"data", "generate", "-o", data};
      generate.insert(generate.end(), task.generate.begin(), task.generate.end());
      Must(generate);
    }
    const std::string model = task.name + ".model";
    std::vector<std::string> train = {"train", data, "-o", model, "--json", "--quiet", "--test", data};
    train.insert(train.end(), task.train.begin(), task.train.end());
    const Json trained = JsonOf(Must(train));
    const Json evaluated = JsonOf(Must({"evaluate", "-i", model, data, "--json"}));
    EXPECT_EQ(evaluated[task.measure], trained["test"][task.measure]);  // raw rows scored later give the same numbers
    EXPECT_LT(evaluated[task.measure].get<double>(), task.worst);
    const Finished predicted = Must({"predict", "-i", model, data});
    const auto lines = Split(predicted.out, '\n');
    EXPECT_EQ(lines.size() - 1, evaluated["rows"].get<std::size_t>());
    EXPECT_EQ(lines.back(), "");
    ExpectMentions(Must({"inspect", model}).out, trained["model"]["kind"]);
    // Predictions are the same from one thread, from standard input and into a file.
    EXPECT_EQ(Must({"predict", "-i", model, "-", "--threads", "1", "-o", "p"}, {.input = scratch_ / data}).out, "");
    EXPECT_EQ(scratch_.Read("p"), predicted.out);
  }
  EXPECT_TRUE(Drafts().empty());
}

TEST_F(CliTest, PredictsClassesByTheirNames) {
  std::string text = "x,y,kind\n";
  for (int i = 0; i < 600; ++i)
    text +=
        Str(i % 3 == 0 ? 9 : 1, ",", i % 3 == 1 ? 9 : 1, ",", i % 3 == 0 ? "oak" : (i % 3 == 1 ? "elm" : "ash"), "\n");
  scratch_.Write("trees.csv", text);
  Must({"train", "trees.csv", "--label", "kind", "-o", "m", "--quiet", "--epochs", "3"});
  scratch_.Write("new.csv", "y,x\n1,9\n9,1\n1,1\n");  // no labels, columns in another order
  EXPECT_EQ(Must({"predict", "-i", "m", "new.csv"}).out, "oak\nelm\nash\n");
  const Finished probabilities = Must({"predict", "-i", "m", "new.csv", "--probabilities"});
  EXPECT_EQ(Split(Split(probabilities.out, '\n')[0], ' ').size(), 3u);
}

TEST_F(CliTest, RecommendsItemsThatAUserHasNotRated) {
  Generate("ratings", 3000, "r.dat", {"--users", "40", "--items", "30"});
  Must({"train", "r.dat", "-o", "m", "--quiet"});
  const std::string ratings = scratch_.Read("r.dat");
  const std::string user(Split(ratings, ':')[0]);
  std::vector<std::string> rated;
  for (const std::string_view line : Split(ratings, '\n'))
    if (const auto fields = Split(line, ':'); fields[0] == user) rated.emplace_back(fields[2]);
  const Json unseen = JsonOf(Must({"recommend", "-i", "m", "--user", user, "-n", "1000", "--json"}));
  EXPECT_EQ(JsonOf(Must({"recommend", "-i", "m", "--user", user, "-n", "1000", "--json", "r.dat"})), unseen);
  ASSERT_GT(unseen["items"].size(), 0u);
  const std::string newer = unseen["items"][0]["item"];
  scratch_.Write("newer.dat", Str(user, "::", newer, "::5::978300760\n"));
  const Json without = JsonOf(Must({"recommend", "-i", "m", "--user", user, "-n", "1000", "--json", "newer.dat"}));
  EXPECT_EQ(without["items"].size() + 1, unseen["items"].size());
  double last = 1e9;
  for (const Json& item : unseen["items"]) {
    EXPECT_EQ(std::find(rated.begin(), rated.end(), item["item"].get<std::string>()), rated.end());
    EXPECT_LE(item["score"].get<double>(), last);
    last = item["score"];
  }
  ExpectMentions(Fails(1, {"recommend", "-i", "m", "--user", "nobody"}), "nobody");
  Fails(2, {"recommend", "-i", "m"});
  Generate("sea", 100, "sea.csv");
  Must({"train", "sea.csv", "-o", "linear", "--quiet"});
  ExpectMentions(Fails(2, {"recommend", "-i", "linear", "--user", "1"}), "factorization");
}

TEST_F(CliTest, ReadsStandardInput) {
  Generate("sea", 2000, "sea.csv");
  Must({"train", "sea.csv", "-o", "from-file", "--quiet"});
  Must({"train", "-", "-o", "from-pipe", "--quiet"}, {.input = scratch_ / "sea.csv"});
  EXPECT_TRUE(scratch_.Read("from-file") == scratch_.Read("from-pipe"));
  const Finished generated = Must({"data", "generate", "--kind", "sea", "--rows", "2000"});
  EXPECT_EQ(generated.out, scratch_.Read("sea.csv"));
}

TEST_F(CliTest, TheEffectiveConfigurationGivesTheSameModelAgain) {
  Generate("ratings", 2000, "r.dat", {"--users", "40", "--items", "30"});
  Must({"train", "r.dat", "-o", "m", "--quiet", "-k", "7", "--rate", "0.03", "--seed", "18446744073709551615",
        "--holdout", "0.1"});
  Must({"train", "--config", "m.toml", "-o", "n"});
  EXPECT_TRUE(scratch_.Read("n") == scratch_.Read("m"));
  std::string toml = scratch_.Read("n.toml");
  toml.replace(toml.find("out = \"n\""), 9, "out = \"m\"");
  EXPECT_EQ(toml, scratch_.Read("m.toml"));
  ExpectMentions(toml, "optimizer = \"sgd\"");  // what "auto" meant
}

TEST_F(CliTest, ACacheTrainsTheSameModelAsTheTextItCameFrom) {
  Generate("sea", 2000, "sea.csv");
  Must({"data", "convert", "sea.csv", "-o", "sea.cache"});
  Must({"train", "sea.csv", "-o", "text", "--quiet"});
  Must({"train", "sea.cache", "-o", "cached", "--quiet"});
  EXPECT_TRUE(scratch_.Read("text") == scratch_.Read("cached"));
  EXPECT_EQ(Must({"predict", "-i", "text", "sea.csv"}).out, Must({"predict", "-i", "text", "sea.cache"}).out);
  std::string text;
  for (int i = 0; i < 300; ++i) text += Str(i % 4, " ", i % 4 + 1, ":1\n");
  scratch_.Write("four.svm", text);
  Must({"data", "convert", "four.svm", "-o", "four.cache"});
  Must({"train", "four.svm", "-o", "text4", "--quiet"});
  Must({"train", "four.cache", "-o", "cached4", "--quiet"});
  EXPECT_TRUE(scratch_.Read("text4") == scratch_.Read("cached4"));
  // Rows that were read in another way mean something else.
  Must({"data", "convert", "four.svm", "--index-base", "0", "-o", "other.cache"});
  ExpectMentions(Fails(2, {"evaluate", "-i", "text4", "other.cache"}), "other.cache");
}

TEST_F(CliTest, GoesOnTrainingFromAModelFile) {
  Generate("sea", 2000, "first.csv", {"--drift-rows", "100000"});
  Generate("sea", 2000, "second.csv", {"--drift-rows", "100000", "--first-row", "2000"});
  Must({"train", "first.csv", "-o", "m", "--quiet"});
  const double before = JsonOf(Must({"evaluate", "-i", "m", "second.csv", "--json"}))["log_loss"];
  const Json more = JsonOf(Must({"train", "second.csv", "--from", "m", "-o", "m2", "--json", "--quiet"}));
  EXPECT_LT(more["progressive"]["log_loss"].get<double>(), before + 0.05);
}

TEST_F(CliTest, GoesOnFromAModelFileWithItsSumsAsIfItHadNeverStopped) {
  Generate("sea", 2000, "first.csv", {"--drift-rows", "100000"});
  Generate("sea", 2000, "second.csv", {"--drift-rows", "100000", "--first-row", "2000"});
  const auto train = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(), {"--no-standardise", "--optimizer", "adagrad", "--quiet"});
    Must(arguments);
  };
  const auto predictions = [&](const std::string& model) { return Must({"predict", "-i", model, "second.csv"}).out; };
  train({"first.csv", "second.csv", "-o", "both"});
  train({"first.csv", "-o", "kept", "--keep-optimizer"});
  train({"first.csv", "-o", "plain"});
  EXPECT_EQ(predictions("kept"), predictions("plain"));
  train({"second.csv", "--from", "kept", "-o", "after kept"});
  train({"second.csv", "--from", "plain", "-o", "after plain"});
  EXPECT_EQ(predictions("after kept"), predictions("both"));
  EXPECT_NE(predictions("after plain"), predictions("both"));
  ExpectMentions(Fails(2, {"train", "first.csv", "--optimizer", "lbfgs", "--keep-optimizer"}), "--keep-optimizer");
}

TEST_F(CliTest, SplitsConvertsAndInspects) {
  Generate("sea", 1000, "sea.csv");
  ExpectMentions(Must({"data", "split", "sea.csv", "--train", "a.csv", "--test", "b.csv", "--share", "0.2"}).out,
                 "rows to a.csv");
  const auto rows = [&](const std::string& name) {
    return JsonOf(Must({"data", "inspect", "--json", name}))["rows"].get<int>();
  };
  EXPECT_EQ(rows("a.csv") + rows("b.csv"), 1000);
  Must({"data", "convert", "sea.csv", "--to", "libsvm", "-o", "sea.svm"});
  EXPECT_EQ(rows("sea.svm"), 1000);
  Fails(2, {"data", "split", "sea.csv", "--train", "a.csv"});
}

TEST_F(CliTest, SetsMalformedRowsAside) {
  scratch_.Write("mixed.svm", "+1 1:1 2:0.5\n-1 1:x\n+1 3:1\n-1 2:2\nnonsense\n-1 1:1\n");
  const std::string line = Fails(3, {"train", "mixed.svm", "--format", "libsvm"});
  ExpectMentions(line, "mixed.svm:2:");
  const Json json = JsonOf(Must({"train", "mixed.svm", "--format", "libsvm", "--max-bad-rows", "2", "--bad-rows",
                                 "bad.txt", "--json", "--quiet"}));
  EXPECT_EQ(json["bad_rows"], 2);
  EXPECT_EQ(json["rows"], 4);
  ExpectMentions(scratch_.Read("bad.txt"), "nonsense");
  ExpectMentions(Fails(3, {"train", "mixed.svm", "--format", "libsvm", "--max-bad-rows", "1"}), "mixed.svm:5:");
}

// A run long enough to be disturbed.
class DisturbedRun : public CliTest {
 protected:
  void SetUp() override {
    Generate("sea", 60'000, "sea.csv");
    Must(Command("whole"));
  }
  std::vector<std::string> Command(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"train",  "sea.csv",         "--epochs", "30", "--schedule",
                                        "linear", "--deterministic", "--quiet",  "-o", out};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  std::vector<std::string> WithCheckpointAfterEveryBlock() {
    return Command("disturbed", {"--checkpoint", "run.ckpt", "--checkpoint-seconds", "0"});
  }
  void ExpectResumesToTheSameModel() {
    ASSERT_TRUE(Exists("run.ckpt"));
    EXPECT_FALSE(Exists("disturbed"));
    Must(Command("disturbed", {"--checkpoint", "run.ckpt"}));
    EXPECT_TRUE(scratch_.Read("disturbed") == scratch_.Read("whole"));
  }
  void Disturb(int signal, int code) {
    Process process(scratch_, WithCheckpointAfterEveryBlock(), {});
    ASSERT_TRUE(process.WaitUntil([&] { return Exists("run.ckpt.rows"); }));  // in the second epoch
    ASSERT_EQ(kill(process.pid(), signal), 0);
    const Finished finished = process.Wait();
    EXPECT_EQ(finished.code, code) << finished.err;
    EXPECT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    ExpectMentions(finished.err, "checkpoint written to run.ckpt");
    EXPECT_TRUE(Drafts().empty());
  }
};

TEST_F(DisturbedRun, ByCtrlCWritesACheckpointAndResumesToTheSameModel) {
  Disturb(SIGINT, 130);
  ExpectResumesToTheSameModel();
}

TEST_F(DisturbedRun, BySigtermToo) {
  Disturb(SIGTERM, 143);
  ExpectResumesToTheSameModel();
}

TEST_F(DisturbedRun, ByKillInTheMiddleOfACheckpointResumesFromTheEarlierOne) {
  const Finished killed =
      Run(WithCheckpointAfterEveryBlock(), {.environment = {{"FRESHET_FAULT", "checkpoint.written:9:kill"}}});
  EXPECT_EQ(killed.code, 128 + SIGKILL);
  ExpectResumesToTheSameModel();
}

TEST_F(DisturbedRun, ByKillAtAnyMomentResumesToTheSameModel) {
  Process process(scratch_, WithCheckpointAfterEveryBlock(), {});
  ASSERT_TRUE(process.WaitUntil([&] { return Exists("run.ckpt"); }));
  ASSERT_EQ(kill(process.pid(), SIGKILL), 0);
  EXPECT_EQ(process.Wait().code, 128 + SIGKILL);
  ExpectResumesToTheSameModel();
}

TEST_F(DisturbedRun, IsNotResumedWithOtherSettingsUnlessStartedAfresh) {
  Disturb(SIGINT, 130);
  auto other = Command("disturbed", {"--checkpoint", "run.ckpt"});
  other.insert(other.end(), {"--l2", "0.5"});
  const std::string line = Fails(6, other);
  ExpectMentions(line, "l2 = 0.0, now l2 = 0.5");
  ExpectMentions(line, "--fresh");
  other.push_back("--fresh");
  Must(other);
  EXPECT_TRUE(Exists("disturbed"));
}

TEST_F(CliTest, CtrlCStopsEveryVerbThatTakesLong) {
  Process process(scratch_, {"data", "generate", "--kind", "sea", "--rows", "1000000000000", "-o", "endless.csv"}, {});
  ASSERT_TRUE(process.WaitUntil([&] { return !Drafts().empty(); }));
  ASSERT_EQ(kill(process.pid(), SIGINT), 0);
  EXPECT_EQ(process.Wait().code, 130);
  EXPECT_TRUE(Drafts().empty());
  EXPECT_FALSE(Exists("endless.csv"));
}

TEST_F(CliTest, ASecondProcessThatWritesTheSameModelIsTurnedAway) {
  Generate("sea", 1000, "sea.csv");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Process first(scratch_, {"train", "-", "-o", "m", "--quiet"}, {.input_descriptor = ends[0]});
  close(ends[0]);
  ASSERT_TRUE(first.WaitUntil([&] { return !scratch_.Read("m.lock").empty(); }));
  const std::string line = Fails(1, {"train", "sea.csv", "-o", "m", "--quiet"});
  ExpectMentions(line, Str("pid ", first.pid()));
  EXPECT_FALSE(Exists("m"));
  const std::string rows = scratch_.Read("sea.csv");
  ASSERT_EQ(write(ends[1], rows.data(), rows.size()), static_cast<ssize_t>(rows.size()));
  close(ends[1]);
  EXPECT_EQ(first.Wait().code, 0);
  Must({"evaluate", "-i", "m", "sea.csv"});
  EXPECT_FALSE(Exists("m.lock"));
}

TEST_F(CliTest, AFullDiskEndsInOneClearLine) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full on this system";
  Generate("sea", 1000, "sea.csv");
  Must({"train", "sea.csv", "-o", "m", "--quiet"});
  const Surroundings full{.output = "/dev/full"};
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"predict", "-i", "m", "sea.csv"},
                                                    {"evaluate", "-i", "m", "sea.csv"},
                                                    {"inspect", "m"},
                                                    {"train", "sea.csv", "--quiet"},
                                                    {"train", "--help"},
                                                    {"data", "inspect", "sea.csv"},
                                                    {"data", "generate", "--kind", "sea"}})
    ExpectMentions(Fails(1, arguments, full), "No space left on device");
  ExpectMentions(Fails(1, {"train", "sea.csv", "-o", "/dev/full", "--quiet"}),
                 "/dev/full: cannot write: No space left on device");
  ExpectMentions(Fails(1, {"predict", "-i", "m", "sea.csv", "-o", "/dev/full"}), "No space left on device");
  struct stat info {};
  ASSERT_EQ(stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
  Must({"train", "sea.csv", "-o", "/dev/null", "--quiet"});
  ExpectMentions(Fails(2, {"train", "sea.csv", "-o", "-"}), "--out");
}

TEST_F(CliTest, AnOutputDirectoryThatIsNotThereIsFoundOutAtOnce) {
  Generate("sea", 100, "sea.csv");
  ExpectMentions(Fails(1, {"train", "sea.csv", "-o", "nowhere/m"}), "nowhere/m");
}

TEST_F(CliTest, TrainingHoldsNoMoreThanItsModelAndAFewMegabytesWhateverTheSizeOfTheData) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr double kAllowedMb = 64;
  Generate("hyperplane", 300'000, "wide.csv", {"--features", "60"});
  struct stat info {};
  ASSERT_EQ(stat((scratch_ / "wide.csv").c_str(), &info), 0);
  ASSERT_GT(info.st_size, 115'000'000);
  const double program_mb = Must({"--version"}).peak_mb;
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"--epochs", "2"},
      {"--batch", "100"},
      {"--shuffle"},
      {"--shuffle", "--epochs", "2", "--holdout", "0.1", "--patience", "1"}};
  for (const auto& way : ways) {
    SCOPED_TRACE(Join(way, " "));
    std::vector<std::string> command = {"train", "wide.csv", "-o", "m", "--quiet", "--threads", "2"};
    command.insert(command.end(), way.begin(), way.end());
    EXPECT_LT(Must(command).peak_mb, program_mb + kAllowedMb);
  }
}

TEST_F(CliTest, TrainingOnRatingsHoldsNoMoreThanItsModelAndAFewMegabytes) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  Generate("ratings", 2'000'000, "r.dat");
  const double program_mb = Must({"--version"}).peak_mb;
  const double model_mb = 10'000 * 9 * 4 / 1e6;
  EXPECT_LT(Must({"train", "r.dat", "-o", "m", "-k", "8", "--epochs", "2", "--quiet", "--threads", "2"}).peak_mb,
            program_mb + model_mb + 68);
}

}  // namespace
}  // namespace freshet::cli
