#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/network/graph.h"

namespace freshet::bench {

// A network of the zoo with all that training it takes: weights at their start, an optimizer, and one batch of random
// rows, the same for every run.
//
// Threads: one at a time; the network itself uses as many as it was told.
class Trained {
 public:
  struct Options {
    std::string network;
    std::size_t rows = 32;
    int threads = 2;
    std::string optimizer = "momentum";
    double rate = 0.001;
  };
  // kInvalid when the zoo has no such network, or the optimizer is unknown.
  static Result<std::unique_ptr<Trained>> Make(const Options& options);

  // One step of training on the batch; the mean loss of its rows before the step.
  double Step();
  // The scores of every row of the batch. Valid until the next call.
  std::span<const float> Predict();

  const Options& options() const { return options_; }
  const model::network::Graph& graph() const { return graph_; }
  const data::Batch& batch() const { return batch_; }
  const optimize::Parameters& parameters() const { return *parameters_; }
  // The gradient of the last step of more than one row; before that, one with a place for every block.
  optimize::Gradient& gradient() { return gradient_; }

 private:
  explicit Trained(Options options) : options_(std::move(options)) {}
  Result<void> MakeModel();
  void MakeRows();

  const Options options_;
  model::network::Graph graph_;
  std::unique_ptr<model::Model> model_;
  optimize::HeapMemory memory_;
  std::unique_ptr<optimize::Parameters> parameters_;
  std::unique_ptr<optimize::Optimizer> optimizer_;
  optimize::Gradient gradient_;
  model::Workspace workspace_;
  std::vector<float> values_, labels_, scores_;
  data::Batch batch_;
};

}  // namespace freshet::bench
