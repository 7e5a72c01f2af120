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
//
// Where losses are survived, letters also say what has been heard of which share of the rows (GossipWork), and an answer is
// kept until who asked says that it has come.

#include "strategy/gossip.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hollow.h"
#include "base/option.h"
#include "strategy/gather_numbers.h"
#include "strategy/neighbours.h"

namespace freshet::strategy {
namespace {

enum class Kind : std::uint8_t { kOffer = 16, kAnswer, kShare, kVisitor, kTaken };

Error Damaged() { return {Code::kCorrupt, "what another worker writes is damaged, or of another model"}; }

}  // namespace

// What a letter begins with. Then come how many floats each block has, what was heard, and the floats.
struct Gossip::Head {
  Kind kind = Kind::kOffer;
  std::uint8_t unused[7] = {};
  double weight = 1;          // of a share
  std::uint64_t updates = 0;  // that a visitor has seen
  std::uint64_t exchange =
      0;                     // the how many-th of who asked; of an answer that was taken, too, which has nothing behind
  std::uint64_t blocks = 0;  // of parameters
  std::uint64_t heard = 0;   // shares
};

Result<std::unique_ptr<GossipWork>> GossipWork::Make(const StrategyOptions& options, const Learner& learner, int number,
                                                     int workers, bool keeps, std::unique_ptr<GossipWork> before) {
  const bool same = before != nullptr && before->workers == workers;
  Learner unseen = learner;
  unseen.trace = nullptr;  // what it does between two letters is one span
  const std::size_t batch = std::max<std::size_t>(options.batch / static_cast<std::size_t>(workers), 1);
  Local local = same ? std::move(before->local)
                     : Local(unseen, {.batch = batch, .observes = !options.whole, .threads = options.threads},
                             TRY(learner.model.NewGradient(learner.memory)));
  const base::Random random =
      before != nullptr ? before->random : base::Random(options.seed, Str("gossip of ", number));
  std::unique_ptr<GossipWork> work(new GossipWork{{}, number, workers, keeps, std::move(local), random});
  for (int worker = 0; worker < workers; ++worker) work->numbers.push_back(worker);
  work->shares = {number};
  work->heard.assign(static_cast<std::size_t>(workers), 0);
  return work;
}

void GossipWork::MeetAt(std::uint64_t clock, std::uint64_t updates_of_piece) {
  base = clock;
  pieces = 0;
  updates = clock * updates_of_piece;
  HearAll();
}

void GossipWork::HearAll() {
  std::fill(heard.begin(), heard.end(), clock());
  ForgetHeard();
}

void GossipWork::ForgetHeard() { ForgetBefore(*std::min_element(heard.begin(), heard.end())); }

Gossip::Gossip(const StrategyOptions& options, const World& world, GossipWork& work, std::vector<int> neighbours)
    : OwnPace(options, world),
      work_(work),
      neighbours_(std::move(neighbours)),
      averager_(world, 0, options.average_state),
      sent_(static_cast<std::size_t>(size()), 0),
      came_(sent_),
      written_(sent_) {}

std::size_t Gossip::piece() const {
  const std::size_t rows = options_.batch * options_.every;
  return options_.whole ? rows : std::max<std::size_t>(rows / static_cast<std::size_t>(work_.workers), 1);
}

data::Batch Gossip::ShareOf(int worker, const data::Batch& piece) const {
  return piece.Slice(fabric::ChunkBegin(piece.rows, worker, work_.workers),
                     fabric::ChunkBegin(piece.rows, worker + 1, work_.workers));
}

data::Batch Gossip::Share(const data::Batch& piece) const {
  return options_.whole ? ShareOf(work_.number, piece) : piece;
}

Result<void> Gossip::Settle() {
  TRY(CatchUp());
  if (size() > 1) {
    if (!TRY(AnybodyIsApart())) return {};
    const auto begun = world_.clock.Now();
    letters().Open();
    while (came_ != written_ || work_.asked || !work_.answers.empty()) TRY(AwaitLetter());
    TRY(Barrier());
    TRY(letters().CloseTogether());
    TRY(TakeMean());
    times_.exchange += base::Seconds(world_.clock.Now() - begun);
  }
  work_.begun = false;
  work_.HearAll();
  return {};
}

Result<void> Gossip::GoOn() {
  TRY(Open());
  for (const auto& [worker, answer] : work_.answers) {
    const auto rank = std::find(work_.numbers.begin(), work_.numbers.end(), worker) - work_.numbers.begin();
    TRY(letters().Send(static_cast<int>(rank), answer.letter));
  }
  return {};
}

Result<void> Gossip::Begin() {
  work_.begun = true;
  return {};
}

std::uint64_t Gossip::furthest() const {
  std::uint64_t furthest = clock();
  for (const int share : work_.shares) furthest = std::max(furthest, work_.heard[static_cast<std::size_t>(share)]);
  return furthest;
}

// Nothing of it waits for others, or fails because of them, before the piece is passed.
Result<double> Gossip::Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  TRY(At("step.begin"));
  const auto begun = world_.clock.Now();
  TRY(CatchUp());
  TRY(At("step.agreed"));
  if (options_.whole && options_.batch > static_cast<std::uint64_t>(work_.workers))
    world_.model.Observe(world_.parameters, piece, world_.optimizer);
  for (const int share : work_.shares)
    if (share != work_.number && work_.heard[static_cast<std::size_t>(share)] == clock()) TRY(LearnFor(share, piece));
  work_.own_loss = TRY(LearnFrom(work_.number, mine, scores));
  ++work_.pieces;
  if (work_.keeps) work_.Keep(piece);
  work_.ForgetHeard();
  TRY(At("step.computed"));
  const auto computed = world_.clock.Now();
  times_.compute += base::Seconds(computed - begun);
  visitors_ = 0;
  TRY(ReadLetters());
  TRY(Write());
  TRY(At("step.exchanged"));
  times_.exchange += base::Seconds(world_.clock.Now() - computed);
  return work_.own_loss;
}

Result<double> Gossip::LearnFrom(int share, const data::Batch& mine, std::span<float> scores) {
  const std::vector<float> before = work_.weight == 1 ? std::vector<float>() : Packed();
  const std::optional<double> loss = TRY(work_.local.Run(mine, scores));
  if (work_.weight != 1) ByWeight(before);
  work_.updates += options_.every;
  ++work_.heard[static_cast<std::size_t>(share)];
  return loss.value_or(0);  // nobody stops it half way
}

Result<void> Gossip::LearnFor(int worker, const data::Batch& piece) {
  const data::Batch share = ShareOf(worker, piece);
  const data::Batch shown = show_ && share.rows > 0 ? show_(share) : share;
  scores_of_others_.resize(shown.rows * world_.model.scores());
  TRY(LearnFrom(worker, shown, scores_of_others_));
  return {};
}

Result<void> Gossip::CatchUp() {
  for (const int share : work_.shares)
    for (std::uint64_t& done = work_.heard[static_cast<std::size_t>(share)]; done < clock();)
      TRY(LearnFor(share, work_.Again(done)));
  return {};
}

Result<void> Gossip::OnLetter(int from, std::span<const std::byte> bytes) {
  const Head head = TRY(HeadOf(bytes));
  const int worker = work_.numbers[static_cast<std::size_t>(from)];
  if (head.kind == Kind::kTaken) {
    const auto answer = work_.answers.find(worker);
    if (answer != work_.answers.end() && answer->second.exchange == head.exchange) work_.answers.erase(answer);
    return {};
  }
  if (head.kind != Kind::kAnswer) ++came_[static_cast<std::size_t>(from)];
  const std::span<const float> theirs = TRY(FloatsOf(head, bytes));
  switch (head.kind) {
    case Kind::kOffer:
      return Answer(from, head, theirs);
    case Kind::kAnswer:
      work_.asked.reset();
      Merge(theirs, [](float& mine, float way, std::size_t) { mine += way; });
      return work_.keeps ? TellTaken(from, head.exchange) : Result<void>();
    case Kind::kShare: {
      const auto part = static_cast<float>(head.weight / (work_.weight + head.weight));
      work_.weight += head.weight;
      Merge(theirs, [part](float& mine, float other, std::size_t) { mine += part * (other - mine); });
      return {};
    }
    case Kind::kVisitor: {
      if (++visitors_ > 3) return {};
      const double both = static_cast<double>(work_.updates + head.updates);
      const auto part = static_cast<float>(both == 0 ? 0.5 : static_cast<double>(head.updates) / both);
      work_.updates = std::max(work_.updates, head.updates);
      Merge(theirs, [part](float& mine, float other, std::size_t) { mine += part * (other - mine); });
      return {};
    }
    case Kind::kTaken:
      break;
  }
  return Error{Code::kCorrupt, Str("rank ", from, " writes what this program does not understand")};
}

Result<void> Gossip::TellTaken(int to, std::uint64_t exchange) {
  const Head head{.kind = Kind::kTaken, .exchange = exchange};
  const auto bytes = std::as_bytes(std::span(&head, 1));
  return letters().Send(to, {bytes.begin(), bytes.end()});
}

Result<void> Gossip::Answer(int from, const Head& head, std::span<const float> theirs) {
  std::vector<float> way(theirs.size());
  Merge(theirs, [&](float& mine, float other, std::size_t i) {
    const float half = (other - mine) / 2;
    mine += half;
    way[i] = -half;
  });
  auto letter = Letter({.kind = Kind::kAnswer, .exchange = head.exchange}, way);
  if (work_.keeps) work_.answers[work_.numbers[static_cast<std::size_t>(from)]] = {head.exchange, letter};
  return letters().Send(from, std::move(letter));
}

// What a worker learns counts once, in what all have together, whatever its weight is.
void Gossip::ByWeight(const std::vector<float>& before) {
  const auto more = static_cast<float>(1 / work_.weight - 1);
  std::size_t at = 0;
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    for (float& value : world_.parameters.Values(b)) value += more * (value - before[at++]);
}

// To one neighbour, unless the last one has not been taken in, or not been answered.
Result<void> Gossip::Write() {
  if (neighbours_.empty() || TRY(letters().OnTheirWay()) > 0) return {};
  const int to = neighbours_[work_.random.Below(neighbours_.size())];
  Head head{.updates = work_.updates};
  if (options_.gossip == "pairs") {
    if (work_.asked) return {};
    head.exchange = ++work_.exchanges;
    work_.asked = {.worker = work_.numbers[static_cast<std::size_t>(to)], .exchange = head.exchange};
  } else if (options_.gossip == "push-sum") {
    if (work_.weight < 1) return {};  // it has given away more than it was given, and waits
    work_.weight /= 2;
    head.kind = Kind::kShare;
    head.weight = work_.weight;
  } else {
    head.kind = Kind::kVisitor;
  }
  ++sent_[static_cast<std::size_t>(to)];
  return letters().Send(to, Letter(head, Packed()));
}

std::vector<float> Gossip::Packed() const {
  std::vector<float> packed;
  packed.reserve(world_.parameters.size());
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) {
    const auto values = world_.parameters.Values(b);
    packed.insert(packed.end(), values.begin(), values.end());
  }
  return packed;
}

// With these floats, of blocks as large as those of this worker, or of the letter that is answered.
std::vector<std::byte> Gossip::Letter(Head head, const std::vector<float>& floats) const {
  std::vector<std::uint64_t> numbers;
  if (head.kind == Kind::kAnswer)
    numbers = sizes_;
  else
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) numbers.push_back(world_.parameters.Values(b).size());
  head.blocks = numbers.size();
  if (work_.keeps) numbers.insert(numbers.end(), work_.heard.begin(), work_.heard.end());
  head.heard = numbers.size() - head.blocks;
  std::vector<std::byte> bytes(sizeof head + numbers.size() * sizeof numbers[0] + floats.size() * sizeof(float));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, numbers.data(), numbers.size() * sizeof numbers[0]);
  std::memcpy(bytes.data() + bytes.size() - floats.size() * sizeof(float), floats.data(),
              floats.size() * sizeof(float));
  return bytes;
}

Result<Gossip::Head> Gossip::HeadOf(std::span<const std::byte> bytes) const {
  Head head;
  if (bytes.size() < sizeof head) return Damaged();
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.kind == Kind::kTaken) return head;
  if (head.blocks != world_.parameters.blocks() || !(head.weight > 0)) return Damaged();
  if (head.heard != (work_.keeps ? work_.heard.size() : 0)) return Damaged();
  return head;
}

// Others may have met features that this worker has not: gives them their place.
Result<std::span<const float>> Gossip::FloatsOf(const Head& head, std::span<const std::byte> bytes) {
  optimize::Parameters& parameters = world_.parameters;
  sizes_.resize(head.blocks);
  theirs_heard_.resize(head.heard);
  const std::size_t behind = sizeof head + head.blocks * sizeof sizes_[0];
  const std::size_t before = behind + head.heard * sizeof theirs_heard_[0];
  if (bytes.size() < before) return Damaged();
  std::memcpy(sizes_.data(), bytes.data() + sizeof head, behind - sizeof head);
  if (head.heard > 0) std::memcpy(theirs_heard_.data(), bytes.data() + behind, before - behind);
  std::uint64_t floats = 0;
  for (std::size_t b = 0; b < sizes_.size(); ++b) {
    if (sizes_[b] % parameters.width(b) != 0 || sizes_[b] > bytes.size() / sizeof(float)) return Damaged();
    floats += sizes_[b];
  }
  if (bytes.size() - before != floats * sizeof(float)) return Damaged();
  for (std::size_t b = 0; b < sizes_.size(); ++b)
    if (sizes_[b] / parameters.width(b) > parameters.rows(b)) TRY(parameters.Grow(b, sizes_[b] / parameters.width(b)));
  TRY(world_.optimizer.Follow(parameters));
  return std::span(reinterpret_cast<const float*>(bytes.data() + before), floats);
}

// Of rows that the other has not met, this worker's stay as they are.
template <class Each>
void Gossip::Merge(std::span<const float> theirs, const Each& each) {
  std::size_t at = 0;
  for (std::size_t b = 0; b < sizes_.size(); ++b) {
    const std::span<float> mine = world_.parameters.Values(b);
    for (std::size_t i = 0; i < sizes_[b]; ++i, ++at) each(mine[i], theirs[at], at);
  }
  for (std::size_t share = 0; share < theirs_heard_.size(); ++share)
    work_.heard[share] = std::max(work_.heard[share], theirs_heard_[share]);
  work_.ForgetHeard();
}

// All tell how many letters they have written to whom, and whether they have learned anything since they last met. Answers
// are not counted: who waits for one knows that.
Result<bool> Gossip::AnybodyIsApart() {
  std::vector<std::uint64_t> mine = sent_;
  mine.push_back(work_.begun ? 1 : 0);
  mine.push_back(work_.keeps ? clock() : 0);
  const auto all = TRY(GatherNumbers(world_.collectives, mine));
  bool anybody = false;
  for (std::size_t from = 0; from < all.size(); ++from) {
    if (all[from].size() != mine.size()) return Damaged();
    CHECK(all[from].back() == mine.back());  // all stand at the same row
    written_[from] = all[from][static_cast<std::size_t>(rank())];
    anybody = anybody || all[from][all.size()] != 0;
  }
  return anybody;
}

Result<void> Gossip::TakeMean() {
  const std::vector<float> own = Packed();
  const auto scale = [&](double factor) {
    for (std::size_t b = 0; b < world_.parameters.blocks() && factor != 1; ++b)
      for (float& value : world_.parameters.Values(b)) value *= static_cast<float>(factor);
  };
  scale(work_.weight);
  if (const auto taken = averager_.Run(); !taken.ok()) {
    scale(1 / work_.weight);  // others may be left to go on with
    return taken.error();
  }
  work_.weight = 1;
  double apart = 0, length = 0;
  const std::vector<float> mean = Packed();
  for (std::size_t i = 0; i < mean.size(); ++i) {
    apart += std::pow(i < own.size() ? own[i] - mean[i] : mean[i], 2);
    length += std::pow(mean[i], 2);
  }
  times_.apart = length > 0 ? std::sqrt(apart / length) : 0;
  return {};
}

Result<void> Gossip::Check(const StrategyOptions& options, const Learner& learner) {
  const auto not_with = [](const std::string& what) {
    return Error{Code::kInvalid, Str(Option("strategy"), " gossip does not go with ", what)};
  };
  if (options.codec != "none") return not_with(Str(Option("codec"), ", which is for gradients: it sends parameters"));
  if (!learner.model.Supervised()) return not_with("clusters, of which all must begin with the same");
  if (options.gossip != "pairs" && options.gossip != "push-sum" && options.gossip != "walk")
    return Error{Code::kInvalid,
                 Str(Option("gossip"), ": found ", Quoted(options.gossip), ", expected pairs, push-sum or walk")};
  if (learner.parameters.blocks() > 0 && base::IsHollow(learner.parameters.Row(0, 0)))
    return not_with("a simulation of times alone");
  return {};
}

Result<std::unique_ptr<Gossip>> Gossip::Make(const StrategyOptions& options, const World& world) {
  TRY(Check(options, world.learner()));
  const fabric::Fabric& fabric = world.collectives.fabric();
  auto neighbours = TRY(Neighbours(options.neighbours, fabric.size()));
  auto work = TRY(GossipWork::Make(options, world.learner(), fabric.rank(), fabric.size(), false, nullptr));
  auto gossip =
      std::make_unique<Gossip>(options, world, *work, std::move(neighbours[static_cast<std::size_t>(fabric.rank())]));
  gossip->own_work_ = std::move(work);
  return gossip;
}

Result<StrategyPtr> MakeGossip(const StrategyOptions& options, const Strategy::World& world) {
  return StrategyPtr(TRY(Gossip::Make(options, world)));
}

}  // namespace freshet::strategy
