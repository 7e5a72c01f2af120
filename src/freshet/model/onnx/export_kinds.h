#pragma once

#include "model/onnx/builder.h"
#include "model/onnx/export.h"

// The parts that exports of all kinds share, and the kinds. A new kind is a file like export_kmeans.cc, a line here and
// a line in export.cc.
namespace freshet::model::onnx {

// The raw input and what the description does to it; returns the value of `dims` numbers a row that the model reads.
Result<std::string> AddInput(Builder& builder, const data::Description& description,
                             const std::vector<std::int64_t>& dims);
// The outputs for scores of `dims` numbers a row, by the loss, in the units of `target`; `label`: also the number of
// the class.
void AddAnswer(Builder& builder, const Loss& loss, const data::Target& target, const std::string& scores,
               const std::vector<std::int64_t>& dims, bool label);

Result<void> AddLinear(Builder& builder, const TrainedModel& trained, const ExportOptions& options);
Result<void> AddFactorization(Builder& builder, const TrainedModel& trained, const ExportOptions& options);
Result<void> AddFactorizationMachine(Builder& builder, const TrainedModel& trained, const ExportOptions& options);
Result<void> AddKMeans(Builder& builder, const TrainedModel& trained, const ExportOptions& options);
Result<void> AddNetwork(Builder& builder, const TrainedModel& trained, const ExportOptions& options);

// The layers of a network from `input` to its first head; returns the head's value.
Result<std::string> AddLayers(Builder& builder, const network::Graph& graph, const optimize::Parameters& parameters,
                              const std::vector<network::Facts>& facts, const std::string& input);

}  // namespace freshet::model::onnx
