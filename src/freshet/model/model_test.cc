#include "model/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "model/rows_testing.h"

namespace freshet::model {
namespace {

using optimize::Optimizer;
using optimize::Parameters;

struct Bench {
  optimize::HeapMemory memory;
  std::unique_ptr<Model> model;
  std::optional<Parameters> parameters;
  data::Rows rows;
  Workspace workspace;
  std::vector<float> scores;

  Bench(const Kind& kind, base::Random& random, std::size_t count, bool weighted) {
    model = std::move(Model::Make(kind.Config())).value();
    parameters = std::move(model->NewParameters(memory)).value();
    rows.ClearRows();
    for (std::size_t i = 0; i < count; ++i) {
      kind.AddRow(random, rows);
      if (weighted) rows.weights.Append(static_cast<float>(random.Uniform(0.5, 2)));
    }
    EXPECT_TRUE(model->Prepare(*parameters, rows.batch()).ok());
    Randomise(random, *parameters);
    scores.resize(count * model->scores());
  }
  double Loss() {
    model->Predict(*parameters, rows.batch(), workspace, scores);
    return model->LossOf(*parameters, rows.batch(), workspace, scores);
  }
  bool NearAKink() {
    if (model->loss().name() != "hinge") return false;
    (void)Loss();
    for (std::size_t r = 0; r < rows.size(); ++r)
      if (std::abs(1 - (rows.labels[r] > 0 ? scores[r] : -scores[r])) < 0.2f) return true;
    return false;
  }
};

class EveryKind : public testing::TestWithParam<Kind> {};

TEST_P(EveryKind, GradientIsThatOfTheLoss) {
  int checked = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "gradient");
    Bench bench(GetParam(), random, 1 + random.Below(5), seed % 2 == 0);
    if (bench.NearAKink()) continue;
    optimize::HeapMemory memory;
    optimize::Gradient gradient = bench.model->NewGradient(memory).value();
    std::vector<float> scores(bench.scores.size());
    const double loss =
        bench.model->LossAndGradient(*bench.parameters, bench.rows.batch(), bench.workspace, gradient, scores);
    ASSERT_NEAR(loss, bench.Loss(), 1e-4 * std::max(1.0, std::abs(loss)));
    ASSERT_EQ(scores, bench.scores);
    for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
      const std::string name = bench.parameters->block(b).name;
      if (name == "global") continue;  // a running mean, not learned by gradients
      std::vector<float> whole(bench.parameters->rows(b) * bench.parameters->width(b));
      for (std::size_t i = 0; i < gradient.blocks[b].touched().size(); ++i) {
        const auto values = gradient.blocks[b].Values(i);
        std::copy(values.begin(), values.end(),
                  whole.begin() + static_cast<std::ptrdiff_t>(gradient.blocks[b].touched()[i] * values.size()));
      }
      for (std::size_t i = 0; i < whole.size(); ++i) {
        float& parameter = bench.parameters->Values(b)[i];
        const float before = parameter;
        constexpr float kStep = 0.01f;
        parameter = before + kStep;
        const double up = bench.Loss(), up_at = parameter;
        parameter = before - kStep;
        const double slope = (up - bench.Loss()) / (up_at - parameter);
        parameter = before;
        ASSERT_NEAR(whole[i], slope, 0.01 * std::max(0.2, std::abs(slope))) << name << "[" << i << "]";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 100);
}

TEST_P(EveryKind, UpdateOfOneRowByPlainSgdIsItsGradientApplied) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "update"), same(seed, "update");
    Bench updated(GetParam(), random, 1, seed % 2 == 0), applied(GetParam(), same, 1, seed % 2 == 0);
    optimize::OptimizerOptions options;
    options.kind = "sgd";
    options.schedule.rate = 0.1;
    options.l2 = 0.01;
    const auto by_update = std::move(Optimizer::Make(options, updated.memory)).value();
    const auto by_apply = std::move(Optimizer::Make(options, applied.memory)).value();
    ASSERT_TRUE(by_update->Follow(*updated.parameters).ok());
    ASSERT_TRUE(by_apply->Follow(*applied.parameters).ok());
    const double loss = updated.model->Update(*updated.parameters, updated.rows.batch(), *by_update, updated.workspace,
                                              updated.scores, Optimizer::Sharing::kAlone);
    optimize::HeapMemory memory;
    optimize::Gradient gradient = applied.model->NewGradient(memory).value();
    ASSERT_EQ(applied.model->LossAndGradient(*applied.parameters, applied.rows.batch(), applied.workspace, gradient,
                                             applied.scores),
              loss);
    ASSERT_EQ(updated.scores, applied.scores);
    if (loss == 0) continue;  // a row with nothing to learn from is left alone, penalty and all
    by_apply->BeginStep();
    by_apply->Apply(*applied.parameters, gradient);
    for (std::size_t b = 0; b < updated.parameters->blocks(); ++b) {
      if (updated.parameters->block(b).name == "global") continue;
      const auto got = updated.parameters->Gather(b), want = applied.parameters->Gather(b);
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-6 * std::max(1.0f, std::abs(want[i]))) << "block " << b << "[" << i << "]";
    }
  }
}

TEST_P(EveryKind, UpdateOfManyRowsIsOneUpdateAfterAnother) {
  for (const char* const rule : {"adaptive", "adam", "sgd"}) {
    SCOPED_TRACE(rule);
    base::Random random(5, "many"), same(5, "many");
    Bench at_once(GetParam(), random, 40, true), one_by_one(GetParam(), same, 40, true);
    optimize::OptimizerOptions options;
    options.kind = rule;
    options.schedule.rate = 0.01;
    const auto first = std::move(Optimizer::Make(options, at_once.memory)).value(),
               second = std::move(Optimizer::Make(options, one_by_one.memory)).value();
    ASSERT_TRUE(first->Follow(*at_once.parameters).ok());
    ASSERT_TRUE(second->Follow(*one_by_one.parameters).ok());
    const double loss = at_once.model->Update(*at_once.parameters, at_once.rows.batch(), *first, at_once.workspace,
                                              at_once.scores, Optimizer::Sharing::kAlone);
    double sum = 0;
    const std::size_t k = one_by_one.model->scores();
    for (std::size_t r = 0; r < 40; ++r)
      sum += one_by_one.model->Update(*one_by_one.parameters, one_by_one.rows.batch().Slice(r, r + 1), *second,
                                      one_by_one.workspace, std::span(one_by_one.scores).subspan(r * k, k),
                                      Optimizer::Sharing::kAlone);
    EXPECT_EQ(at_once.parameters->Checksum(), one_by_one.parameters->Checksum());
    EXPECT_EQ(at_once.scores, one_by_one.scores);
    EXPECT_NEAR(loss, sum, 1e-9 * std::abs(sum));
    EXPECT_EQ(first->step(), 40u);
  }
}

TEST_P(EveryKind, LearnsWhatItIsShownAgainAndAgain) {
  base::Random random(8, "learn");
  Bench bench(GetParam(), random, 6, false);
  optimize::OptimizerOptions options;
  options.kind = "adagrad";
  options.schedule.rate = 0.3;
  const auto optimizer = std::move(Optimizer::Make(options, bench.memory)).value();
  ASSERT_TRUE(optimizer->Follow(*bench.parameters).ok());
  const double before = bench.Loss();
  for (int i = 0; i < 300; ++i)
    bench.model->Update(*bench.parameters, bench.rows.batch(), *optimizer, bench.workspace, bench.scores,
                        Optimizer::Sharing::kAlone);
  EXPECT_LT(bench.Loss(), 0.2 * before + 0.02);
}

TEST_P(EveryKind, IndicesItHasNotSeenAddNothing) {
  const Kind& kind = GetParam();
  if (kind.dense) return;
  base::Random random(2, "unseen");
  Bench bench(kind, random, 20, false);
  data::Rows known, with_unseen;
  const std::size_t k = bench.model->scores();
  std::vector<float> expected(k), got(k);
  if (kind.kind == "factorization") {
    const float mean = *bench.parameters->Row(0, 0);
    AddRating(with_unseen, data::kUnseen, 2, 0);
    AddRating(with_unseen, 3, 1000, 0);
    AddRating(with_unseen, data::kUnseen, data::kUnseen, 0);
    got.resize(3);
    bench.model->Predict(*bench.parameters, with_unseen.batch(), bench.workspace, got);
    EXPECT_EQ(got[0], mean + *bench.parameters->Row(2, 2));
    EXPECT_EQ(got[1], mean + *bench.parameters->Row(1, 3));
    EXPECT_EQ(got[2], mean);
    return;
  }
  AddSparse(known, 0, {{1, 0.5f}, {4, 2.0f}});
  AddSparse(with_unseen, 0, {{1, 0.5f}, {data::kUnseen, 3.0f}, {4, 2.0f}, {5000, 1.0f}});
  bench.model->Predict(*bench.parameters, known.batch(), bench.workspace, expected);
  bench.model->Predict(*bench.parameters, with_unseen.batch(), bench.workspace, got);
  for (std::size_t i = 0; i < k; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, testing::ValuesIn(TrainableKinds()),
                         [](const auto& param) { return param.param.Name(); });

TEST(Linear, SharedUpdatesOnOneThreadAreTheSame) {
  for (const char* const loss : {"logistic", "hinge", "squared", "softmax"}) {
    SCOPED_TRACE(loss);
    const Kind kind{"linear", loss};
    base::Random random(6, "shared"), same(6, "shared");
    Bench alone(kind, random, 50, true), shared(kind, same, 50, true);
    for (Bench* bench : {&alone, &shared}) {
      const auto optimizer = std::move(Optimizer::Make({}, bench->memory)).value();
      ASSERT_TRUE(optimizer->Follow(*bench->parameters).ok());
      bench->model->Update(*bench->parameters, bench->rows.batch(), *optimizer, bench->workspace, bench->scores,
                           bench == &alone ? Optimizer::Sharing::kAlone : Optimizer::Sharing::kShared);
    }
    for (std::size_t b = 0; b < 2; ++b) {
      const auto want = alone.parameters->Gather(b), got = shared.parameters->Gather(b);
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-4 * std::max(1.0f, std::abs(want[i])));
    }
  }
}

TEST(Linear, StateBesideTheWeightsGivesTheSameAsStateApart) {
  for (const char* const rule : {"adaptive", "adagrad", "adam", "ftrl", "momentum", "sgd"}) {
    SCOPED_TRACE(rule);
    std::vector<float> ends[2];
    for (const bool beside : {false, true}) {
      base::Random random(6, "beside");
      Bench bench({"linear", "logistic"}, random, 100, false);
      optimize::OptimizerOptions options;
      options.kind = rule;
      options.schedule.rate = 0.05;
      const auto optimizer = std::move(Optimizer::Make(options, bench.memory)).value();
      auto parameters = std::move(bench.model->NewParameters(bench.memory, beside ? optimizer->slots() : 0)).value();
      ASSERT_TRUE(bench.model->Prepare(parameters, bench.rows.batch()).ok());
      ASSERT_TRUE(optimizer->Follow(parameters).ok());
      bench.model->Update(parameters, bench.rows.batch(), *optimizer, bench.workspace, bench.scores,
                          Optimizer::Sharing::kAlone);
      ends[beside] = parameters.Gather(0);
    }
    ASSERT_EQ(ends[0].size(), ends[1].size());
    for (std::size_t i = 0; i < ends[0].size(); ++i)
      ASSERT_NEAR(ends[0][i], ends[1][i], 1e-5 * std::max(1.0f, std::abs(ends[0][i])));
  }
}

TEST(Model, StartsARowOfFactorsTheSameWheneverItIsMade) {
  for (const char* const kind : {"fm", "factorization"}) {
    SCOPED_TRACE(kind);
    ModelConfig config;
    config.kind = kind;
    config.loss = "squared";
    config.factors = 7;
    const auto model = std::move(Model::Make(config)).value();
    optimize::HeapMemory memory;
    auto at_once = std::move(model->NewParameters(memory)).value(),
         step_by_step = std::move(model->NewParameters(memory)).value();
    for (const std::uint32_t last : {3u, 4u, 40u}) {
      data::Rows rows;
      AddRating(rows, last, last, 0);
      ASSERT_TRUE(model->Prepare(step_by_step, rows.batch()).ok());
      if (last == 40) {
        ASSERT_TRUE(model->Prepare(at_once, rows.batch()).ok());
      }
    }
    EXPECT_EQ(at_once.Checksum(), step_by_step.Checksum());
    const std::size_t factors = at_once.blocks() - 1;
    const auto values = at_once.Gather(factors);
    const double reach = config.spread * std::sqrt(3.0 / 7);
    double squares = 0;
    for (const float value : values) {
      EXPECT_LE(std::abs(value), reach);
      squares += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), config.spread / std::sqrt(7.0),
                0.15 * config.spread / std::sqrt(7.0));
  }
}

class EveryKindThereIs : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryKindThereIs, testing::ValuesIn(AllKinds()),
                         [](const auto& param) { return param.param.Name(); });

// With every optimizer: publishing copies the touched rows and trusts that no others have changed.
TEST_P(EveryKindThereIs, TouchesEveryRowThatAnUpdateChanges) {
  for (const std::string& rule : Optimizer::Kinds())
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(Str(rule, ", seed ", seed));
      base::Random random(seed, "touch");
      Bench bench(GetParam(), random, 1 + random.Below(4), seed % 2 == 0);
      optimize::OptimizerOptions options;
      options.kind = rule;
      options.l1 = options.l2 = 0.01;
      const auto optimizer = std::move(Optimizer::Make(options, bench.memory)).value();
      ASSERT_TRUE(optimizer->Follow(*bench.parameters).ok());
      for (int batch = 0; batch < 3; ++batch) {
        bench.rows.ClearRows();
        const std::size_t count = 1 + random.Below(3);
        for (std::size_t r = 0; r < count; ++r) GetParam().AddRow(random, bench.rows);
        ASSERT_TRUE(bench.model->Prepare(*bench.parameters, bench.rows.batch()).ok());
        ASSERT_TRUE(optimizer->Follow(*bench.parameters).ok());
        std::vector<std::vector<float>> before;
        for (std::size_t b = 0; b < bench.parameters->blocks(); ++b) before.push_back(bench.parameters->Gather(b));
        bench.scores.resize(count * bench.model->scores());
        (void)bench.model->Update(*bench.parameters, bench.rows.batch(), *optimizer, bench.workspace, bench.scores,
                                  Optimizer::Sharing::kAlone);
        optimize::RowSets touched(bench.parameters->blocks());
        bench.model->Touch(*bench.parameters, bench.rows.batch(), touched);
        for (std::size_t b = 0; b < bench.parameters->blocks(); ++b) {
          std::vector<float> after = bench.parameters->Gather(b);
          const std::uint64_t width = bench.parameters->width(b);
          for (const std::uint32_t row : touched[b].rows()) {
            ASSERT_LT(row, bench.parameters->rows(b));
            std::copy_n(before[b].begin() + static_cast<std::ptrdiff_t>(row * width), width,
                        after.begin() + static_cast<std::ptrdiff_t>(row * width));
          }
          ASSERT_EQ(after, before[b]) << bench.parameters->block(b).name;
        }
      }
    }
}

TEST(TouchIndices, LeavesOutWhatStandsForNothing) {
  data::Rows rows;
  rows.ClearRows();
  AddSparse(rows, 0, {{3, 1.0f}, {data::kUnseen, 1.0f}});
  AddSparse(rows, 0, {{3, 1.0f}, {1, 1.0f}});
  optimize::RowSet touched;
  TouchIndices(rows.batch(), touched);
  EXPECT_EQ(std::vector(touched.rows().begin(), touched.rows().end()), (std::vector<std::uint32_t>{3, 1}));
}

TEST(Model, MakeRefusesWhatMakesNoSense) {
  ModelConfig config;
  config.kind = "oracle";
  EXPECT_NE(Model::Make(config).error().text.find("linear, factorization, fm, kmeans"), std::string::npos);
  config = {};
  config.loss = "luck";
  EXPECT_EQ(Model::Make(config).error().code, Code::kInvalid);
  config = {};
  config.classes = 3;  // of logistic loss
  EXPECT_EQ(Model::Make(config).error().code, Code::kInvalid);
  config = {};
  config.factors = 0;
  EXPECT_FALSE(Model::Make(config).ok());
  config = {};
  config.dense = true;  // of no features
  EXPECT_FALSE(Model::Make(config).ok());
}

TEST(ModelConfig, ComesBackFromJsonAsItWas) {
  ModelConfig config;
  config.kind = "fm";
  config.loss = "hinge";
  config.factors = 13;
  config.spread = 0.123456789;
  config.seed = UINT64_MAX;
  const auto back = ModelConfig::FromJson(config.ToJson());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().ToJson(), config.ToJson());
  for (const char* const damaged : {"", "{", "[]", "{}", "{\"kind\":3}", "{\"kind\":\"linear\"}"})
    EXPECT_EQ(ModelConfig::FromJson(damaged).error().code, Code::kCorrupt) << damaged;
}

TEST(IndexEnd, IsOneMoreThanTheLargestIndexThatStandsForSomething) {
  data::Rows rows;
  rows.ClearRows();
  EXPECT_EQ(IndexEnd(rows.batch()), 0u);
  AddSparse(rows, 0, {{3, 1.0f}, {data::kUnseen, 1.0f}});
  EXPECT_EQ(IndexEnd(rows.batch()), 4u);
}

}  // namespace
}  // namespace freshet::model
