#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/model.h"
#include "model/network/graph.h"
#include "simulate/costs.h"

namespace freshet::simulate {

// Rows drawn from a seed, with labels: enough to time a model by. Sparse ones have the shape of the URL Reputation set, as
// data::Generate has it: some of the first 64 features, and many more, most of which are rare.
class DrawnRows {
 public:
  DrawnRows(const model::Model& model, std::size_t count, std::uint64_t seed);
  data::Batch batch() const;  // of all, as long as this lives

 private:
  void DrawDense(base::Random& random, std::size_t count);
  void DrawSparse(base::Random& random, std::size_t count, std::uint64_t features);

  const std::size_t width_;  // 0: sparse
  std::vector<float> dense_, labels_, values_;
  std::vector<std::uint32_t> offsets_, indices_;
};

// A model whose training is to be simulated.
struct Subject {
  std::string name;
  model::network::Graph graph;  // of a network
  std::unique_ptr<model::Model> model;
  double parameter_bytes = 0;
  double row_bytes =
      0;  // of an input: a byte for each number, as images are kept; eight for each entry of a sparse row

  // A network of the zoo for inputs as it was made for, or of this shape ("3x224x224"); or "url-like", the linear model of
  // such rows, of so many features.
  static Result<Subject> Of(const std::string& name, const std::string& shape = "");
  // Any network, and what it is called. kInvalid when it makes no sense.
  static Result<Subject> OfNetwork(std::string name, model::network::Graph graph);
  static std::vector<std::string> Names();
  bool sparse() const { return !model->config().dense; }
  // What it costs by what a platform can do.
  Result<std::unique_ptr<Costs>> CostsOn(const fabric::sim::Platform& platform) const;
};

}  // namespace freshet::simulate
