// What an export says; that its numbers are ours is for tests/onnx/check.py, which asks programs that are not ours.

#include "model/onnx/export.h"

#include <gtest/gtest.h>

#include "model/onnx/read.h"
#include "model/onnx/write.h"
#include "model/rows_testing.h"

namespace freshet::model::onnx {
namespace {

TrainedModel MakeTrained(const Kind& kind, optimize::Memory& memory) {
  auto model = std::move(Model::Make(kind.Config())).value();
  auto parameters = std::move(model->NewParameters(memory)).value();
  base::Random random(1, "export");
  data::Rows rows;
  rows.ClearRows();
  for (int i = 0; i < 30; ++i) kind.AddRow(random, rows);
  EXPECT_TRUE(model->Prepare(parameters, rows.batch()).ok());
  Randomise(random, parameters);
  data::Description description;
  description.format = "libsvm";
  description.dense = kind.dense;
  description.labels.kind = model->loss().task();
  return {std::move(model), std::move(parameters), std::move(description), {}};
}

std::vector<std::string> Ops(const Document& document) {
  std::vector<std::string> ops;
  for (const Node& node : document.nodes) ops.push_back(node.op);
  return ops;
}

Exported Must(const TrainedModel& trained, const ExportOptions& options = {}) {
  auto exported = Export(trained, options);
  EXPECT_TRUE(exported.ok()) << exported.error().text;
  return std::move(exported).value();
}

TEST(Export, OfEveryKindIsReadBackAsItWasWritten) {
  optimize::HeapMemory memory;
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(kind.Name());
    const TrainedModel trained = MakeTrained(kind, memory);
    const Exported exported = Must(trained);
    base::StringFile file;
    ASSERT_TRUE(Write(exported.document, file).ok());
    const auto read = Read(file.text);
    ASSERT_TRUE(read.ok()) << read.error().text;
    EXPECT_EQ(Ops(read.value()), Ops(exported.document));
    EXPECT_EQ(read.value().opset, 13);
    ASSERT_EQ(read.value().initializers.size(), exported.document.initializers.size());
    for (std::size_t i = 0; i < read.value().initializers.size(); ++i)
      EXPECT_EQ(read.value().initializers[i].bytes, exported.document.initializers[i].bytes);
    for (const auto* const values : {&read.value().inputs, &read.value().outputs})
      for (const Value& value : *values) EXPECT_EQ(value.dims[0], -1) << value.name;
  }
}

TEST(Export, SaysWhatCannotTravel) {
  optimize::HeapMemory memory;
  const Exported ratings = Must(MakeTrained({"factorization", "squared"}, memory));
  ASSERT_EQ(ratings.notes.size(), 1u);
  EXPECT_NE(ratings.notes[0].find("their names cannot travel"), std::string::npos);
  TrainedModel hashed = MakeTrained({"linear", "logistic"}, memory);
  hashed.description.bits = 4;
  const Exported sparse = Must(hashed);
  ASSERT_EQ(sparse.notes.size(), 2u);
  EXPECT_NE(sparse.notes[1].find("hashed to 4 bits"), std::string::npos);
  EXPECT_TRUE(Must(MakeTrained({"linear", "logistic", true}, memory)).notes.empty());
  TrainedModel dated = MakeTrained({"linear", "logistic", true}, memory);
  dated.description.columns = {{"day", data::Column::Kind::kDate}};
  ASSERT_EQ(Must(dated).notes.size(), 1u);
  EXPECT_NE(Must(dated).notes[0].find("column 'day' go in as numbers in its place: year, month, and weekday"),
            std::string::npos);
}

TEST(Export, StandardisesFirstAndMindsMissingValuesWhereThereWereSome) {
  optimize::HeapMemory memory;
  TrainedModel trained = MakeTrained({"linear", "squared", true}, memory);
  trained.description.standardise = true;
  trained.description.moments = data::Moments(Kind::kFeatures);
  std::vector<float> row(Kind::kFeatures, 1);
  trained.description.moments.Observe(row.data());
  EXPECT_EQ(Ops(Must(trained).document), (std::vector<std::string>{"Sub", "Mul", "Clip", "Gemm", "Identity"}));
  row[3] = std::numeric_limits<float>::quiet_NaN();
  trained.description.moments.Observe(row.data());
  EXPECT_EQ(Ops(Must(trained).document),
            (std::vector<std::string>{"Sub", "Mul", "Clip", "IsNaN", "Where", "Gemm", "Identity"}));
}

TEST(Export, EndsARegressionInTheUnitsOfItsTarget) {
  optimize::HeapMemory memory;
  for (const Kind& kind : {Kind{"linear", "squared", true}, Kind{"fm", "squared"}}) {
    TrainedModel trained = MakeTrained(kind, memory);
    trained.description.target = data::Target(180'000, 80'000);
    const Exported exported = Must(trained);
    const std::vector<std::string> ops = Ops(exported.document);
    ASSERT_GE(ops.size(), 2u);
    EXPECT_EQ(ops[ops.size() - 2], "Mul");
    EXPECT_EQ(ops.back(), "Add");
    EXPECT_EQ(exported.document.outputs[0].name, "prediction");
  }
  TrainedModel trained = MakeTrained({"linear", "squared", true}, memory);
  trained.description.target = data::Target(180'000, 80'000);
  const Exported ml = Must(trained, {.ml = true});
  EXPECT_FLOAT_EQ(ml.document.nodes[0].Find("coefficients")->floats[0], 80'000 * trained.parameters.Gather(0)[0]);
  EXPECT_FLOAT_EQ(ml.document.nodes[0].Find("intercepts")->floats[0],
                  180'000 + 80'000 * trained.parameters.Gather(1)[0]);
}

TEST(Export, ByTheOperatorsOfMlIsForLinearModelsOnly) {
  optimize::HeapMemory memory;
  EXPECT_EQ(Ops(Must(MakeTrained({"linear", "softmax", true}, memory), {.ml = true}).document),
            std::vector<std::string>{"LinearClassifier"});
  EXPECT_EQ(Ops(Must(MakeTrained({"linear", "squared", true}, memory), {.ml = true}).document),
            std::vector<std::string>{"LinearRegressor"});
  const auto refused = Export(MakeTrained({"kmeans", "squared", true}, memory), {.ml = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
}

TEST(Export, RefusesAModelWithoutFeatures) {
  optimize::HeapMemory memory;
  TrainedModel trained = MakeTrained({"linear", "logistic"}, memory);
  trained.parameters = std::move(trained.model->NewParameters(memory)).value();
  EXPECT_NE(Export(trained, {}).error().text.find("train it first"), std::string::npos);
}

}  // namespace
}  // namespace freshet::model::onnx
