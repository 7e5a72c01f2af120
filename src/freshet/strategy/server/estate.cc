#include "strategy/server/estate.h"

#include <algorithm>
#include <utility>

namespace freshet::strategy::server {
namespace {

// Of rows that are asked for one by one: few, since those that most ask for often stand beside each other.
constexpr std::uint64_t kRangeRows = 64;

std::vector<optimize::Block> Blocks(const optimize::Parameters& parameters) {
  std::vector<optimize::Block> blocks;
  for (std::size_t b = 0; b < parameters.blocks(); ++b) blocks.push_back(parameters.block(b));
  return blocks;
}

bool Has(const std::vector<int>& ranks, int rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); }

}  // namespace

Estate::Roles Estate::Roles::Of(int servers, int size) {
  Roles roles;
  for (int rank = 0; rank < size; ++rank) {
    if (rank < size - servers) roles.working.push_back(rank);
    if (rank >= size - servers || servers == 0) roles.serving.push_back(rank);
  }
  return roles;
}

std::vector<int> Estate::Roles::Chain(std::vector<int> holders, int replicas) const {
  const int first = holders.front();
  for (const std::vector<int>* ranks : {&serving, &working}) {
    const auto next = static_cast<std::size_t>(std::upper_bound(ranks->begin(), ranks->end(), first) - ranks->begin());
    for (std::size_t i = 0; i < ranks->size(); ++i)
      if (const int rank = (*ranks)[(next + i) % ranks->size()]; !Has(holders, rank)) holders.push_back(rank);
  }
  holders.resize(std::min(static_cast<std::size_t>(replicas), holders.size()));
  return holders;
}

Estate::Estate(const StrategyOptions& options, const Learner& learner, const Synchrony& synchrony,
               optimize::Gradient own_gradient, fabric::Codec* form, const Roles& roles, int own_rank, bool keeps_all,
               std::unique_ptr<NearRows> near_rows)
    : keeps(keeps_all),
      rank(own_rank),
      workers(static_cast<int>(roles.working.size())),
      shards(static_cast<int>(roles.serving.size())),
      number(static_cast<int>(std::find(roles.working.begin(), roles.working.end(), own_rank) - roles.working.begin())),
      worker_at(roles.working),
      near(std::move(near_rows)),
      codec(form),
      gradient(std::move(own_gradient)),
      ahead(RunsAhead(synchrony, MayRunAhead(learner))),
      placement(Blocks(learner.parameters), shards,
                {.range_rows = gradient.buffer == nullptr ? kRangeRows : 0, .alike = !learner.model.Supervised()}),
      copy({synchrony, options.fetch_every, options.push_every, codec, options.warm_start, ahead, near.get()},
           learner.model, near == nullptr ? learner.parameters : near->parameters(),
           learner.optimizer.options().schedule.rate, placement, gradient),
      may_run_ahead_(MayRunAhead(learner)),
      complete_(static_cast<std::size_t>(shards), 0) {
  for (int shard = 0; shard < shards; ++shard) {
    chains.push_back(roles.Chain({roles.serving[static_cast<std::size_t>(shard)]}, keeps ? options.replicas : 1));
    if (Has(chains.back(), rank)) holdings[shard] = {};
  }
  if (number < workers) shares[number].kept.resize(static_cast<std::size_t>(shards));
}

bool Estate::MayRunAhead(const Learner& learner) const {
  return learner.model.Supervised() && !keeps && near == nullptr;
}

// Gradients of all parameters that are a step older cost more, within a bound, than the wait that is saved.
bool Estate::RunsAhead(const Synchrony& synchrony, bool may) const {
  const bool stale = synchrony.kind == Synchrony::Kind::kStale && gradient.buffer == nullptr;
  return may && (stale || synchrony.significance > 0);
}

void Estate::SetSynchrony(const Synchrony& synchrony) {
  ahead = RunsAhead(synchrony, may_run_ahead_);
  copy.SetSynchrony(synchrony, ahead);
  for (auto& [shard, holding] : holdings)
    if (holding.shard != nullptr) holding.shard->SetSynchrony(synchrony);
}

void Estate::MeetAt(std::uint64_t clock) {
  base = clock;
  pieces = 0;
  for (auto& [worker, share] : shares) share.clock = clock;
  copy.Settled(clock);
}

Result<void> Estate::MakeShards(const StrategyOptions& options, const Learner& learner, const Synchrony& synchrony) {
  Heat::Options heat;
  for (std::size_t b = 0; b < learner.parameters.blocks(); ++b) heat.range_rows.push_back(placement.RangeRows(b));
  for (auto& [shard, holding] : holdings) {
    if (holding.shard != nullptr) continue;
    holding.shard = TRY(Shard::Make({.synchrony = synchrony,
                                     .workers = workers,
                                     .number = static_cast<std::uint16_t>(shard),
                                     .dealt = options.backup > 0 && workers > 1,
                                     .slower_when_stale = options.slower_when_stale,
                                     .codec = codec,
                                     .heat = heat,
                                     .large = near == nullptr ? nullptr : &placement},
                                    learner.model, learner.parameters, learner.optimizer, learner.memory));
    holding.shard->Return(base, std::vector<bool>(static_cast<std::size_t>(workers), false));
    holding.shard->SetAnswers(chains[static_cast<std::size_t>(shard)].front() == rank);
  }
  return {};
}

bool Estate::HasShards() const {
  return std::any_of(holdings.begin(), holdings.end(), [](const auto& each) { return each.second.shard != nullptr; });
}

void Estate::Forget(std::size_t shard, std::uint64_t complete) {
  complete_[shard] = std::max(complete_[shard], complete);
  ForgetBefore(*std::min_element(complete_.begin(), complete_.end()));
}

}  // namespace freshet::strategy::server
