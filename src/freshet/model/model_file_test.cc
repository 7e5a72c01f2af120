#include "model/model_file.h"
#include "data/formats/ratings_columns.h"

#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/scratch_testing.h"
#include "model/rows_testing.h"

namespace freshet::model {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  struct Trained {
    std::unique_ptr<Model> model;
    optimize::Parameters parameters;
    data::Description description;
  };

  Trained MakeTrained(const Kind& kind, std::uint64_t seed) {
    auto model = std::move(Model::Make(kind.Config())).value();
    auto parameters = std::move(model->NewParameters(memory_)).value();
    base::Random random(seed, "model file");
    data::Rows rows;
    rows.ClearRows();
    for (int i = 0; i < 10; ++i) kind.AddRow(random, rows);
    EXPECT_TRUE(model->Prepare(parameters, rows.batch()).ok());
    Randomise(random, parameters);
    data::Description description;
    description.format = kind.kind == "factorization" ? "ratings" : "libsvm";
    if (description.format == "ratings") description.columns = data::RatingsColumns();
    description.labels.kind = model->loss().task();
    description.labels.names = {"no", "ja \xfc", "0"};
    description.labels.Index();
    description.dense = kind.dense;
    description.features = kind.dense ? Kind::kFeatures : 0;
    if (kind.dense) {
      description.standardise = true;
      description.moments = data::Moments(Kind::kFeatures);
      for (std::size_t r = 0; r < rows.size(); ++r) description.moments.Observe(&rows.dense[r * Kind::kFeatures]);
    }
    if (kind.kind == "factorization") {
      description.dictionaries.resize(2);
      for (int i = 0; i < 6; ++i) description.dictionaries[0].Add(Str("user ", i));
      description.dictionaries[1].Add(std::string_view("\0item", 5));
    }
    return {std::move(model), std::move(parameters), std::move(description)};
  }
  Result<void> Save(base::Files& files, const Trained& trained, const std::string& path) {
    return SaveModel(files, path, *trained.model, trained.parameters, trained.description, {{"rows", "10"}});
  }
  // From memory, or through a file.
  Result<TrainedModel> LoadBytes(std::string bytes, bool through_a_file) {
    if (through_a_file) return LoadModel(files_, scratch_.Write("damaged", bytes), memory_);
    return ModelFrom(TRY(data::TensorFile::Parse(std::move(bytes), "damaged")), memory_);
  }
  void ExpectSame(const TrainedModel& loaded, const Trained& trained) {
    EXPECT_EQ(loaded.model->config().ToJson(), trained.model->config().ToJson());
    EXPECT_EQ(loaded.description.ToJson(), trained.description.ToJson());
    EXPECT_EQ(loaded.description.moments, trained.description.moments);
    ASSERT_EQ(loaded.description.dictionaries.size(), trained.description.dictionaries.size());
    for (std::size_t i = 0; i < loaded.description.dictionaries.size(); ++i)
      EXPECT_EQ(loaded.description.dictionaries[i].Serialize(), trained.description.dictionaries[i].Serialize());
    ASSERT_EQ(loaded.parameters.blocks(), trained.parameters.blocks());
    for (std::size_t b = 0; b < loaded.parameters.blocks(); ++b)
      EXPECT_EQ(loaded.parameters.Gather(b), trained.parameters.Gather(b));
  }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
  optimize::HeapMemory memory_;
};

TEST_F(ModelFileTest, EveryKindComesBackAsItWas) {
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(kind.Name());
    const Trained trained = MakeTrained(kind, 1);
    ASSERT_TRUE(Save(files_, trained, scratch_ / "m").ok());
    const auto loaded = LoadModel(files_, scratch_ / "m", memory_);
    ASSERT_TRUE(loaded.ok()) << loaded.error().text;
    ExpectSame(loaded.value(), trained);
    EXPECT_EQ(loaded.value().metadata.at("rows"), "10");
  }
}

TEST_F(ModelFileTest, RemembersWhoHasRatedWhat) {
  const Trained trained = MakeTrained({"factorization", "squared"}, 1);
  const auto rated = Rated::Unpack(std::string("\x01\x00\x00\x01\x00", 5));  // users 0 and 2
  ASSERT_TRUE(
      SaveModel(files_, scratch_ / "m", *trained.model, trained.parameters, trained.description, {}, rated.value())
          .ok());
  EXPECT_EQ(LoadModel(files_, scratch_ / "m", memory_).value().rated.pairs(),
            (std::vector<Rated::Pair>{{0, 0}, {2, 0}}));
  ASSERT_TRUE(Save(files_, trained, scratch_ / "m").ok());
  EXPECT_TRUE(LoadModel(files_, scratch_ / "m", memory_).value().rated.empty());
  const auto unknown = Rated::Unpack(std::string("\x01\x01", 2));  // there is one item
  ASSERT_TRUE(
      SaveModel(files_, scratch_ / "m", *trained.model, trained.parameters, trained.description, {}, unknown.value())
          .ok());
  EXPECT_EQ(LoadModel(files_, scratch_ / "m", memory_).error().code, Code::kCorrupt);
}

TEST_F(ModelFileTest, SavesTheWeightsAloneWhateverLiesBesideThem) {
  const Kind kind{"linear", "logistic"};
  const Trained trained = MakeTrained(kind, 1);
  auto beside = std::move(trained.model->NewParameters(memory_, 2)).value();
  beside.CopyFrom(trained.parameters);
  ASSERT_TRUE(Save(files_, trained, scratch_ / "a").ok());
  ASSERT_TRUE(SaveModel(files_, scratch_ / "b", *trained.model, beside, trained.description, {{"rows", "10"}}).ok());
  EXPECT_EQ(scratch_.Read("a"), scratch_.Read("b"));
}

TEST_F(ModelFileTest, IsRefusedWhereverItIsCutOff) {
  ASSERT_TRUE(Save(files_, MakeTrained({"factorization", "squared"}, 2), scratch_ / "m").ok());
  const std::string whole = scratch_.Read("m");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(Str("first ", size, " of ", whole.size(), " bytes"));
    const auto loaded = LoadBytes(whole.substr(0, size), size % 50 == 0);
    ASSERT_FALSE(loaded.ok());
    ASSERT_EQ(loaded.error().code, Code::kCorrupt);
    ASSERT_NE(loaded.error().text.find("damaged"), std::string::npos);
  }
}

TEST_F(ModelFileTest, IsRefusedWhicheverBitIsFlipped) {
  for (const Kind& kind : {Kind{"linear", "logistic", true}, Kind{"factorization", "squared"}}) {
    const Trained trained = MakeTrained(kind, 3);
    ASSERT_TRUE(Save(files_, trained, scratch_ / "m").ok());
    const std::string whole = scratch_.Read("m");
    base::Random random(4, "bits");
    int accepted = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << random.Below(8));
      SCOPED_TRACE(Str(kind.Name(), " byte ", at, " of ", whole.size()));
      const auto loaded = LoadBytes(std::move(flipped), at % 50 == 0);
      if (loaded.ok()) {  // only the name of a checksum was hit: everything that counts is as it was
        ++accepted;
        ExpectSame(loaded.value(), trained);
      } else {
        ASSERT_EQ(loaded.error().code, Code::kCorrupt) << loaded.error().text;
      }
    }
    EXPECT_LT(accepted, 20);
  }
}

TEST_F(ModelFileTest, IsRefusedWithMoreBehindItsEnd) {
  ASSERT_TRUE(Save(files_, MakeTrained({"fm", "squared"}, 3), scratch_ / "m").ok());
  EXPECT_EQ(LoadModel(files_, scratch_.Write("longer", scratch_.Read("m") + "x"), memory_).error().code,
            Code::kCorrupt);
}

TEST_F(ModelFileTest, RefusesFilesOfOtherKinds) {
  for (const std::string& content :
       {std::string(), std::string("label,x\n1,2\n"), std::string(1000, '\xff'), std::string(16, '\0')}) {
    const auto loaded = LoadModel(files_, scratch_.Write("other", content), memory_);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, Code::kCorrupt);
  }
  EXPECT_EQ(LoadModel(files_, scratch_ / "missing", memory_).error().code, Code::kNotFound);
}

TEST_F(ModelFileTest, AFailedSaveLeavesTheOldModelLoadable) {
  const Kind kind{"linear", "squared", true};
  const Trained old = MakeTrained(kind, 5), replacement = MakeTrained(kind, 6);
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(Str("operation ", nth));
    ASSERT_TRUE(Save(files_, old, scratch_ / "m").ok());
    base::FaultyFiles faulty(files_);
    faulty.FailAt(nth);
    const auto saved = Save(faulty, replacement, scratch_ / "m");
    const auto loaded = LoadModel(files_, scratch_ / "m", memory_);
    ASSERT_TRUE(loaded.ok()) << loaded.error().text;
    ASSERT_EQ(scratch_.Names(), std::vector<std::string>{"m"});
    if (saved.ok()) {
      ExpectSame(loaded.value(), replacement);
      break;
    }
    const bool is_old = loaded.value().parameters.Checksum() == old.parameters.Checksum();
    ExpectSame(loaded.value(), is_old ? old : replacement);
  }
}

}  // namespace
}  // namespace freshet::model
