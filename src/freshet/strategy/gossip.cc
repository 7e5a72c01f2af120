// Gossip: no sum, and nobody whom all wait for. Every so many updates a worker writes to one of its neighbours, chosen at
// random, what it has, and goes on; what others have written is taken in between two steps. Three ways:
//
// - pairs:    two take the mean of theirs (Lian et al., "Asynchronous Decentralized Parallel Stochastic Gradient Descent").
//             Who is written to moves half the way to the other, and answers with that half way turned round, which the
//             other then goes: what both move by adds up to nothing, whatever they have learned meanwhile.
// - push-sum: who writes gives away half of its weight; who is written to takes the mean by weights, and what a worker
//             learns is divided by its own (Assran et al., "Stochastic Gradient Push for Distributed Deep Learning").
//             Nobody answers.
// - walk:     models walk from worker to worker, and are merged with whom they visit by the number of updates they have
//             seen (Ormándi, Hegedűs and Jelasity, "Gossip learning with linear models on fully distributed data").
//             Of more visitors than three the first are let go.
//
// At the end of an epoch, and for a checkpoint, all take the mean of all, and it is counted how far they were apart.

#include <cmath>
#include <cstring>

#include "base/hollow.h"
#include "base/option.h"
#include "base/random.h"
#include "strategy/averager.h"
#include "strategy/local.h"
#include "strategy/neighbours.h"
#include "strategy/own_pace.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy {
namespace {

// What a letter begins with.
enum class Kind : std::uint8_t { kOffer = 16, kAnswer, kShare, kVisitor };
struct Head {
  Kind kind = Kind::kOffer;
  std::uint8_t unused[7] = {};
  double weight = 1;          // of a share
  std::uint64_t updates = 0;  // that a visitor has seen
  std::uint64_t blocks = 0;   // of parameters; then come how many floats each has, then the floats
};

class Gossip final : public OwnPace {
 public:
  Gossip(const StrategyOptions& options, const World& world, Local local, std::vector<int> neighbours)
      : OwnPace(options, world),
        local_(std::move(local)),
        neighbours_(std::move(neighbours)),
        averager_(world, 0, options.average_state),
        random_(options.seed, Str("gossip of ", rank())),
        sent_(static_cast<std::size_t>(size()), 0),
        came_(sent_),
        written_(sent_) {}

  std::size_t piece() const override {
    const std::size_t rows = options_.batch * options_.every;
    return options_.whole ? rows : std::max<std::size_t>(rows / static_cast<std::size_t>(size()), 1);
  }

  Result<void> Settle() override {
    if (size() == 1 || !TRY(AnybodyIsApart())) return {};
    const auto begun = world_.clock.Now();
    letters().Open();
    while (came_ != written_ || answer_due_) TRY(AwaitLetter());
    TRY(Barrier());
    TRY(letters().CloseTogether());
    TRY(TakeMean());
    times_.exchange += base::Seconds(world_.clock.Now() - begun);
    return {};
  }

 protected:
  Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) override {
    const auto begun = world_.clock.Now();
    if (options_.whole && options_.batch > static_cast<std::uint64_t>(size()))
      world_.model.Observe(world_.parameters, piece, world_.optimizer);
    const std::vector<float> before = weight_ == 1 ? std::vector<float>() : Packed();
    const std::optional<double> loss = TRY(local_.Run(mine, scores));
    if (weight_ != 1) ByWeight(before);
    updates_ += options_.every;
    const auto computed = world_.clock.Now();
    times_.compute += base::Seconds(computed - begun);
    visitors_ = 0;
    TRY(ReadLetters());
    TRY(Write());
    times_.exchange += base::Seconds(world_.clock.Now() - computed);
    return loss.value_or(0);  // nobody stops it half way
  }

  Result<void> OnLetter(int from, std::span<const std::byte> bytes) override {
    const Head head = TRY(HeadOf(bytes));
    if (head.kind != Kind::kAnswer) ++came_[static_cast<std::size_t>(from)];
    const std::span<const float> theirs = TRY(FloatsOf(head, bytes));
    switch (head.kind) {
      case Kind::kOffer: {
        std::vector<float> way(theirs.size());
        Merge(theirs, [&](float& mine, float other, std::size_t i) {
          const float half = (other - mine) / 2;
          mine += half;
          way[i] = -half;
        });
        return letters().Send(from, Letter({.kind = Kind::kAnswer}, way));
      }
      case Kind::kAnswer:
        answer_due_ = false;
        Merge(theirs, [](float& mine, float way, std::size_t) { mine += way; });
        return {};
      case Kind::kShare: {
        const auto part = static_cast<float>(head.weight / (weight_ + head.weight));
        weight_ += head.weight;
        Merge(theirs, [part](float& mine, float other, std::size_t) { mine += part * (other - mine); });
        return {};
      }
      case Kind::kVisitor: {
        if (++visitors_ > 3) return {};
        const double both = static_cast<double>(updates_ + head.updates);
        const auto part = static_cast<float>(both == 0 ? 0.5 : static_cast<double>(head.updates) / both);
        updates_ = std::max(updates_, head.updates);
        Merge(theirs, [part](float& mine, float other, std::size_t) { mine += part * (other - mine); });
        return {};
      }
    }
    return Error{Code::kCorrupt, Str("rank ", from, " writes what this program does not understand")};
  }

 private:
  // What a worker learns counts once, in what all have together, whatever its weight is.
  void ByWeight(const std::vector<float>& before) {
    const auto more = static_cast<float>(1 / weight_ - 1);
    std::size_t at = 0;
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
      for (float& value : world_.parameters.Values(b)) value += more * (value - before[at++]);
  }

  // To one neighbour, unless the last one has not been taken in, or not been answered.
  Result<void> Write() {
    if (neighbours_.empty() || TRY(letters().OnTheirWay()) > 0) return {};
    const int to = neighbours_[random_.Below(neighbours_.size())];
    Head head{.updates = updates_};
    if (options_.gossip == "pairs") {
      if (answer_due_) return {};
      answer_due_ = true;
    } else if (options_.gossip == "push-sum") {
      if (weight_ < 1) return {};  // it has given away more than it was given, and waits
      weight_ /= 2;
      head.kind = Kind::kShare;
      head.weight = weight_;
    } else {
      head.kind = Kind::kVisitor;
    }
    ++sent_[static_cast<std::size_t>(to)];
    return letters().Send(to, Letter(head, Packed()));
  }

  std::vector<float> Packed() const {
    std::vector<float> packed;
    packed.reserve(world_.parameters.size());
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) {
      const auto values = world_.parameters.Values(b);
      packed.insert(packed.end(), values.begin(), values.end());
    }
    return packed;
  }

  // With these floats, of blocks as large as those of this worker, or of the letter that is answered.
  std::vector<std::byte> Letter(Head head, const std::vector<float>& floats) const {
    std::vector<std::uint64_t> sizes = answered_;
    if (head.kind != Kind::kAnswer) {
      sizes.clear();
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) sizes.push_back(world_.parameters.Values(b).size());
    }
    head.blocks = sizes.size();
    std::vector<std::byte> bytes(sizeof head + sizes.size() * sizeof sizes[0] + floats.size() * sizeof(float));
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, sizes.data(), sizes.size() * sizeof sizes[0]);
    std::memcpy(bytes.data() + bytes.size() - floats.size() * sizeof(float), floats.data(),
                floats.size() * sizeof(float));
    return bytes;
  }

  static Error Damaged() { return {Code::kCorrupt, "what another worker writes is damaged, or of another model"}; }

  Result<Head> HeadOf(std::span<const std::byte> bytes) const {
    Head head;
    if (bytes.size() < sizeof head) return Damaged();
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.blocks != world_.parameters.blocks() || !(head.weight > 0)) return Damaged();
    return head;
  }

  // Others may have met features that this worker has not: gives them their place.
  Result<std::span<const float>> FloatsOf(const Head& head, std::span<const std::byte> bytes) {
    optimize::Parameters& parameters = world_.parameters;
    answered_.resize(head.blocks);
    const std::size_t before = sizeof head + head.blocks * sizeof answered_[0];
    if (bytes.size() < before) return Damaged();
    std::memcpy(answered_.data(), bytes.data() + sizeof head, before - sizeof head);
    std::uint64_t floats = 0;
    for (std::size_t b = 0; b < answered_.size(); ++b) {
      if (answered_[b] % parameters.width(b) != 0 || answered_[b] > bytes.size() / sizeof(float)) return Damaged();
      floats += answered_[b];
    }
    if (bytes.size() - before != floats * sizeof(float)) return Damaged();
    for (std::size_t b = 0; b < answered_.size(); ++b)
      if (answered_[b] / parameters.width(b) > parameters.rows(b))
        TRY(parameters.Grow(b, answered_[b] / parameters.width(b)));
    TRY(world_.optimizer.Follow(parameters));
    return std::span(reinterpret_cast<const float*>(bytes.data() + before), floats);
  }

  // Of rows that the other has not met, this worker's stay as they are.
  template <class Each>
  void Merge(std::span<const float> theirs, const Each& each) {
    std::size_t at = 0;
    for (std::size_t b = 0; b < answered_.size(); ++b) {
      const std::span<float> mine = world_.parameters.Values(b);
      for (std::size_t i = 0; i < answered_[b]; ++i, ++at) each(mine[i], theirs[at], at);
    }
  }

  // All tell how many letters they have written to whom, and whether they have learned anything since they last met. Answers
  // are not counted: who waits for one knows that.
  Result<bool> AnybodyIsApart() {
    std::vector<std::uint64_t> told = sent_;
    told.push_back(letters().open() ? 1 : 0);
    const auto all = TRY(world_.collectives.Gather(std::as_bytes(std::span<const std::uint64_t>(told))));
    bool anybody = false;
    for (std::size_t from = 0; from < all.size(); ++from) {
      if (all[from].size() != told.size() * sizeof told[0]) return Damaged();
      std::memcpy(told.data(), all[from].data(), all[from].size());
      written_[from] = told[static_cast<std::size_t>(rank())];
      anybody = anybody || told.back() != 0;
    }
    return anybody;
  }

  Result<void> TakeMean() {
    const std::vector<float> own = Packed();
    if (weight_ != 1)
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
        for (float& value : world_.parameters.Values(b)) value *= static_cast<float>(weight_);
    weight_ = 1;
    TRY(averager_.Run());
    double apart = 0, length = 0;
    const std::vector<float> mean = Packed();
    for (std::size_t i = 0; i < mean.size(); ++i) {
      apart += std::pow(i < own.size() ? own[i] - mean[i] : mean[i], 2);
      length += std::pow(mean[i], 2);
    }
    times_.apart = length > 0 ? std::sqrt(apart / length) : 0;
    return {};
  }

  Local local_;
  const std::vector<int> neighbours_;
  Averager averager_;
  base::Random random_;
  double weight_ = 1;          // of all workers they add up to their number, with what is on its way
  std::uint64_t updates_ = 0;  // that what it has has seen
  int visitors_ = 0;           // since the last step
  bool answer_due_ = false;
  std::vector<std::uint64_t> sent_, came_, written_;  // letters, by rank
  std::vector<std::uint64_t> answered_;               // floats of each block, of the letter that is read
};

}  // namespace

Result<StrategyPtr> MakeGossip(const StrategyOptions& options, const Strategy::World& world) {
  const auto not_with = [](const std::string& what) {
    return Error{Code::kInvalid, Str(Option("strategy"), " gossip does not go with ", what)};
  };
  if (options.codec != "none") return not_with(Str(Option("codec"), ", which is for gradients: it sends parameters"));
  if (!world.model.Supervised()) return not_with("clusters, of which all must begin with the same");
  if (options.gossip != "pairs" && options.gossip != "push-sum" && options.gossip != "walk")
    return Error{Code::kInvalid,
                 Str(Option("gossip"), ": found ", Quoted(options.gossip), ", expected pairs, push-sum or walk")};
  if (world.parameters.blocks() > 0 && base::IsHollow(world.parameters.Row(0, 0)))
    return not_with("a simulation of times alone");
  const fabric::Fabric& fabric = world.collectives.fabric();
  auto neighbours = TRY(Neighbours(options.neighbours, fabric.size()));
  Learner unseen = world.learner();
  unseen.trace = nullptr;  // what it does between two letters is one span
  const std::size_t batch = std::max<std::size_t>(options.batch / static_cast<std::size_t>(fabric.size()), 1);
  Local local(unseen, {.batch = batch, .observes = !options.whole, .threads = options.threads},
              TRY(world.model.NewGradient(world.memory)));
  return StrategyPtr(std::make_unique<Gossip>(options, world, std::move(local),
                                              std::move(neighbours[static_cast<std::size_t>(fabric.rank())])));
}

}  // namespace freshet::strategy
