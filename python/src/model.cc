#include "model.h"

#include <algorithm>

#include "base/executor.h"
#include "data/drive.h"
#include "data/images/augment.h"
#include "data/row_builder.h"
#include "data/standardise.h"
#include "model/onnx/export.h"
#include "model/onnx/write.h"
#include "model/ratings.h"
#include "model/slices.h"
#include "train/evaluate.h"
#include "world.h"

namespace freshet::python {
namespace {

constexpr std::size_t kNetworkRows = 32;  // what a network predicts at once

Result<void> GoOn(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
  return {};
}

}  // namespace

Model::Model(model::TrainedModel trained)
    : model_(std::move(trained.model)),
      parameters_(std::move(trained.parameters)),
      description_(std::move(trained.description)),
      metadata_(std::move(trained.metadata)),
      rated_(std::move(trained.rated)),
      sums_(std::move(trained.sums)),
      builder_(description_) {
  const auto rows = metadata_.find("rows");
  if (rows != metadata_.end()) rows_ = std::strtoull(rows->second.c_str(), nullptr, 10);
}

Result<std::unique_ptr<Model>> Model::Load(base::Files& files, const std::string& path) {
  return std::make_unique<Model>(TRY(model::LoadModel(files, path, World::Get().memory())));
}

Result<std::unique_ptr<Model>> Model::FromBytes(std::string bytes) {
  const auto file = TRY(data::TensorFile::Parse(std::move(bytes), "these bytes"));
  return std::make_unique<Model>(TRY(model::ModelFrom(file, World::Get().memory())));
}

Result<void> Model::Begin() {
  if (state_ != nullptr) return {};
  learning_.model = model_->config().kind;
  if (learning_.optimizer == "auto" && sums_) learning_.optimizer = sums_->rule;  // what it has summed up goes on
  learning_.SettleDefaults(description_);
  if (learning_.schedule == "auto") learning_.schedule = "constant";
  auto state = TRY(deploy::State::Make(*model_, learning_.Optimizer(), World::Get().memory(), description_.moments));
  state->parameters.CopyFrom(*parameters_);
  TRY(state->optimizer->Follow(state->parameters));
  state->target = description_.target;
  if (sums_ && !sums_->Give(state->parameters, *state->optimizer))
    World::Get().log().Warn("sums ignored", "rule", sums_->rule, "now", state->optimizer->name());
  if (description_.view.any()) view_ = TRY(data::Augment::Make(description_, {}));
  if (view_) state->view = &*view_;
  sums_.reset();
  parameters_.reset();
  state_ = std::move(state);
  return {};
}

// Moments are copied when somebody wants them, not with each row.
void Model::Settle() {
  if (settled_) return;
  const std::unique_lock lock(mutex_);
  description_.moments = state_->moments;
  description_.target = state_->target;
  settled_ = true;
}

Result<void> Model::Write(base::OutputFile& file) {
  Settle();
  const std::shared_lock lock(mutex_);
  data::Metadata metadata = metadata_;
  if (rows_ > 0) metadata["rows"] = Str(rows_);
  std::optional<model::Sums> sums;
  if (state_ != nullptr) sums = model::Sums::Of(state_->parameters, *state_->optimizer);
  const model::Sums* const kept = sums ? &*sums : sums_ ? &*sums_ : nullptr;
  return model::WriteModel(file, *model_, parameters(), description_, std::move(metadata), rated_, kept);
}

Result<void> Model::Save(base::Files& files, const std::string& path) {
  return base::WriteAtomic(files, path, [&](base::OutputFile& file) { return Write(file); });
}

Result<std::string> Model::ToBytes() {
  base::StringFile file;
  TRY(Write(file));
  return std::move(file.text);
}

Result<model::TrainedModel> Model::Copy(optimize::Memory& memory) {
  return model::ModelFrom(TRY(data::TensorFile::Parse(TRY(ToBytes()), "a copy")), memory);
}

Result<std::vector<float>> Model::Predict(const base::Env& env, const data::Input& input, bool link,
                                          const std::atomic<bool>* stop) {
  Settle();
  const std::shared_lock lock(mutex_);
  const auto source = TRY(data::Open(env, input, description_));
  model::Workspace workspace;
  workspace.threads = env.executor.width();
  workspace.goes_on = [stop] { return GoOn(stop).ok(); };
  const std::size_t k = model_->scores();
  std::vector<float> all;
  TRY(train::DriveFor(env, *model_, *source, [&](data::Rows& rows) -> Result<void> {
    data::Standardise(description_, rows);
    const data::Batch batch = rows.batch();
    const std::size_t before = all.size();
    all.resize(before + batch.rows * k);
    for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
      end = model::SliceEnd(*model_, batch, begin, kNetworkRows);
      const auto scores = std::span(all).subspan(before + begin * k, (end - begin) * k);
      model_->Predict(parameters(), batch.Slice(begin, end), workspace, scores);
      TRY(GoOn(stop));
      description_.target.Unscale(scores);
      for (std::size_t r = 0; link && r < end - begin; ++r) model_->loss().Link(scores.subspan(r * k, k));
    }
    return {};
  }));
  return all;
}

Result<train::Evaluation> Model::Evaluate(const base::Env& env, const data::Input& input,
                                          const std::atomic<bool>* stop) {
  Settle();
  const std::shared_lock lock(mutex_);
  const auto source = TRY(data::Open(env, input, description_));
  return train::Evaluate(env, *model_, parameters(), description_, *source, stop);
}

Result<double> Model::Learn(data::Rows& rows) {
  settled_ = false;
  if (model_->ratings() != nullptr) rated_.Add(rows.batch());
  const double loss = TRY(state_->Learn(*model_, rows, scores_));
  rows_ += rows.size();
  return loss;
}

Result<double> Model::Update(const base::Env& env, const data::Input& input, const std::atomic<bool>* stop) {
  const std::unique_lock lock(mutex_);
  TRY(Begin());
  const auto source = TRY(data::Open(env, input, description_));
  double loss = 0, weight = 0;
  TRY(train::DriveFor(env, *model_, *source, [&](data::Rows& rows) -> Result<void> {
    TRY(GoOn(stop));
    const data::Batch batch = rows.batch();
    for (std::size_t r = 0; r < batch.rows; ++r) weight += batch.weight(r);
    loss += TRY(Learn(rows));
    return {};
  }));
  return weight > 0 ? loss / weight : 0.0;
}

Result<double> Model::UpdateRow(std::span<const float> numbers, float label, float weight) {
  const std::unique_lock lock(mutex_);
  TRY(Begin());
  if (builder_.form() != data::RowBuilder::Form::kNumbers || numbers.size() != description_.features)
    return Error{Code::kInvalid, Str("a row of ", numbers.size(), " numbers, expected one of ", description_.features)};
  TRY(builder_.FromNumbers(numbers, row_));
  row_.labels[0] = label;
  if (weight != 1) row_.weights.Append(weight);
  return Learn(row_);
}

Result<std::vector<std::pair<std::string, float>>> Model::Recommend(const std::string& user, std::size_t count) {
  const std::shared_lock lock(mutex_);
  const model::Ratings* const ratings = model_->ratings();
  if (ratings == nullptr || description_.dictionaries.size() != 2)
    return Error{Code::kInvalid,
                 Str("this is a ", model_->config().kind, " model; recommendations need a factorization model")};
  const data::Dictionary &users = description_.dictionaries[0], &items = description_.dictionaries[1];
  const std::uint32_t number = users.Find(user);
  if (number == data::kUnseen)
    return Error{Code::kNotFound,
                 Str("user ", Quoted(user), " is not in the model; it knows ", users.size(), " users")};
  std::vector<std::uint32_t> seen;
  for (const auto& [who, item] : rated_.pairs())
    if (who == number) seen.push_back(item);
  std::sort(seen.begin(), seen.end());
  std::vector<std::pair<std::string, float>> best;
  for (const auto& [item, score] : ratings->Recommend(parameters(), number, seen, count))
    best.emplace_back(items.Name(item), score);
  return best;
}

std::vector<Model::Block> Model::Blocks() {
  const std::shared_lock lock(mutex_);
  std::vector<Block> blocks;
  for (std::size_t b = 0; b < parameters().blocks(); ++b)
    blocks.push_back({parameters().block(b).name, parameters().rows(b), parameters().width(b), parameters().Gather(b)});
  return blocks;
}

}  // namespace freshet::python
