#include "train/early_stopping.h"

#include <utility>

#include "model/model_file.h"

namespace freshet::train {

Result<void> EarlyStopping::Add(double loss, const optimize::Parameters& parameters) {
  const bool better = record_.losses.empty() || loss < record_.best_loss;
  record_.losses.push_back(loss);
  if (!better) {
    ++record_.epochs_since_best;
    return {};
  }
  record_.best_loss = loss;
  record_.epochs_since_best = 0;
  if (patience_ <= 0) return {};
  if (!best_) best_ = TRY(model_.NewParameters(memory_));
  best_->CopyFrom(parameters);
  record_.has_best = true;
  return {};
}

void EarlyStopping::Save(std::vector<data::Tensor>& tensors) const {
  if (best_) model::AddBlocks(*best_, model::Part::kRows, "best.", tensors);
}

Result<void> EarlyStopping::Load(Record record, const data::TensorFile& file) {
  record_ = std::move(record);
  if (!record_.has_best) return {};
  best_ = TRY(model_.NewParameters(memory_));
  return model::LoadBlocks(file, model::Part::kRows, "best.", *best_);
}

}  // namespace freshet::train
