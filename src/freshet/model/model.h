#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/batch.h"
#include "model/loss.h"
#include "model/network/slicing.h"
#include "model/traits.h"
#include "optimize/gradient.h"
#include "optimize/optimizer.h"
#include "optimize/parameters.h"
#include "optimize/portion.h"
#include "optimize/row_set.h"

namespace freshet::model {

// Everything that says which model it is; saved with the weights.
struct ModelConfig {
  std::string kind = "linear";
  std::string loss = "logistic";
  bool dense = false;          // rows come as `features` numbers each
  std::uint64_t features = 0;  // of dense rows; sparse ones grow the model as they name new indices
  std::uint64_t classes = 1;   // scores a row gets: classes of softmax, else 1
  std::uint64_t factors = 40;  // factorization, fm
  std::uint64_t clusters = 8;  // kmeans
  double spread = 0.1;         // factors start within ± spread · √(3 / factors)
  std::uint64_t seed = 1;
  std::string network;  // the graph of a network, in its text form

  std::string ToJson() const;
  static Result<ModelConfig> FromJson(std::string_view text);
};

// Scratch that one thread lends to models' calls, one after another and to several models by turns.
struct Workspace {
  std::vector<float> deltas, sums, row;
  int threads = 1;         // that a call may use (networks)
  std::uint64_t step = 0;  // of training: what is drawn at random differs from step to step
  // Called by LossAndGradient when a block's gradient is complete, in the order in which that happens (networks: from
  // the last layer to the first), so that it can travel while the rest is computed.
  std::function<void(std::size_t block)> finished;
  // Called by LossAndGradient of a model that sums over workers (Traits): adds up these numbers over all workers, in
  // place. Every worker makes the same sums: one without rows calls LossAndGradient, too, with an empty batch. Without
  // it, this workspace's rows are all there are.
  std::function<void(std::span<float> values)> sum;
  // Of networks whose fully connected layers are cut into slices: the rows that every worker has in this call, and how
  // what is in between is exchanged. All workers call LossAndGradient, as with `sum`.
  std::optional<network::Slicing> slicing;
  network::Exchange exchange;
  // Asked between the layers of a network: false ends the call at once, and what it wrote is worth nothing.
  std::function<bool()> goes_on;
  // What a kind of model keeps from call to call.
  struct Kept {
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept> kept;
};

class Ratings;
class Partials;

// Describes a computation; owns neither weights nor scratch, so that one model object serves many versions and threads.
// Indices at or beyond the rows a block has stand for what the model has not seen: they add nothing to a prediction.
//
// Threads: all calls are const; concurrent calls need different workspaces, and different parameters or rows unless
// Sharing::kShared.
class Model {
 public:
  static Result<std::unique_ptr<Model>> Make(const ModelConfig& config);
  static std::vector<std::string> Kinds();
  Model(const ModelConfig& config, const Loss& loss) : config_(config), loss_(loss) {}  // kinds only; others Make
  virtual ~Model() = default;

  const ModelConfig& config() const { return config_; }
  const Loss& loss() const { return loss_; }
  std::uint64_t scores() const { return config_.classes; }  // floats per row that Predict writes
  virtual Traits traits() const = 0;
  // What more it can do if it is a model of ratings; else null.
  virtual const Ratings* ratings() const { return nullptr; }
  // What more if its parameters may be spread over members, of whom none has all; else null.
  virtual const Partials* partials() const { return nullptr; }

  // The blocks of this model's parameters, in order.
  virtual std::vector<optimize::Block> Blocks() const = 0;
  // Parameters at their starting values, those of a portion at the whole's. With `slots` of an optimizer that will
  // train them, narrow blocks that grow get room for its state beside their rows.
  virtual Result<optimize::Parameters> NewParameters(optimize::Memory& memory, int slots = 0,
                                                     const optimize::Portion& portion = {}) const;
  // Grows the parameters so that every row of the batch has its place, and gives new rows their starting values.
  virtual Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const = 0;
  // The same for so many rows of each block, of which others have met some.
  virtual Result<void> MakeRoom(optimize::Parameters& parameters, std::span<const std::uint64_t> rows) const;

  // Rows [first, last) of a block that grows, which are new, become what rows from `as` on of the whole start as.
  virtual void StartRows(optimize::Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                         std::uint64_t as) const {
    (void)parameters, (void)b, (void)first, (void)last, (void)as;  // zero
  }

  // Scores of every row, scores() floats each; Loss::Link turns them into predictions.
  virtual void Predict(const optimize::Parameters& parameters, const data::Batch& batch, Workspace& workspace,
                       std::span<float> out) const = 0;
  // The summed, weighted loss of rows whose scores are given.
  virtual double LossOf(const optimize::Parameters& parameters, const data::Batch& batch, Workspace& workspace,
                        std::span<const float> scores) const;
  // Makes the workspace ready for the gradient of so many rows; kInvalid when there is no memory for it.
  // LossAndGradient would do the same, but has no way to say so.
  virtual Result<void> Reserve(std::size_t rows, Workspace& workspace) const {
    (void)rows, (void)workspace;
    return {};
  }
  // Adds the gradient of the summed, weighted loss of the rows, writes their scores to `out`, and returns that loss.
  virtual double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, Workspace& workspace,
                                 optimize::Gradient& gradient, std::span<float> out) const = 0;
  // One update per row, in order, each from the parameters its predecessor left: the fast path of online learning.
  // Writes the scores made before each update to `out` and returns the weighted loss of those.
  virtual double Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                        Workspace& workspace, std::span<float> out, optimize::Optimizer::Sharing sharing) const = 0;
  // Adds the rows that Update may change when it is given this batch, after Prepare.
  virtual void Touch(const optimize::Parameters& parameters, const data::Batch& batch,
                     optimize::RowSets& touched) const = 0;
  // Looks at a batch before its gradient is computed and applied: the size of features for the optimizer, the mean of
  // ratings.
  virtual void Observe(optimize::Parameters&, const data::Batch&, optimize::Optimizer&) const {}
  // What Observe would take from a batch now: nothing, the largest size of each feature, or the rows as they are.
  enum class Observes { kNothing, kSizes, kRows };
  virtual Observes observes(const optimize::Parameters&, const optimize::Optimizer&) const {
    return Observes::kNothing;
  }
  // Applies the gradient of the summed loss of rows that weigh `weight`, as one step of the optimizer.
  virtual void Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
                     optimize::Optimizer& optimizer, Workspace& workspace) const;
  // A gradient with a place for every block that the portion holds.
  virtual Result<optimize::Gradient> NewGradient(optimize::Memory& memory, const optimize::Portion& portion = {}) const;
  // Can the gradient of this block be had as factors (BlockGradient::WantFactors)?
  virtual bool GivesFactors(std::size_t block) const {
    (void)block;
    return false;
  }
  // Does it learn from labels?
  virtual bool Supervised() const { return true; }
  // Is it best taught labels that are centred and scaled (data::Target)? Numbers are, unless a kind has means of its
  // own.
  virtual bool WantsScaledLabels() const { return Supervised() && loss_.task() == data::Labels::Kind::kReal; }

 protected:
  // Gives blocks that do not grow their starting values; called on new parameters, which are zero.
  virtual void Start(optimize::Parameters&) const {}
  // Starting values of rows [first, last) of a block of factors, as those from `as` on: the same for a row whenever it
  // is made.
  void StartFactors(optimize::Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                    std::uint64_t as) const;

  const ModelConfig config_;
  const Loss& loss_;
};

// The largest index of a sparse batch plus one; kUnseen does not count.
std::uint64_t IndexEnd(const data::Batch& batch);
// Adds every index of a sparse batch; kUnseen does not count.
void TouchIndices(const data::Batch& batch, optimize::RowSet& touched);

}  // namespace freshet::model
