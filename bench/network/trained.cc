#include "trained.h"

#include <algorithm>

#include "base/random.h"
#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::bench {

Result<std::unique_ptr<Trained>> Trained::Make(const Options& options) {
  std::unique_ptr<Trained> made(new Trained(options));
  TRY(made->MakeModel());
  made->parameters_ = std::make_unique<optimize::Parameters>(TRY(made->model_->NewParameters(made->memory_)));
  optimize::OptimizerOptions rule;
  rule.kind = options.optimizer;
  rule.schedule.rate = options.rate;
  made->optimizer_ = TRY(optimize::Optimizer::Make(rule, made->memory_));
  TRY(made->optimizer_->Follow(*made->parameters_));
  if (options.rows > 1) made->gradient_ = TRY(made->model_->NewGradient(made->memory_));
  made->workspace_.threads = options.threads;
  made->MakeRows();
  return made;
}

Result<void> Trained::MakeModel() {
  const auto zoo = model::network::Zoo();
  const auto entry = std::find_if(zoo.begin(), zoo.end(), [&](const auto& e) { return e.name == options_.network; });
  if (entry == zoo.end()) return Error{Code::kInvalid, Str("the zoo has no network ", Quoted(options_.network))};
  model::network::ZooOptions options;
  options.auxiliary = false;
  graph_ = TRY(model::network::MakeZoo(entry->name, entry->input, entry->classes, options));
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.classes = static_cast<std::uint64_t>(entry->classes);
  config.network = ToToml(graph_);
  config.features = 1;
  for (const std::int64_t extent : entry->input) config.features *= static_cast<std::uint64_t>(extent);
  model_ = TRY(model::Model::Make(config));
  return {};
}

void Trained::MakeRows() {
  const std::size_t width = model_->config().features;
  values_.resize(options_.rows * width);
  labels_.resize(options_.rows);
  scores_.resize(options_.rows * model_->scores());
  base::Random random(1, "rows");
  for (float& value : values_) value = static_cast<float>(random.Normal());
  for (float& label : labels_) label = static_cast<float>(random.Below(model_->config().classes));
  batch_.rows = options_.rows;
  batch_.labels = labels_.data();
  batch_.dense = values_.data();
  batch_.width = width;
}

double Trained::Step() {
  const auto rows = static_cast<double>(options_.rows);
  if (options_.rows == 1)
    return model_->Update(*parameters_, batch_, *optimizer_, workspace_, scores_, optimize::Optimizer::Sharing::kAlone);
  gradient_.Clear();
  workspace_.step = optimizer_->step();
  const double loss = model_->LossAndGradient(*parameters_, batch_, workspace_, gradient_, scores_);
  model_->Apply(*parameters_, gradient_, static_cast<double>(rows), *optimizer_, workspace_);
  return loss / rows;
}

std::span<const float> Trained::Predict() {
  model_->Predict(*parameters_, batch_, workspace_, scores_);
  return scores_;
}

}  // namespace freshet::bench
