#include "deploy/class_quality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace freshet::deploy {
namespace {

struct Row {
  float probability;
  bool positive;
};

// Rows whose labels come true as often as the probability says, at a spread of scores.
std::vector<Row> Calibrated(std::uint64_t seed, std::size_t count, double spread) {
  base::Random random(seed, "rows");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const auto p = static_cast<float>(1 / (1 + std::exp(-spread * random.Normal() + 1)));
    rows.push_back({p, random.Uniform() < p});
  }
  return rows;
}

double LossOf(const Row& row) { return -std::log(row.positive ? row.probability : 1 - row.probability); }

ClassQuality Counted(const std::vector<Row>& rows) {
  ClassQuality quality(true);
  for (const Row& row : rows) quality.Add(std::span(&row.probability, 1), row.positive ? 1 : 0, LossOf(row));
  return quality;
}

// Every pair, weighted as the window weights.
double AreaByPairs(const std::vector<Row>& rows, double window) {
  double area = 0, pairs = 0;
  const auto weight = [&](std::size_t i) { return std::pow(1 - 1 / window, static_cast<double>(rows.size() - i)); };
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (!rows[i].positive || rows[j].positive) continue;
      const double both = weight(i) * weight(j);
      pairs += both;
      area += rows[i].probability > rows[j].probability    ? both
              : rows[i].probability == rows[j].probability ? both / 2
                                                           : 0;
    }
  return area / pairs;
}

TEST(ClassQuality, TellsTheAreaUnderTheCurveAsAllPairsDo) {
  for (const double spread : {0.2, 1.0, 4.0}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto rows = Calibrated(seed, 1500, spread);
      const auto figures = Counted(rows).Figures();
      ASSERT_EQ(figures.size(), 2u);
      for (const ClassFigures& one : figures)
        EXPECT_NEAR(one.auc.value(), AreaByPairs(rows, one.window), 0.003) << "spread " << spread << " seed " << seed;
    }
  }
}

TEST(ClassQuality, ForgetsWhatIsLongAgo) {
  auto rows = Calibrated(1, 20'000, 2);
  for (std::size_t i = 10'000; i < rows.size(); ++i) rows[i].positive = !rows[i].positive;  // another concept
  const auto figures = Counted(rows).Figures();
  EXPECT_LT(*figures[0].auc, 0.3) << "the last thousand know nothing of the time before";
  EXPECT_NEAR(*figures[1].auc, 0.5, 0.05) << "the last hundred thousand know both";
  EXPECT_GT(*figures[0].log_loss, *figures[1].log_loss);
  EXPECT_NEAR(figures[0].rows, 1000, 1);
}

TEST(ClassQuality, TellsTrueProbabilitiesFromBoldOnes) {
  auto rows = Calibrated(2, 50'000, 1.5);
  const ClassFigures honest = Counted(rows).Figures()[1];
  EXPECT_LT(*honest.calibration_error, 0.02);
  ASSERT_EQ(honest.calibration.size(), 10u);
  for (const auto& bin : honest.calibration) EXPECT_NEAR(bin.predicted, bin.observed, 0.06);
  for (Row& row : rows) row.probability = row.probability > 0.5f ? 0.98f : 0.02f;
  EXPECT_GT(*Counted(rows).Figures()[1].calibration_error, 0.1);
}

TEST(ClassQuality, JudgesEachClassAlone) {
  ClassQuality quality(true);
  // Of class 0 every row is found, of class 1 half (the others are called 2), of class 2 all; class 3 never comes.
  base::Random random(3, "classes");
  for (int i = 0; i < 3000; ++i) {
    const auto label = static_cast<std::size_t>(random.Below(3));
    const std::size_t called = label == 1 && random.Uniform() < 0.5 ? 2 : label;
    std::vector<float> p(4, 0.1f);
    p[called] = 0.7f;
    quality.Add(p, label, -std::log(p[label]));
  }
  const ClassFigures figures = quality.Figures()[1];
  ASSERT_EQ(figures.classes.size(), 4u);
  EXPECT_EQ(figures.classes[0].recall, 1);
  EXPECT_EQ(figures.classes[0].precision, 1);
  EXPECT_EQ(figures.classes[0].auc, 1);
  EXPECT_NEAR(*figures.classes[1].recall, 0.5, 0.06);
  EXPECT_NEAR(*figures.classes[2].precision, 2.0 / 3, 0.05);
  EXPECT_EQ(figures.classes[3].share, 0);
  EXPECT_FALSE(figures.classes[3].recall || figures.classes[3].precision || figures.classes[3].auc);
  EXPECT_NEAR(figures.classes[0].share + figures.classes[1].share + figures.classes[2].share, 1, 1e-6);
}

TEST(ClassQuality, CountsClassesThatComeLaterAndManyWithoutRanks) {
  ClassQuality grows(true);
  grows.Add(std::vector<float>{0.6f, 0.3f, 0.1f}, 0, 0.5);
  grows.Add(std::vector<float>{0.1f, 0.2f, 0.1f, 0.6f}, 3, 0.5);
  EXPECT_EQ(grows.Figures()[0].classes.size(), 4u);
  EXPECT_EQ(grows.Figures()[0].classes[3].recall, 1);
  ClassQuality many(true);
  std::vector<float> p(1000, 0.0005f);
  p[7] = 0.5f;
  for (int i = 0; i < 10; ++i) many.Add(p, i % 2 == 0 ? 7 : 8, 1);
  EXPECT_FALSE(many.Figures()[0].auc);
  EXPECT_NEAR(*many.Figures()[0].classes[7].precision, 0.5, 0.01);
}

TEST(ClassQuality, OfHingeRanksAndKnowsNoProbabilities) {
  ClassQuality quality(false);
  for (const Row& row : Calibrated(4, 2000, 2)) quality.Add(std::span(&row.probability, 1), row.positive ? 1 : 0, 1);
  const ClassFigures figures = quality.Figures()[0];
  EXPECT_GT(*figures.auc, 0.7);
  EXPECT_FALSE(figures.log_loss || figures.calibration_error);
}

TEST(ClassQuality, GoesOnFromWhatItSaved) {
  const auto rows = Calibrated(5, 3000, 2);
  ClassQuality first = Counted({rows.begin(), rows.begin() + 2000});
  ClassQuality second(true);
  ASSERT_TRUE(second.Load(first.Save()));
  for (std::size_t i = 2000; i < rows.size(); ++i)
    for (ClassQuality* const quality : {&first, &second})
      quality->Add(std::span(&rows[i].probability, 1), rows[i].positive ? 1 : 0, LossOf(rows[i]));
  for (int w = 0; w < 2; ++w) {
    const ClassFigures a = first.Figures()[w], b = second.Figures()[w];
    EXPECT_EQ(*a.auc, *b.auc);
    EXPECT_EQ(*a.log_loss, *b.log_loss);
    EXPECT_EQ(a.rows, b.rows);
  }
  EXPECT_EQ(first.Save(), second.Save());
  EXPECT_LT(first.Save().size(), 50'000u);
  for (const char* const damaged :
       {"", "[]", "[1,2]", "{}", R"([{"classes":2},{"classes":2}])",
        R"([{"weight":1,"rows":1,"loss":1,"classes":2,"ranked":0,"sums":[-99999999999]},{}])",
        R"([{"classes":2,"ranked":1,"sums":[-5]},{"classes":2,"ranked":1,"sums":[-5]}])",
        R"([{"classes":2,"ranked":1,"sums":["x"]},{"classes":2,"ranked":1,"sums":[]}])"})
    EXPECT_FALSE(second.Load(damaged)) << damaged;
}

TEST(ClassQuality, LeavesOutWhatIsNoNumber) {
  ClassQuality quality(true);
  const float bad = std::numeric_limits<float>::quiet_NaN(), good = 0.3f;
  quality.Add(std::span(&bad, 1), 0, 1);
  quality.Add(std::span(&good, 1), 0, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(quality.Figures().empty());
}

}  // namespace
}  // namespace freshet::deploy
