#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "model/kinds.h"
#include "model/network/network.h"

namespace freshet::model {
namespace {

using Json = nlohmann::ordered_json;

// The registry: one line for each kind of model, which has one file of its own.
struct Entry {
  std::string_view name;
  ModelPtr (*make)(const ModelConfig& config, const Loss& loss);
};
constexpr Entry kRegistry[] = {{"linear", MakeLinear},
                               {"factorization", MakeFactorization},
                               {"fm", MakeFactorizationMachine},
                               {"kmeans", MakeKMeans}};

}  // namespace

std::string ModelConfig::ToJson() const {
  return Json{{"kind", kind},       {"loss", loss},       {"dense", dense},       {"features", features},
              {"classes", classes}, {"factors", factors}, {"clusters", clusters}, {"spread", spread},
              {"seed", seed},       {"network", network}}
      .dump();
}

Result<ModelConfig> ModelConfig::FromJson(std::string_view text) {
  ModelConfig config;
  try {  // the JSON library's own errors end here
    const Json json = Json::parse(text);
    config.kind = json.at("kind");
    config.loss = json.at("loss");
    config.dense = json.at("dense");
    config.features = json.at("features");
    config.classes = json.at("classes");
    config.factors = json.at("factors");
    config.clusters = json.at("clusters");
    config.spread = json.at("spread");
    config.seed = json.at("seed");
    config.network = json.value("network", "");
  } catch (const Json::exception& problem) {
    return Error{Code::kCorrupt, Str("model description: ", problem.what())};
  }
  return config;
}

std::vector<std::string> Model::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  names.emplace_back("network");
  return names;
}

Result<std::unique_ptr<Model>> Model::Make(const ModelConfig& config) {
  const Loss& loss = *TRY(FindLoss(config.loss));
  const auto within = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    return least <= value && value <= most;
  };
  if (!within(config.classes, 1, 1 << 20) || !within(config.factors, 1, 4096) || !within(config.clusters, 1, 1 << 20) ||
      config.features > (1u << 28) || (config.dense && config.features == 0))
    return Error{Code::kInvalid, Str("model: classes ", config.classes, ", factors ", config.factors, ", clusters ",
                                     config.clusters, " or features ", config.features, " out of range")};
  if (config.kind == "network") return network::MakeNetwork(config, loss);
  if (config.classes > 1 && config.loss != "softmax")
    return Error{Code::kInvalid, Str("loss ", config.loss, " gives one score, not ", config.classes, "; use softmax")};
  for (const Entry& entry : kRegistry)
    if (entry.name == config.kind) return entry.make(config, loss);
  return Error{Code::kInvalid, Str("model ", Quoted(config.kind), ": expected one of ", Join(Kinds(), ", "))};
}

Result<optimize::Parameters> Model::NewParameters(optimize::Memory& memory, int slots,
                                                  const optimize::Portion& portion) const {
  constexpr std::uint64_t kNarrow = 16;  // floats: with its state, a row still fits a cache line
  std::vector<optimize::Block> blocks = portion.Of(Blocks());
  for (optimize::Block& block : blocks) {
    const std::uint64_t state = block.width * static_cast<std::uint64_t>(slots);
    if (block.most_rows > block.rows && block.width + state <= kNarrow) block.beside = state;
  }
  optimize::Parameters parameters = TRY(optimize::Parameters::Create(std::move(blocks), memory));
  Start(parameters);
  return parameters;
}

double Model::LossOf(const optimize::Parameters&, const data::Batch& batch, Workspace& workspace,
                     std::span<const float> scores_made) const {
  workspace.deltas.resize(scores());
  double sum = 0;
  for (std::size_t r = 0; r < batch.rows; ++r)
    sum += batch.weight(r) *
           loss_.Evaluate(scores_made.subspan(r * scores(), scores()), batch.labels[r], workspace.deltas);
  return sum;
}

void Model::Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
                  optimize::Optimizer& optimizer, Workspace&) const {
  if (weight > 0) gradient.Scale(static_cast<float>(1 / weight));
  optimizer.BeginStep();
  optimizer.Apply(parameters, gradient);
}

Result<void> Model::MakeRoom(optimize::Parameters& parameters, std::span<const std::uint64_t> rows) const {
  std::uint64_t most = 0;
  for (std::size_t b = 0; b < rows.size(); ++b)
    if (rows[b] > parameters.rows(b)) most = std::max(most, rows[b]);
  if (most == 0) return {};
  const std::uint32_t offsets[] = {0, 1}, indices[] = {static_cast<std::uint32_t>(most - 1)};
  const float zero[] = {0};
  data::Batch one;
  one.rows = 1;
  one.labels = zero;
  one.offsets = offsets;
  one.indices = indices;
  one.values = zero;
  return Prepare(parameters, one);
}

Result<optimize::Gradient> Model::NewGradient(optimize::Memory&, const optimize::Portion& portion) const {
  optimize::Gradient gradient;
  for (const optimize::Block& block : portion.Of(Blocks())) gradient.blocks.emplace_back(block.width);
  return gradient;
}

void Model::StartFactors(optimize::Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                         std::uint64_t as) const {
  const std::uint64_t width = parameters.width(b);
  const auto reach = static_cast<float>(config_.spread * std::sqrt(3.0 / static_cast<double>(width)));
  for (std::uint64_t row = first; row < last; ++row) {
    float* const out = parameters.Row(b, row);
    for (std::uint64_t j = 0; j < width; j += 4) {
      const auto block = base::Philox(config_.seed, as + (row - first), b << 32 | j);
      for (std::uint64_t k = j; k < std::min(j + 4, width); ++k)
        out[k] = reach * (static_cast<float>(block[k - j]) * 0x1p-31f - 1.0f);
    }
  }
}

void TouchIndices(const data::Batch& batch, optimize::RowSet& touched) {
  for (std::uint32_t e = batch.offsets[0]; e < batch.offsets[batch.rows]; ++e)
    if (batch.indices[e] != data::kUnseen) touched.Add(batch.indices[e]);
}

std::uint64_t IndexEnd(const data::Batch& batch) {
  std::uint32_t top = 0;
  const std::uint32_t* const end = batch.indices + batch.offsets[batch.rows];
  // kUnseen + 1 wraps to 0, so that it never is the largest.
  for (const std::uint32_t* at = batch.indices + batch.offsets[0]; at < end; ++at) top = std::max(top, *at + 1);
  return top;
}

}  // namespace freshet::model
