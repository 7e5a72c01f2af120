#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "data/description.h"
#include "model/model.h"
#include "model/rated.h"
#include "model/sums.h"

namespace freshet::model {

// A model with its weights and the description of its input: all that predict, evaluate and serve need.
struct TrainedModel {
  std::unique_ptr<Model> model;
  optimize::Parameters parameters;
  data::Description description;
  data::Metadata metadata;     // what else the file says: version, rows trained on, …
  Rated rated{};               // factorizations: by whom, of what it was trained on; may be empty
  std::optional<Sums> sums{};  // what its update rule has summed up, where that was kept
};

// Writes what a model file holds.
Result<void> WriteModel(base::OutputFile& file, const Model& model, const optimize::Parameters& parameters,
                        const data::Description& description, data::Metadata metadata, const Rated& rated = {},
                        const Sums* sums = nullptr);

// Writes a model file: safetensors, the blocks by name, with the model's and the input's description as metadata.
// Atomic: the old file stays whole until the new one is on the disk.
Result<void> SaveModel(base::Files& files, const std::string& path, const Model& model,
                       const optimize::Parameters& parameters, const data::Description& description,
                       data::Metadata metadata, const Rated& rated = {}, const Sums* sums = nullptr);

// kCorrupt with the reason for a damaged, truncated or foreign file. Of a portion, the parameters and sums are those
// that it holds; the file, which is one of the whole model, is looked at and checked as a whole.
Result<TrainedModel> LoadModel(base::Files& files, const std::string& path, optimize::Memory& memory,
                               const optimize::Portion& portion = {});

// For files that hold more than a model (checkpoints). The tensors borrow from the parameters, which must not change
// until they are written. `Part::kBeside` is what lies beside the rows, for blocks that have it. Blocks that are not
// held are passed over, and a range of a block is a tensor of its own size.
enum class Part { kRows, kBeside };
void AddBlocks(const optimize::Parameters& parameters, Part part, const std::string& prefix,
               std::vector<data::Tensor>& tensors);
Result<void> LoadBlocks(const data::TensorFile& file, Part part, const std::string& prefix,
                        optimize::Parameters& parameters);
Result<TrainedModel> ModelFrom(const data::TensorFile& file, optimize::Memory& memory,
                               const optimize::Portion& portion = {});

}  // namespace freshet::model
