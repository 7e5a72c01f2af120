#pragma once

#include <string>
#include <vector>

#include "model/model_file.h"
#include "model/network/graph.h"
#include "model/onnx/document.h"

namespace freshet::model::onnx {

struct ExportOptions {
  bool ml = false;  // linear models as LinearClassifier or LinearRegressor of ai.onnx.ml
};

struct Exported {
  Document document;               // borrows from the model
  std::vector<std::string> notes;  // what a user of the file should know
};

// A model of any kind as an ONNX graph (opset 13) that takes raw rows: what the input description does to numbers
// (scale, standardisation) is its first part, the loss's link (or a target's units) its last. Rows are dense: a model
// of sparse rows takes a vector with a place for each of its features.
//
//   inputs    input [N, …], FLOAT; factorization: user [N] and item [N], INT64, where -1 stands for one never seen
//   outputs   by loss: probability [N, 1] (logistic), score [N, 1] (hinge), prediction [N, 1] (squared),
//             probabilities [N, K] (softmax), of linear models and fm with the label [N, 1], INT64, as the number of
//             its class; kmeans: cluster [N, 1], INT64, and distances [N, K]
//
// The names of the classes are metadata (`labels`, a JSON list). kInvalid when a kind cannot be exported.
Result<Exported> Export(const TrainedModel& trained, const ExportOptions& options);

// A network alone, up to its first head, for `loss`. Dropout and layers that only other heads need are left out.
Result<Document> ExportNetwork(const network::Graph& graph, const optimize::Parameters& parameters, const Loss& loss);

}  // namespace freshet::model::onnx
