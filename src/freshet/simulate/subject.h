#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/network/graph.h"

namespace freshet::simulate {

// Rows of numbers drawn from a seed, with labels: enough to time a model by.
class DrawnRows {
 public:
  DrawnRows(const model::Model& model, std::size_t count, std::uint64_t seed);
  data::Batch batch() const;  // of all, as long as this lives

 private:
  const std::size_t width_;
  std::vector<float> dense_, labels_;
};

// A network whose training is to be simulated.
struct Subject {
  std::string name;
  model::network::Graph graph;
  std::unique_ptr<model::Model> model;
  double parameter_bytes = 0;
  double row_bytes = 0;  // of an input, a byte for each of its numbers: as images are kept

  // A network of the zoo for inputs as it was made for, or of this shape ("3x224x224").
  static Result<Subject> Of(const std::string& name, const std::string& shape = "");
};

}  // namespace freshet::simulate
