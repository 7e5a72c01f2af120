// Mini-batch k-means (Sculley 2010): every row moves its nearest centroid towards it by 1 / (rows it has had). That is
// its own update rule, so that the optimizer only counts steps. Labels are not looked at. The score of a row is the
// number of its centroid; its loss is half the squared distance.
// Blocks: centroids (K × D) and counts (K × 1); a centroid with count 0 is not placed yet and takes the next row that
// differs from those that are.

#include <algorithm>
#include <limits>

#include "base/option.h"
#include "model/kinds.h"
#include "model/partials.h"
#include "model/vector.h"

namespace freshet::model {
namespace {

using data::Batch;
using optimize::Gradient;
using optimize::Optimizer;
using optimize::Parameters;

constexpr std::size_t kCentroids = 0, kCounts = 1;

class KMeans final : public Model, public Partials {
 public:
  using Model::Model;
  bool Supervised() const override { return false; }
  const Partials* partials() const override { return this; }
  Traits traits() const override {
    return {.own_rule = true, .met_by_entry = config_.clusters, .answers_clusters = true};
  }

  std::vector<optimize::Block> Blocks() const override {
    return {{"centroids", config_.clusters, config_.features}, {"counts", config_.clusters, 1}};
  }

  Result<void> Prepare(Parameters&, const Batch& batch) const override {
    if (batch.sparse() && IndexEnd(batch) > config_.features)
      return Error{Code::kBadInput,
                   Str("k-means was set up for ", config_.features, " features and met feature ", IndexEnd(batch),
                       "; give the number with ", Option("features"), ", or hash with ", Option("bits"))};
    return {};
  }

  void Predict(const Parameters& parameters, const Batch& batch, Workspace& workspace,
               std::span<float> out) const override {
    for (std::size_t r = 0; r < batch.rows; ++r)
      out[r] = static_cast<float>(Nearest(parameters, Expand(batch, r, workspace.row)).first);
  }

  double LossOf(const Parameters& parameters, const Batch& batch, Workspace& workspace,
                std::span<const float>) const override {
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r)
      sum += 0.5 * batch.weight(r) * Nearest(parameters, Expand(batch, r, workspace.row)).second;
    return sum;
  }

  double LossAndGradient(const Parameters& parameters, const Batch& batch, Workspace& workspace, Gradient& gradient,
                         std::span<float> out) const override {
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const float* const x = Expand(batch, r, workspace.row);
      const auto [nearest, distance] = Nearest(parameters, x);
      out[r] = static_cast<float>(nearest);
      sum += 0.5 * batch.weight(r) * distance;
      AddMove(parameters.Row(kCentroids, nearest), x, batch.weight(r),
              gradient.blocks[kCentroids].Touch(static_cast<std::uint32_t>(nearest)));
      *gradient.blocks[kCounts].Touch(static_cast<std::uint32_t>(nearest)) -= batch.weight(r);
    }
    return sum;
  }

  // Centroids that have no place yet take those of the first rows.
  void Observe(Parameters& parameters, const Batch& batch, Optimizer&) const override {
    std::vector<float> scratch;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const float* const x = Expand(batch, r, scratch);
      const std::size_t nearest = Place(parameters, x).first;
      float& count = *parameters.Row(kCounts, nearest);
      if (count > 0) {
        if (AllPlaced(parameters)) return;
        continue;
      }
      count = batch.weight(r);
      std::copy_n(x, config_.features, parameters.Row(kCentroids, nearest));
    }
  }

  Observes observes(const Parameters& parameters, const Optimizer&) const override {
    return AllPlaced(parameters) ? Observes::kNothing : Observes::kRows;
  }

  // Each centroid moves to the mean of all rows it has ever won: the rule of Update, for many rows at once.
  void Apply(Parameters& parameters, Gradient& gradient, double, Optimizer& optimizer, Workspace&) const override {
    optimizer.BeginStep();
    const optimize::BlockGradient &moves = gradient.blocks[kCentroids], &counts = gradient.blocks[kCounts];
    for (std::size_t i = 0; i < counts.touched().size(); ++i) {
      float& count = *parameters.Row(kCounts, counts.touched()[i]);
      count -= counts.Values(i)[0];
    }
    const std::size_t first = Range(parameters).first;
    for (std::size_t i = 0; i < moves.touched().size(); ++i) {
      const float count = *parameters.Row(kCounts, first + moves.touched()[i]);
      if (count > 0)
        AddScaled(parameters.Row(kCentroids, moves.touched()[i]), -1 / count, moves.Values(i).data(), config_.features);
    }
  }

  double Update(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                std::span<float> out, Optimizer::Sharing sharing) const override {
    CHECK(sharing == Optimizer::Sharing::kAlone);
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const float* const x = Expand(batch, r, workspace.row);
      const auto [nearest, distance] = Place(parameters, x);
      out[r] = static_cast<float>(nearest);
      sum += 0.5 * batch.weight(r) * distance;
      optimizer.BeginStep();
      float& count = *parameters.Row(kCounts, nearest);
      count += batch.weight(r);
      const float share = count > 0 ? batch.weight(r) / count : 0.0f;
      float* const centroid = parameters.Row(kCentroids, nearest);
#pragma omp simd
      for (std::size_t j = 0; j < config_.features; ++j) centroid[j] += share * (x[j] - centroid[j]);
    }
    return sum;
  }

  void Touch(const Parameters&, const Batch&, optimize::RowSets& touched) const override {
    for (std::uint32_t c = 0; c < config_.clusters; ++c) {
      touched[kCentroids].Add(c);
      touched[kCounts].Add(c);
    }
  }

  // Centroids are spread, counts known to all: whose row it is and whether all are placed follow from them. Partials: the
  // nearest centroid that was placed before, and its squared distance; of those equally near the one of the least number.
  Cut cut(std::size_t block) const override { return block == kCentroids ? Cut::kRows : Cut::kAll; }
  std::size_t width() const override { return 2; }
  void Begin(std::span<float> partials) const override {
    for (std::size_t i = 0; i < partials.size(); i += 2) {
      partials[i] = 0;
      partials[i + 1] = std::numeric_limits<float>::max();
    }
  }
  void Merge(const Parameters& own, const Batch& batch, Workspace& workspace,
             std::span<float> partials) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const auto [nearest, distance] = Nearest(own, Expand(batch, r, workspace.row));
      Nearer(static_cast<float>(nearest), distance, partials.data() + 2 * r);
    }
  }
  double Close(Parameters& own, const Batch& batch, Workspace& workspace, std::span<float> partials, std::size_t first,
               std::size_t last, std::span<float> out) const override {
    PlaceTogether(own, batch, workspace, partials);
    double sum = 0;
    for (std::size_t r = first; r < last; ++r) {
      out[r - first] = partials[2 * r];
      sum += 0.5 * batch.weight(r) * partials[2 * r + 1];
    }
    return sum;
  }
  void AddGradient(const Parameters& own, const Batch& batch, Workspace& workspace, std::span<const float> closed,
                   Gradient& gradient) const override {
    const auto [first, end] = Range(own);
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const auto nearest = static_cast<std::size_t>(closed[2 * r]);
      if (first <= nearest && nearest < end)
        AddMove(own.Row(kCentroids, nearest - first), Expand(batch, r, workspace.row), batch.weight(r),
                gradient.blocks[kCentroids].Touch(static_cast<std::uint32_t>(nearest - first)));
      *gradient.blocks[kCounts].Touch(static_cast<std::uint32_t>(nearest)) -= batch.weight(r);
    }
  }

 private:
  // The row as D floats, in `scratch` if it is sparse.
  const float* Expand(const Batch& batch, std::size_t r, std::vector<float>& scratch) const {
    if (!batch.sparse()) return batch.dense + r * batch.width;
    scratch.assign(config_.features, 0);
    for (std::uint32_t e = batch.offsets[r]; e < batch.offsets[r + 1]; ++e)
      if (batch.indices[e] < config_.features) scratch[batch.indices[e]] = batch.values[e];
    return scratch.data();
  }

  // The numbers of the centroids that are here, from the first to the end; counts are here of all.
  std::pair<std::size_t, std::size_t> Range(const Parameters& parameters) const {
    const std::size_t first = parameters.first_row(kCentroids);
    return {first, first + parameters.rows(kCentroids)};
  }

  float SquaredDistance(const float* x, const float* centroid) const {
    float distance = 0;
#pragma omp simd reduction(+ : distance)
    for (std::size_t j = 0; j < config_.features; ++j) distance += (x[j] - centroid[j]) * (x[j] - centroid[j]);
    return distance;
  }

  // The nearest centroid that is placed, and its squared distance, of those that are here.
  std::pair<std::size_t, float> Nearest(const Parameters& parameters, const float* x) const {
    std::pair<std::size_t, float> best{0, std::numeric_limits<float>::max()};
    const auto [first, end] = Range(parameters);
    for (std::size_t c = first; c < end; ++c) {
      if (*parameters.Row(kCounts, c) == 0) continue;
      const float distance = SquaredDistance(x, parameters.Row(kCentroids, c - first));
      if (distance < best.second) best = {c, distance};
    }
    return best;
  }

  static void Nearer(float centroid, float distance, float* best) {
    if (distance > best[1] || (distance == best[1] && centroid >= best[0])) return;
    best[0] = centroid;
    best[1] = distance;
  }

  // The first centroid that has no place yet; `clusters` when there is none.
  std::size_t FirstUnplaced(const Parameters& parameters) const {
    std::size_t c = 0;
    while (c < config_.clusters && *parameters.Row(kCounts, c) != 0) ++c;
    return c;
  }
  bool AllPlaced(const Parameters& parameters) const { return FirstUnplaced(parameters) == config_.clusters; }

  std::pair<std::size_t, float> Place(const Parameters& parameters, const float* x) const {
    const auto nearest = Nearest(parameters, x);
    if (nearest.second == 0) return nearest;
    const std::size_t unplaced = FirstUnplaced(parameters);
    return unplaced < config_.clusters ? std::pair{unplaced, 0.0f} : nearest;
  }

  // Observe, and then what is nearest, where centroids are with several: those that rows of this batch place are known
  // to all by these rows.
  void PlaceTogether(Parameters& own, const Batch& batch, Workspace& workspace, std::span<float> partials) const {
    std::vector<std::pair<std::size_t, std::vector<float>>> placed;  // centroids, and where they are now
    const auto nearer = [&](const float* x, float* best) {
      for (const auto& [centroid, place] : placed)
        Nearer(static_cast<float>(centroid), SquaredDistance(x, place.data()), best);
    };
    std::size_t next = FirstUnplaced(own);
    const auto [first, end] = Range(own);
    for (std::size_t r = 0; r < batch.rows && next < config_.clusters; ++r) {
      const float* const x = Expand(batch, r, workspace.row);
      float best[] = {partials[2 * r], partials[2 * r + 1]};
      nearer(x, best);
      if (best[1] == 0) continue;
      *own.Row(kCounts, next) = batch.weight(r);
      if (first <= next && next < end) std::copy_n(x, config_.features, own.Row(kCentroids, next - first));
      if (batch.weight(r) == 0) continue;
      placed.emplace_back(next, std::vector<float>(x, x + config_.features));
      next = FirstUnplaced(own);
    }
    for (std::size_t r = 0; r < batch.rows && !placed.empty(); ++r)
      nearer(Expand(batch, r, workspace.row), partials.data() + 2 * r);
  }

  // What a row adds to the gradient of its centroid.
  void AddMove(const float* centroid, const float* x, float weight, float* gradient) const {
    AddScaled(gradient, weight, centroid, config_.features);
    AddScaled(gradient, -weight, x, config_.features);
  }
};

}  // namespace

ModelPtr MakeKMeans(const ModelConfig& config, const Loss& loss) { return std::make_unique<KMeans>(config, loss); }

}  // namespace freshet::model
