#include "simulate/subject.h"

#include <utility>

#include "base/random.h"
#include "base/str.h"
#include "fabric/sim/platform.h"
#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::simulate {

DrawnRows::DrawnRows(const model::Model& model, std::size_t count, std::uint64_t seed)
    : width_(model.config().features), dense_(count * width_), labels_(count) {
  base::Random random(seed, "rows");
  for (float& value : dense_) value = static_cast<float>(random.Normal());
  for (float& label : labels_) label = static_cast<float>(random.Below(model.scores()));
}

data::Batch DrawnRows::batch() const {
  data::Batch batch;
  batch.rows = labels_.size();
  batch.labels = labels_.data();
  batch.dense = dense_.data();
  batch.width = width_;
  return batch;
}

Result<Subject> Subject::Of(const std::string& name, const std::string& shape) {
  std::vector<std::string> names;
  for (const model::network::ZooEntry& entry : model::network::Zoo()) {
    names.emplace_back(entry.name);
    if (entry.name != name) continue;
    model::network::Shape input = entry.input;
    if (!shape.empty()) {
      input.clear();
      for (const int side : fabric::sim::PartsOf(shape, 'x')) input.push_back(side);
      if (input.empty() || input.size() > 3)
        return Error{Code::kInvalid, Str("input ", Quoted(shape), ": expected 1 to 3 numbers, like 3x224x224")};
    }
    Subject subject;
    subject.name = name;
    subject.graph = TRY(model::network::MakeZoo(name, input, entry.classes));
    const auto facts = TRY(model::network::Infer(subject.graph));
    model::ModelConfig config;
    config.kind = "network";
    config.loss = subject.graph.target == model::network::Target::kInput ? "squared" : "softmax";
    config.dense = true;
    config.features = static_cast<std::uint64_t>(facts[0].elements());
    config.classes = static_cast<std::uint64_t>(
        subject.graph.target == model::network::Target::kInput ? facts[0].elements() : entry.classes);
    config.network = ToToml(subject.graph);
    subject.model = TRY(model::Model::Make(config));
    for (const model::network::Facts& layer : facts)
      subject.parameter_bytes += static_cast<double>(layer.parameters()) * sizeof(float);
    subject.row_bytes = static_cast<double>(facts[0].elements());
    return subject;
  }
  return Error{Code::kInvalid, Str("model ", Quoted(name), ": expected one of ", Join(names, ", "))};
}

}  // namespace freshet::simulate
