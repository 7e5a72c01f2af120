#pragma once

#include <memory>
#include <string>

#include "model/model.h"
#include "model/network/graph.h"

namespace freshet::simulate {

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
