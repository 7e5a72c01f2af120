#include "simulate/subject.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/str.h"
#include "fabric/sim/platform.h"
#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::simulate {
namespace {

constexpr std::uint64_t kUrlFeatures = 3'231'961, kMostFeatures = 1u << 30, kCommonFeatures = 64;
constexpr std::size_t kCommonEntries = 20, kRareEntries = 80;
constexpr std::string_view kUrlLike = "url-like";

Result<Subject> UrlLike(std::uint64_t features) {
  Subject subject;
  subject.name = kUrlLike;
  model::ModelConfig config;
  config.features = features;
  subject.model = TRY(model::Model::Make(config));
  subject.parameter_bytes = (static_cast<double>(features) + 1) * sizeof(float);
  subject.row_bytes = 8.0 * (kCommonEntries + kRareEntries);
  return subject;
}

}  // namespace

DrawnRows::DrawnRows(const model::Model& model, std::size_t count, std::uint64_t seed)
    : width_(model.config().dense ? model.config().features : 0), labels_(count) {
  base::Random random(seed, "rows");
  if (width_ > 0)
    DrawDense(random, count);
  else
    DrawSparse(random, count, model.config().features);
  const std::uint64_t labels = std::max<std::uint64_t>(model.scores(), 2);
  for (float& label : labels_) label = static_cast<float>(random.Below(labels));
}

void DrawnRows::DrawDense(base::Random& random, std::size_t count) {
  dense_.resize(count * width_);
  for (float& value : dense_) value = static_cast<float>(random.Normal());
}

void DrawnRows::DrawSparse(base::Random& random, std::size_t count, std::uint64_t features) {
  const double low = std::log(kCommonFeatures + 1.0), high = std::log(static_cast<double>(features));
  offsets_.push_back(0);
  std::vector<std::uint32_t> row;
  for (std::size_t r = 0; r < count; ++r) {
    row.clear();
    for (std::size_t i = 0; i < kCommonEntries; ++i)
      row.push_back(static_cast<std::uint32_t>(random.Below(kCommonFeatures)));
    for (std::size_t i = 0; i < kRareEntries; ++i)
      row.push_back(static_cast<std::uint32_t>(std::exp(low + (high - low) * random.Uniform())) - 1);
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    indices_.insert(indices_.end(), row.begin(), row.end());
    offsets_.push_back(static_cast<std::uint32_t>(indices_.size()));
  }
  values_.assign(indices_.size(), 1.0f);
}

data::Batch DrawnRows::batch() const {
  data::Batch batch;
  batch.rows = labels_.size();
  batch.labels = labels_.data();
  if (width_ > 0) {
    batch.dense = dense_.data();
    batch.width = width_;
  } else {
    batch.offsets = offsets_.data();
    batch.indices = indices_.data();
    batch.values = values_.data();
  }
  return batch;
}

std::vector<std::string> Subject::Names() {
  std::vector<std::string> names = {std::string(kUrlLike)};
  for (const model::network::ZooEntry& entry : model::network::Zoo()) names.emplace_back(entry.name);
  return names;
}

Result<std::unique_ptr<Costs>> Subject::CostsOn(const fabric::sim::Platform& platform) const {
  if (sparse())
    return std::unique_ptr<Costs>(
        std::make_unique<DescribedSparseCosts>(kCommonEntries + kRareEntries, model->Blocks().size(), platform));
  return std::unique_ptr<Costs>(std::make_unique<DescribedCosts>(TRY(DescribedCosts::Make(graph, platform))));
}

Result<Subject> Subject::OfNetwork(std::string name, model::network::Graph graph) {
  Subject subject;
  subject.name = std::move(name);
  subject.graph = std::move(graph);
  const auto facts = TRY(model::network::Infer(subject.graph));
  using model::network::Target;
  const Target target = subject.graph.target;
  const model::network::Facts& answer = facts[static_cast<std::size_t>(subject.graph.heads[0].layer)];
  model::ModelConfig config;
  config.kind = "network";
  config.dense = true;
  config.features = static_cast<std::uint64_t>(facts[0].elements());
  config.classes = static_cast<std::uint64_t>(target == Target::kNext ? answer.shape.back() : answer.elements());
  config.loss = target == Target::kInput || config.classes == 1 ? "squared" : "softmax";
  config.network = ToToml(subject.graph);
  subject.model = TRY(model::Model::Make(config));
  for (const model::network::Facts& layer : facts)
    subject.parameter_bytes += static_cast<double>(layer.parameters()) * sizeof(float);
  subject.row_bytes = static_cast<double>(facts[0].elements());
  return subject;
}

Result<Subject> Subject::Of(const std::string& name, const std::string& shape) {
  if (name == kUrlLike) {
    if (shape.empty()) return UrlLike(kUrlFeatures);
    std::uint64_t features = 0;
    const auto [end, problem] = std::from_chars(shape.data(), shape.data() + shape.size(), features);
    if (problem != std::errc() || end != shape.data() + shape.size() || features <= kCommonFeatures ||
        features > kMostFeatures)
      return Error{Code::kInvalid, Str("input ", Quoted(shape), ": expected how many features rows of ", name,
                                       " have, more than ", kCommonFeatures)};
    return UrlLike(features);
  }
  for (const model::network::ZooEntry& entry : model::network::Zoo()) {
    if (entry.name != name) continue;
    model::network::Shape input = entry.input;
    if (!shape.empty()) {
      input.clear();
      for (const int side : fabric::sim::PartsOf(shape, 'x')) input.push_back(side);
      if (input.empty() || input.size() > 3)
        return Error{Code::kInvalid, Str("input ", Quoted(shape), ": expected 1 to 3 numbers, like 3x224x224")};
    }
    return OfNetwork(name, TRY(model::network::MakeZoo(name, input, entry.classes)));
  }
  return Error{Code::kInvalid, Str("model ", Quoted(name), ": expected one of ", Join(Names(), ", "))};
}

}  // namespace freshet::simulate
