#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/tensor_file.h"
#include "model/model.h"

namespace freshet::model {

// What an update rule has summed up while a model was trained: whoever trains it further by the same rule goes on as if
// training had never stopped.
struct Sums {
  std::string rule;        // Optimizer::name
  std::uint64_t step = 0;  // updates so far
  struct Block {
    std::uint64_t width = 0;    // of a row: all slots, one after another
    std::vector<float> values;  // of every row the model's block has
  };
  std::vector<Block> blocks;  // as the model's

  static Sums Of(const optimize::Parameters& parameters, const optimize::Optimizer& optimizer);
  // Gives them to an optimizer that follows these parameters, which are as large as the model's were. False, and
  // nothing has changed, when they are of another rule or size.
  bool Give(optimize::Parameters& parameters, optimize::Optimizer& optimizer) const;

  // In a model file: one tensor for each block, called "sums." and its name. The tensors borrow from this.
  void Save(const optimize::Parameters& parameters, data::Metadata& metadata, std::vector<data::Tensor>& tensors) const;
  static bool In(const data::TensorFile& file);
  // kCorrupt when they do not fit the parameters.
  static Result<Sums> Load(const data::TensorFile& file, const optimize::Parameters& parameters);
};

}  // namespace freshet::model
