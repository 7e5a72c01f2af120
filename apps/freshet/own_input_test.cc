// Workers that are each given their own share of the rows (--split own).

#include <fcntl.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "model/model_file.h"
#include "workers_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class OwnInputTest : public WorkersTest {
 protected:
  // Shares of very different lengths, part-0.csv and so on.
  void Share(const std::string& rows, int shares) {
    Generate(rows);
    const std::string all = scratch_.Read("sea.csv");
    const auto lines = Split(all, '\n');
    for (int rank = 0; rank < shares; ++rank) {
      std::string part = Str(lines[0], "\n");
      for (std::size_t i = 1; i + 1 < lines.size(); ++i)
        if ((i % 7 < 4 ? 0 : i % 7 == 4 ? 1 : 2) == static_cast<std::size_t>(rank)) part += Str(lines[i], "\n");
      scratch_.Write(Str("part-", rank, ".csv"), part);
    }
  }
  Json Trained(const std::vector<Finished>& finished) {
    for (const Finished& one : finished) EXPECT_EQ(one.code, 0) << one.err;
    return Json::parse(finished[0].out, nullptr, false);
  }
  void ExpectAllRefuse(Fleet fleet, const std::vector<std::string>& pieces) {
    for (const Finished& one : Wait(fleet)) {
      EXPECT_EQ(one.code, 2) << one.err;
      for (const std::string& piece : pieces)
        EXPECT_NE(one.err.find(piece), std::string::npos) << piece << " is not in: " << one.err;
    }
  }
  const Arguments train_ = {"train", "--split", "own", "--optimizer", "adagrad", "--batch", "6", "--json", "--quiet"};
  Arguments Train(const Arguments& more) const {
    Arguments all = train_;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(OwnInputTest, EveryRowOfEveryShareIsLearnedHoweverUnequalTheyAre) {
  Share("3000", 3);
  for (const Arguments& flags : {Arguments{}, Arguments{"--no-standardise", "--strategy", "average"},
                                 Arguments{"--bits", "18", "--epochs", "2"}}) {
    Arguments train = Train({"part-{rank}.csv", "-o", "m.model"});
    train.insert(train.end(), flags.begin(), flags.end());
    Fleet fleet = Start(3, train);
    const Json result = Trained(Wait(fleet));
    ASSERT_TRUE(result.is_object());
    EXPECT_EQ(result["progressive"]["rows"], 3000);
    const std::string model = scratch_.Read("m.model");
    Fleet again = Start(3, train);
    Trained(Wait(again));
    EXPECT_EQ(scratch_.Read("m.model"), model) << "the same bytes again";
    const Finished tested = Run({"evaluate", "-i", "m.model", "--json", "sea.csv"});
    EXPECT_LT(Json::parse(tested.out)["error"], 0.2) << tested.out;
  }
}

TEST_F(OwnInputTest, SharesMayComeByPathsPatternsPipesAndStandardInput) {
  Share("1200", 3);
  ASSERT_EQ(mkfifo((scratch_ / "pipe").c_str(), 0600), 0);
  std::jthread writer([path = scratch_ / "pipe", text = scratch_.Read("part-2.csv")] { std::ofstream(path) << text; });
  Fleet fleet = StartEach({Train({"part-[0].csv", "-o", "mixed.model"}), Train({"-"}), Train({"pipe"})},
                          {"/dev/null", scratch_ / "part-1.csv", "/dev/null"});
  EXPECT_EQ(Trained(Wait(fleet))["progressive"]["rows"], 1200);
  Fleet files = Start(3, Train({"part-{rank}.csv", "-o", "files.model"}));
  EXPECT_EQ(Trained(Wait(files))["progressive"]["rows"], 1200);
  EXPECT_EQ(scratch_.Read("mixed.model"), scratch_.Read("files.model"));
}

TEST_F(OwnInputTest, LabelsOfAllSharesAreKnownToAll) {
  for (const std::string label : {"a", "b", "c"}) {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += Str(i % 10, ",", label == "a" ? 1 : label == "b" ? 2 : 3, ",", label, "\n");
    scratch_.Write(Str("part-0000", label[0] - 'a', ".csv"), rows);
  }
  Fleet fleet = Start(3, Train({"part-{rank:5}.csv", "-o", "m.model"}));
  EXPECT_EQ(Trained(Wait(fleet))["progressive"]["rows"], 600);
  const Finished inspected = Run({"inspect", "m.model"});
  EXPECT_NE(inspected.out.find("a, b, c"), std::string::npos) << inspected.out;
}

TEST_F(OwnInputTest, SharesThatAreNotOfOneKindAreRefusedByAll) {
  Share("300", 2);
  scratch_.Write("other.csv", "x1,x2,y\n1,2,0\n2,3,1\n");
  scratch_.Write("rows.svm", "1 1:1\n-1 2:1\n");
  scratch_.Write("names.csv", "x1,colour,y\n1,red,0\n2,blue,1\n");
  ExpectAllRefuse(StartEach({Train({"part-0.csv"}), Train({"other.csv"})}), {"rank 1 (", "columns"});
  ExpectAllRefuse(StartEach({Train({"part-0.csv"}), Train({"rows.svm"})}), {"rank 1 (", "libsvm", "--format"});
  ExpectAllRefuse(StartEach({Train({"names.csv"}), Train({"-"})}, {"/dev/null", scratch_ / "names.csv"}),
                  {"rank 1 (", "can be read only once", "--bits"});
  Fleet hashed = Start(2, Train({"names.csv", "--bits", "18"}));
  EXPECT_EQ(Trained(Wait(hashed))["progressive"]["rows"], 4);
}

// One worker that reads all shares, one after another, numbers names as workers do who have a share each.
TEST_F(OwnInputTest, NamesOfAllSharesHaveOneNumberForAll) {
  const std::string colours[] = {"red", "blue", "green", "white"};
  std::string ratings[2];
  for (int share = 0; share < 2; ++share) {
    std::string rows = "x,colour,y\n";
    for (int i = 0; i < 100 + 50 * share; ++i) {
      const std::string& colour = colours[share + i % (2 + share)];
      rows += Str(i % 7, ",", colour, ",", colour == "red" || colour == "white" ? 1 : 0, "\n");
      ratings[share] += Str("u", i % 9 + 5 * share, "::i", i % 4 + 2 * share, "::", 1 + i % 4, "::0\n");
    }
    scratch_.Write(Str("names-", share, ".csv"), rows);
    scratch_.Write(Str("ratings-", share, ".dat"), ratings[share]);
  }
  base::PosixFiles files;
  optimize::HeapMemory memory;
  for (const auto& [kind, name, ending] :
       {std::tuple("linear", "names-", ".csv"), std::tuple("factorization", "ratings-", ".dat")}) {
    SCOPED_TRACE(kind);
    Fleet fleet = Start(2, Train({Str(name, "{rank}", ending), "--model", kind, "-o", "own.model"}));
    EXPECT_EQ(Trained(Wait(fleet))["progressive"]["rows"], 250);
    const Finished alone = Run({"train", Str(name, 0, ending), Str(name, 1, ending), "--optimizer", "adagrad",
                                "--batch", "6", "--model", kind, "-o", "alone.model", "--quiet"});
    ASSERT_EQ(alone.code, 0) << alone.err;
    const auto own = model::LoadModel(files, scratch_ / "own.model", memory).value();
    const auto one = model::LoadModel(files, scratch_ / "alone.model", memory).value();
    ASSERT_EQ(own.description.dictionaries.size(), one.description.dictionaries.size());
    for (std::size_t d = 0; d < one.description.dictionaries.size(); ++d)
      EXPECT_EQ(own.description.dictionaries[d].Serialize(), one.description.dictionaries[d].Serialize());
    for (std::size_t b = 0; b < one.parameters.blocks(); ++b) EXPECT_EQ(own.parameters.rows(b), one.parameters.rows(b));
    const Finished tested = Run({"predict", "-i", "own.model", Str(name, 1, ending)});
    EXPECT_EQ(tested.code, 0) << tested.err;
  }
}

TEST_F(OwnInputTest, AResumedRunGoesOnThoughEachNamesAnotherFile) {
  Share("1200", 2);
  const auto commands = [&](const std::string& epochs) {
    std::vector<Arguments> both;
    for (const std::string part : {"part-0.csv", "part-1.csv"})
      both.push_back(Train({part, "--epochs", epochs, "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0",
                            "--schedule", "constant", "-o", "m.model"}));
    return both;
  };
  Fleet first = StartEach(commands("3"));
  Trained(Wait(first));
  const std::string model = scratch_.Read("m.model");
  Fleet again = StartEach(commands("3"));  // nothing is left to do
  Trained(Wait(again));
  EXPECT_EQ(scratch_.Read("m.model"), model);
}

}  // namespace
}  // namespace freshet::cli
