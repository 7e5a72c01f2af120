// The squared distance of x and c is x·x - 2 x·c + c·c, which is one matrix product for all centroids.

#include "model/onnx/export_kinds.h"
#include "model/vector.h"

namespace freshet::model::onnx {

Result<void> AddKMeans(Builder& builder, const TrainedModel& trained, const ExportOptions&) {
  constexpr std::size_t kCentroids = 0, kCounts = 1;
  constexpr float kNowhere = 1e30f;  // the distance of a centroid that has not been placed
  const optimize::Parameters& parameters = trained.parameters;
  const auto clusters = static_cast<std::int64_t>(parameters.rows(kCentroids)),
             features = static_cast<std::int64_t>(parameters.width(kCentroids));
  std::vector<float> squares(static_cast<std::size_t>(clusters));
  for (std::size_t c = 0; c < squares.size(); ++c) {
    const float* const centroid = parameters.Row(kCentroids, c);
    const bool placed = *parameters.Row(kCounts, c) != 0;
    squares[c] = placed ? Dot(centroid, centroid, static_cast<std::size_t>(features)) : kNowhere;
  }
  const std::string x = TRY(AddInput(builder, trained.description, {features}));
  const std::string own = builder.Node("ReduceSum", {builder.Node("Mul", {x, x}), builder.Ints("axes", {1})},
                                       {IntAttribute("keepdims", 1)});
  const std::string rest = builder.Node("Gemm",
                                        {x, builder.Block(parameters, kCentroids, {clusters, features}),
                                         builder.Floats("centroids.squares", {clusters}, std::move(squares))},
                                        {IntAttribute("transB", 1), FloatAttribute("alpha", -2)});
  const std::string distances = builder.Node("Add", {rest, own}, {}, "distances");
  builder.Output(builder.Node("ArgMin", {distances}, {IntAttribute("axis", 1), IntAttribute("keepdims", 1)}, "cluster"),
                 Type::kInt64, {1});
  builder.Output(distances, Type::kFloat, {clusters});
  return {};
}

}  // namespace freshet::model::onnx
