#include "strategy/elastic_gossip.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/option.h"

namespace freshet::strategy {

// Numbers, so that it can travel as they are.
struct ElasticGossip::Beside {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t vertex = kNone;
  std::uint64_t number = kNone;  // as a worker
  double weight = 0;
  std::uint64_t asked = kNone, exchange = 0;                      // whom, and what still waits for an answer
  std::vector<std::pair<std::uint64_t, std::uint64_t>> answered;  // workers, exchanges: answers that may not have come
  std::vector<std::uint64_t> heard;

  std::vector<std::uint64_t> Encode() const {
    std::vector<std::uint64_t> out = {vertex, number,   std::bit_cast<std::uint64_t>(weight),
                                      asked,  exchange, answered.size()};
    for (const auto& [worker, which] : answered) out.insert(out.end(), {worker, which});
    out.insert(out.end(), heard.begin(), heard.end());
    return out;
  }
  static Result<Beside> Decode(std::span<const std::uint64_t> in) {
    constexpr std::size_t kHead = 6;
    if (in.size() < kHead || in[kHead - 1] > (in.size() - kHead) / 2) return Damaged();
    Beside beside{.vertex = in[0],
                  .number = in[1],
                  .weight = std::bit_cast<double>(in[2]),
                  .asked = in[3],
                  .exchange = in[4],
                  .answered = {},
                  .heard = {}};
    const std::size_t end = kHead + 2 * in[kHead - 1];
    for (std::size_t i = kHead; i < end; i += 2) beside.answered.emplace_back(in[i], in[i + 1]);
    beside.heard.assign(in.begin() + static_cast<std::ptrdiff_t>(end), in.end());
    if ((beside.vertex != kNone && beside.vertex >= kMostVertices) || !(beside.weight >= 0)) return Damaged();
    return beside;
  }
  static Result<std::vector<Beside>> DecodeAll(const std::vector<Report>& reports) {
    std::vector<Beside> all;
    for (const Report& each : reports) all.push_back(TRY(Decode(each.own)));
    return all;
  }
};

Result<std::unique_ptr<ElasticGossip>> ElasticGossip::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                           const Learner& learner) {
  const auto refuse = [](const std::string& what) {
    return Error{Code::kInvalid, Str(Option("strategy"), " gossip with ", Option("elastic"), what)};
  };
  if (!options.strategy.whole)
    return refuse(Str(" is for workers that all have all rows (", Option("split"), " rows)"));
  if (options.strategy.lossy)
    return refuse(Str(" does again only what nobody had heard of: leave out ", Option("lossy")));
  TRY(Gossip::Check(options.strategy, learner));
  const bool comes = options.comes;
  std::unique_ptr<ElasticGossip> made(new ElasticGossip(std::move(options), group, learner));
  if (comes) return made;
  TRY(group.Begin());
  made->collectives_ = std::make_unique<fabric::Collectives>(group.fabric(), made->options_.how);
  made->Met();
  std::vector<int> vertices;
  for (int rank = 0; rank < made->size(); ++rank) vertices.push_back(rank);
  TRY(made->MeetNeighbours(vertices));
  TRY(made->NewWork(made->rank(), made->size(), 0));
  TRY(made->MakeInner());
  return made;
}

// `vertices`: by rank.
Result<void> ElasticGossip::MeetNeighbours(const std::vector<int>& vertices) {
  vertex_ = static_cast<std::uint64_t>(vertices[static_cast<std::size_t>(rank())]);
  neighbours_ = TRY(NeighboursOf(options_.strategy.neighbours, vertices));
  return {};
}

Result<void> ElasticGossip::NewWork(int rank, int size, std::uint64_t clock) {
  work_ = TRY(GossipWork::Make(options_.strategy, learner_, rank, size, true, std::move(work_)));
  work_->MeetAt(clock, options_.strategy.every);
  return {};
}

Result<std::unique_ptr<OwnPace>> ElasticGossip::NewInner() {
  return std::unique_ptr<OwnPace>(std::make_unique<Gossip>(options_.strategy, World(), *work_,
                                                           neighbours_.lists[static_cast<std::size_t>(rank())]));
}

void ElasticGossip::Tell(Report& mine) const {
  Beside beside;
  if (work_ != nullptr) {
    beside.vertex = vertex_;
    beside.number = static_cast<std::uint64_t>(work_->number);
    beside.weight = work_->weight;
    if (work_->asked) beside.asked = static_cast<std::uint64_t>(work_->asked->worker);
    if (work_->asked) beside.exchange = work_->asked->exchange;
    for (const auto& [worker, answer] : work_->answers)
      beside.answered.emplace_back(static_cast<std::uint64_t>(worker), answer.exchange);
    beside.heard = work_->heard;
    for (const int share : work_->shares) mine.shares.push_back(static_cast<std::uint64_t>(share));
  }
  mine.own = beside.Encode();
}

// Who has just come is the first vertex that nobody is.
Result<void> ElasticGossip::Hear(const std::vector<Report>& reports) {
  const auto besides = TRY(Beside::DecodeAll(reports));
  std::vector<int> vertices;
  for (const Beside& each : besides)
    vertices.push_back(each.vertex == Beside::kNone ? -1 : static_cast<int>(each.vertex));
  for (int& vertex : vertices)
    for (int free = 0; vertex < 0; ++free)
      if (std::find(vertices.begin(), vertices.end(), free) == vertices.end()) vertex = free;
  return MeetNeighbours(vertices);
}

Result<void> ElasticGossip::TakeOver(const std::vector<Report>& reports) {
  const auto besides = TRY(Beside::DecodeAll(reports));
  double weights = 0;
  work_->numbers.clear();
  for (const Beside& each : besides) {
    if (!each.heard.empty() && each.heard.size() != work_->heard.size()) return Damaged();
    weights += each.weight;
    work_->numbers.push_back(static_cast<int>(each.number));
  }
  work_->weight *= static_cast<double>(besides.size()) / weights;
  ShareOut(reports, besides);
  const auto of = [&](int worker) {
    return std::find_if(besides.begin(), besides.end(),
                        [&](const Beside& each) { return each.number == static_cast<std::uint64_t>(worker); });
  };
  const auto own = static_cast<std::uint64_t>(work_->number);
  if (work_->asked) {
    const std::pair wanted{own, work_->asked->exchange};
    const auto other = of(work_->asked->worker);
    const bool comes = other != besides.end() &&
                       std::find(other->answered.begin(), other->answered.end(), wanted) != other->answered.end();
    if (!comes) work_->asked.reset();
  }
  std::erase_if(work_->answers, [&](const auto& each) {
    const auto other = of(each.first);
    return other == besides.end() || other->asked != own || other->exchange != each.second.exchange;
  });
  return {};
}

// The share of who is lost goes on with who has heard most of it: it has everything of it that anybody has.
void ElasticGossip::ShareOut(const std::vector<Report>& reports, const std::vector<Beside>& besides) {
  std::vector<std::size_t> has;
  for (const Report& each : reports) has.push_back(each.shares.size());
  for (int share = 0; share < work_->workers; ++share) {
    if (std::any_of(reports.begin(), reports.end(), [&](const Report& each) { return each.Has(share); })) continue;
    share_out_wanted_ = true;
    const auto heard = [&](std::size_t rank) {  // -1: it has just come, and has nothing
      const auto& all = besides[rank].heard;
      return all.empty() ? -1 : static_cast<std::int64_t>(all[static_cast<std::size_t>(share)]);
    };
    std::size_t next = 0;
    for (std::size_t rank = 1; rank < besides.size(); ++rank)
      if (heard(rank) > heard(next) || (heard(rank) == heard(next) && has[rank] < has[next])) next = rank;
    ++has[next];
    if (static_cast<int>(next) == rank()) work_->shares.insert(share);
  }
}

void ElasticGossip::Describe(GroupChange& change) {
  ElasticPace::Describe(change);
  for (const auto& [one, other] : neighbours_.added)
    change.note += Str(change.note.empty() ? "the graph of neighbours fell apart, now connected by ranks " : ", ", one,
                       "-", other);
}

}  // namespace freshet::strategy
