#pragma once

#include <optional>
#include <vector>

#include "data/tensor_file.h"
#include "model/model.h"

namespace freshet::train {

// Which epoch had the best loss on held-out rows, and whether there is any use in waiting for a better one. With
// patience, the parameters of the best are kept.
//
// Threads:   one at a time.
// Ownership: borrows the model and the memory of the copy it keeps, which outlive it.
class EarlyStopping {
 public:
  // What a checkpoint says of it, beside the best parameters.
  struct Record {
    double best_loss = 0;
    int epochs_since_best = 0;
    std::vector<double> losses;  // after each epoch
    bool has_best = false;       // parameters
  };

  // Stops after `patience` epochs without a better loss; 0: never.
  EarlyStopping(int patience, const model::Model& model, optimize::Memory& memory)
      : patience_(patience), model_(model), memory_(memory) {}

  // An epoch ended with this loss and these parameters. Fails when there is no memory to keep them.
  Result<void> Add(double loss, const optimize::Parameters& parameters);
  bool stops() const { return patience_ > 0 && record_.epochs_since_best >= patience_; }
  const optimize::Parameters* best() const { return best_ ? &*best_ : nullptr; }  // null: none are kept

  // To a checkpoint and back. The tensors (best.*) borrow from this.
  const Record& record() const { return record_; }
  void Save(std::vector<data::Tensor>& tensors) const;
  Result<void> Load(Record record, const data::TensorFile& file);

 private:
  const int patience_;
  const model::Model& model_;
  optimize::Memory& memory_;
  Record record_;
  std::optional<optimize::Parameters> best_;
};

}  // namespace freshet::train
