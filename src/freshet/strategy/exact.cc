// Exact all-reduce: the rows of an update are cut into blocks, each block gives a gradient of its own, and these are added
// up by a tree over the blocks. So the sum's bits do not depend on who is there, and any number of workers makes the same
// model, bit for bit. The price: nothing travels beside the computation, and a worker whose blocks are not a whole part of
// the tree sends more than one sum.

#include <bit>

#include "base/option.h"
#include "fabric/collectives/in_order.h"
#include "strategy/synchronous.h"
#include "strategy/tree_sum.h"

namespace freshet::strategy {
namespace {

class Exact final : public Synchronous {
 public:
  Exact(const StrategyOptions& options, const World& world, optimize::Gradient gradient)
      : Synchronous(options, world), gradient_(std::move(gradient)) {
    WillObserve();
    workspace_.threads = options.threads;
    for (const optimize::BlockGradient& block : gradient_.blocks) {
      widths_.push_back(block.memory().empty() ? block.width() : 0);
      dense_ += block.memory().size();
    }
  }

  bool ChangesEarly() const override {
    return world_.model.observes(world_.parameters, world_.optimizer) != model::Model::Observes::kNothing;
  }
  bool interchangeable() const override { return true; }
  data::Batch Share(const data::Batch& piece) const override {
    return piece.Slice(RowOf(piece, FirstBlock(rank())), RowOf(piece, FirstBlock(rank() + 1)));
  }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double, std::span<float> scores) override {
    const model::Model& model = world_.model;
    TRY(Observe(piece));
    const auto begun = world_.clock.Now();
    workspace_.step = world_.optimizer.step();
    TreeSum sum(widths_);
    double loss = 0, weight = 0;
    const std::size_t first = FirstBlock(rank()), last = FirstBlock(rank() + 1), offset = RowOf(piece, first);
    for (std::size_t block = first; block < last; ++block) {
      const std::size_t from = RowOf(piece, block) - offset, to = RowOf(piece, block + 1) - offset;
      gradient_.Clear();
      if (to > from) {
        TRY(model.Reserve(to - from, workspace_));
        loss += model.LossAndGradient(world_.parameters, mine.Slice(from, to), workspace_, gradient_,
                                      scores.subspan(from * model.scores(), (to - from) * model.scores()));
      }
      sum.Add(PartialSum::Of(gradient_, block));
    }
    for (std::size_t r = 0; r < piece.rows; ++r) weight += piece.weight(r);
    const auto computed = world_.clock.Now();
    TRY(At("step.computed"));
    TRY(Exchange(sum));
    TRY(At("step.exchanged"));
    const auto exchanged = world_.clock.Now();
    model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
    Count(&StepTimes::compute, "compute", begun, computed);
    CountExchange(computed, exchanged);
    Count(&StepTimes::apply, "apply", exchanged, world_.clock.Now());
    return loss;
  }

 private:
  std::size_t FirstBlock(int of) const {
    return fabric::ChunkBegin(static_cast<std::size_t>(options_.exact_blocks), of, size());
  }
  std::size_t RowOf(const data::Batch& piece, std::size_t block) const {
    return fabric::ChunkBegin(piece.rows, static_cast<int>(block), options_.exact_blocks);
  }

  // Each worker adds up one chunk of what is dense, and all that was touched; the chunks then go to all.
  Result<void> Exchange(const TreeSum& mine) {
    const int n = size();
    const auto chunk = [&](int of) { return fabric::ChunkBegin(dense_, of, n); };
    std::vector<std::string> messages(static_cast<std::size_t>(n));
    const auto message = [&](int to) -> const std::string& {
      std::string& bytes = messages[static_cast<std::size_t>(to)];
      for (const PartialSum& part : mine.parts()) part.Encode(bytes, chunk(to), chunk(to + 1));
      return bytes;
    };
    TreeSum sum(widths_);
    const auto add = [&](std::string_view bytes) -> Result<void> {
      while (!bytes.empty()) sum.Add(TRY(PartialSum::Decode(bytes, chunk(rank() + 1) - chunk(rank()), widths_)));
      return {};
    };
    TRY(fabric::ExchangeInOrder(
        world_.collectives.fabric(), world_.collectives.NextTag(), "making an exact sum",
        [&](int to) { return std::as_bytes(std::span(message(to))); },
        [&](int from, std::span<const std::byte> bytes) -> Result<void> {
          return add(from == rank() ? std::string_view(message(from))
                                    : std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        }));
    if (sum.parts().size() != 1 || sum.parts()[0].count != static_cast<std::size_t>(options_.exact_blocks))
      return Error{Code::kCorrupt, "an exact sum lacks blocks of rows; do all members run the same training?"};
    PartialSum all = sum.parts()[0];
    std::vector<float> values(dense_);
    std::copy(all.dense.begin(), all.dense.end(), values.begin() + static_cast<std::ptrdiff_t>(chunk(rank())));
    if (dense_ > 0) TRY(world_.collectives.AllGather(values));
    all.dense = std::move(values);
    all.Give(gradient_);
    const auto workers = static_cast<std::uint64_t>(n);
    times_.bytes_dense += 2 * (workers - 1) * dense_ * sizeof(float) / workers;
    return {};
  }

  optimize::Gradient gradient_;
  model::Workspace workspace_;
  std::vector<std::size_t> widths_;  // of touched rows, by block of parameters; 0: it is dense
  std::size_t dense_ = 0;            // floats
};

}  // namespace

Result<SynchronousPtr> MakeExact(const StrategyOptions& options, const Strategy::World& world) {
  const auto not_with = [](std::string_view what) {
    return Error{Code::kInvalid, Str(Option("exact"), " does not go with ", what)};
  };
  if (options.codec != "none") return not_with(Str(Option("codec"), " ", options.codec));
  if (options.factors) return not_with(Option("layer-factors"));
  if (options.accumulate > 1) return not_with(Str(Option("accumulate"), ": it computes in blocks already"));
  if (!options.whole) return not_with(Str(Option("split"), " bytes or own: give ", Option("split"), " rows"));
  if (world.model.traits().sums_over_workers && options.batch_norm != "local")
    return not_with(Str("batch norm over all rows of an update: give ", Option("batch-norm"), " local"));
  const auto blocks = static_cast<unsigned>(options.exact_blocks);
  if (options.exact_blocks < world.collectives.fabric().size() || !std::has_single_bit(blocks))
    return Error{Code::kInvalid, Str(Option("exact-blocks"), ": found ", options.exact_blocks,
                                     ", expected a power of two, at least as many as workers (",
                                     world.collectives.fabric().size(), ")")};
  return SynchronousPtr(std::make_unique<Exact>(options, world, TRY(world.model.NewGradient(world.memory))));
}

}  // namespace freshet::strategy
