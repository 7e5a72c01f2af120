#include "deploy/appraisal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace freshet::deploy {
namespace {

// Rows of two classes that were told apart, each with the derivative of a logistic loss.
void JudgeSome(Appraisal& appraisal) {
  const base::Lock lock(appraisal.mutex());
  for (const float label : {0.0f, 1.0f, 0.0f, 1.0f}) {
    const float probability = label == 1 ? 0.75f : 0.25f, score = label == 1 ? 1.1f : -1.1f;
    float delta = probability - label;
    appraisal.Judge({&score, 1}, label, {&delta, 1}, 0.5);
  }
}

Chronicle::Point At(std::int64_t time) {
  Chronicle::Point point;
  point.time = time;
  return point;
}

TEST(Appraisal, CallsClassesByTheirNamesOnceItKnowsThem) {
  Appraisal appraisal;
  appraisal.CountClasses(/*probabilities=*/true);
  JudgeSome(appraisal);
  ASSERT_EQ(appraisal.figures().size(), 2u);
  EXPECT_EQ(appraisal.figures()[0].classes.at(1).name, "1");
  data::Labels labels;
  labels.names = {"ham", "spam"};
  appraisal.NameClasses(labels);
  EXPECT_EQ(appraisal.figures()[0].classes.at(1).name, "spam");
  EXPECT_EQ(appraisal.figures()[0].auc, 1.0);
}

TEST(Appraisal, MarksWhatTheClassesTell) {
  Appraisal appraisal;
  appraisal.CountClasses(/*probabilities=*/true);
  appraisal.Mark(At(1000));
  JudgeSome(appraisal);
  EXPECT_FALSE(appraisal.Due(1001));
  EXPECT_TRUE(appraisal.Due(1010));
  appraisal.Mark(At(1010));
  ASSERT_EQ(appraisal.points().size(), 2u);
  EXPECT_EQ(appraisal.points()[0].auc, -1) << "of no rows nothing is known";
  EXPECT_EQ(appraisal.points()[1].auc, 1);
  EXPECT_EQ(appraisal.points()[1].log_loss, 0.5);
}

TEST(Appraisal, OfNumbersHasNoFiguresAndAChronicle) {
  Appraisal appraisal;
  JudgeSome(appraisal);
  appraisal.Mark(At(1000));
  EXPECT_TRUE(appraisal.figures().empty());
  EXPECT_EQ(appraisal.points().at(0).log_loss, -1);
}

TEST(Appraisal, IsTheSameAfterItWasSaved) {
  Appraisal appraisal, loaded;
  nlohmann::ordered_json vitals, again;
  Appraisal().Save(vitals);
  EXPECT_TRUE(vitals.empty()) << "nothing known, nothing kept";
  for (Appraisal* const each : {&appraisal, &loaded}) each->CountClasses(/*probabilities=*/true);
  JudgeSome(appraisal);
  appraisal.Mark(At(1000));
  appraisal.Save(vitals);
  loaded.Load(vitals);
  loaded.Save(again);
  EXPECT_EQ(again, vitals);
  EXPECT_EQ(loaded.points().size(), 1u);
  loaded.Load({{"classes", "?"}});
  EXPECT_EQ(loaded.figures().size(), 2u) << "what cannot be read changes nothing";
}

}  // namespace
}  // namespace freshet::deploy
