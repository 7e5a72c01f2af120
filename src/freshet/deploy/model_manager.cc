#include "deploy/model_manager.h"

#include <algorithm>

#include "data/standardise.h"
#include "deploy/quality.h"
#include "train/evaluation.h"

namespace freshet::deploy {

ModelManager::ModelManager(const model::Model& model, data::Description description,
                           const optimize::OptimizerOptions& optimizer, optimize::Memory& memory, int readers,
                           Publisher::Companion companion)
    : model_(&model),
      description_(std::move(description)),
      options_(optimizer),
      memory_(memory),
      serves_(readers > 0),
      publisher_(model, memory, readers, std::move(companion)),
      touched_(model.Blocks().size()) {
  if (!description_.view.any()) return;
  auto made = data::Augment::Make(description_, {});
  CHECK(made.ok());  // a description that was loaded fits itself
  view_ = std::move(made.value());
}

Result<std::unique_ptr<State>> ModelManager::NewState(const model::Model& model) const {
  auto state =
      TRY(State::Make(model, options_, memory_, description_.standardise ? description_.moments : data::Moments()));
  if (view_) state->view = &*view_;
  state->target = description_.target;
  return state;
}

Result<bool> ModelManager::Begin(const optimize::Parameters* weights, const model::Sums* sums) {
  state_ = TRY(NewState());
  bool given = true;
  if (weights != nullptr) {
    state_->parameters.CopyFrom(*weights);
    TRY(state_->optimizer->Follow(state_->parameters));
    if (sums != nullptr) given = sums->Give(state_->parameters, *state_->optimizer);
  }
  TRY(Publish(0));
  return given;
}

Result<double> ModelManager::Update(data::Rows& rows, std::vector<float>& scores) {
  const double loss = TRY(state_->Learn(*model_, rows, scores));
  if (!serves_ && !copying_) return loss;
  for (auto& set : touched_) set.Clear();
  model_->Touch(state_->parameters, rows.batch(), touched_);
  if (serves_) publisher_.Touch(touched_);
  dirty_ = serves_;
  if (copying_) {
    copying_->complete = false;
    for (std::size_t b = 0; b < touched_.size(); ++b)
      for (const std::uint32_t row : touched_[b].rows()) copying_->touched[b].Add(row);
  }
  return loss;
}

Result<double> ModelManager::Foresee(data::Rows& rows, std::vector<float>& scores) {
  if (state_->moments.columns() > 0) data::ApplyMoments(state_->moments, rows);
  if (view_) view_->ForPrediction(rows);
  const data::Batch batch = rows.batch();
  scores.resize(batch.rows * model_->scores());
  state_->Predict(*model_, batch, workspace_, scores);
  return model_->LossOf(state_->parameters, batch, workspace_, scores);
}

Result<std::unique_ptr<State>> ModelManager::StateToCopyInto() {
  std::unique_ptr<State> copy = std::move(spare_);
  if (copy == nullptr || !copy->CanTake(*state_)) copy = TRY(NewState());
  CHECK(copy->CanTake(*state_));
  return copy;
}

Result<std::unique_ptr<State>> ModelManager::Copy() {
  if (copying_ && copying_->complete) {
    auto copy = std::move(copying_->state);
    copying_.reset();
    return copy;
  }
  copying_.reset();
  auto copy = TRY(StateToCopyInto());
  TRY(copy->CopyFrom(*state_));
  return copy;
}

Result<bool> ModelManager::CopySome(std::uint64_t bytes) {
  const std::size_t blocks = state_->parameters.blocks();
  if (!copying_) {
    copying_ = Copying{};  // clang 14 cannot emplace what has defaults inside its class
    copying_->state = TRY(StateToCopyInto());
    copying_->copied.resize(blocks, 0);
    copying_->touched.resize(blocks);
  }
  Copying& c = *copying_;
  for (; c.block < blocks; ++c.block) {
    const std::uint64_t width = state_->parameters.stride(c.block) * sizeof(float) *
                                (1 + static_cast<std::uint64_t>(state_->optimizer->slots()));
    while (c.copied[c.block] < state_->parameters.rows(c.block)) {
      if (bytes == 0) return false;
      const std::uint64_t first = c.copied[c.block];
      const std::uint64_t last =
          std::min(state_->parameters.rows(c.block), first + std::max<std::uint64_t>(1, bytes / width));
      TRY(c.state->CopyRows(*state_, c.block, first, last));
      bytes -= std::min(bytes, (last - first) * width);
      c.copied[c.block] = last;
    }
  }
  for (std::size_t b = 0; b < blocks; ++b) {  // what has changed, or was added, since it was copied
    const std::uint64_t rows = state_->parameters.rows(b);
    TRY(c.state->CopyRows(*state_, b, c.copied[b], rows));
    for (const std::uint32_t row : c.touched[b].rows())
      if (row < c.copied[b]) TRY(c.state->CopyRows(*state_, b, row, row + 1));
    c.copied[b] = rows;
    c.touched[b].Clear();
  }
  c.state->CopyRest(*state_);
  c.complete = true;
  return true;
}

Result<std::vector<std::unique_ptr<Edition>>> ModelManager::Editions(const model::Model& model, const State& state,
                                                                     const data::Description& description) const {
  std::vector<std::unique_ptr<Edition>> editions;
  for (int i = 0; serves_ && i < 2; ++i) editions.push_back(TRY(publisher_.NewEdition(model, state, description)));
  return editions;
}

Result<void> ModelManager::TakeOver(std::unique_ptr<State> state, std::vector<std::unique_ptr<Edition>> editions,
                                    const optimize::RowSets& touched) {
  if (serves_ && editions.empty()) editions = TRY(Editions(*model_, *state, description_));
  if (serves_) publisher_.Replace(std::move(editions), touched);
  spare_ = std::exchange(state_, std::move(state));
  copying_.reset();  // it was of the state before
  dirty_ = serves_;
  return {};
}

Result<void> ModelManager::TakeMoreClasses(const model::Model& wider) {
  auto state = TRY(NewState(wider));
  TRY(state->TakeFewerClasses(*state_));
  auto editions = TRY(Editions(wider, *state, description_));
  model_ = &wider;
  publisher_.SetModel(wider);
  TRY(TakeOver(std::move(state), std::move(editions), optimize::RowSets(wider.Blocks().size())));
  spare_.reset();
  workspace_ = {};
  return {};
}

Result<WorkReport> ModelManager::UpdateIteration(Runtime& runtime, const History& history, const Work& work,
                                                 std::uint64_t version) {
  auto copy = TRY(Copy());
  const WorkReport report = TRY(runtime.Run(*model_, *copy, history, work));
  TRY(TakeOver(std::move(copy), {}, touched_));
  TRY(Publish(version));
  return report;
}

Result<bool> ModelManager::Publish(std::uint64_t version) {
  if (!serves_) return true;
  const bool done = TRY(publisher_.Publish(*state_, description_, version));
  if (done) dirty_ = false;
  return done;
}

std::uint64_t ModelManager::Predict(int slot, data::Rows& rows, model::Workspace& workspace,
                                    std::vector<float>& scores) const {
  const auto edition = Read(slot);
  data::Standardise(edition->description, rows);
  scores.resize(rows.size() * edition->model->scores());
  edition->model->Predict(edition->parameters, rows.batch(), workspace, scores);
  edition->description.target.Unscale(scores);
  return edition->version;
}

double ModelManager::ErrorRate(int slot, data::Rows& rows) const {
  model::Workspace workspace;
  std::vector<float> scores;
  Predict(slot, rows, workspace, scores);
  const auto task = [&] {
    const auto edition = Read(slot);
    return train::TaskOf(*edition->model, edition->description);
  }();
  const std::size_t k = rows.size() > 0 ? scores.size() / rows.size() : 1;
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r)
    sum += ErrorOf(task, std::span(scores).subspan(r * k, k), rows.labels[r]);
  return rows.size() > 0 ? sum / static_cast<double>(rows.size()) : 0;
}

}  // namespace freshet::deploy
