#include "strategy/server/elastic_server.h"

#include <algorithm>
#include <utility>

#include "base/option.h"
#include "strategy/gather_numbers.h"
#include "strategy/make_codec.h"

namespace freshet::strategy::server {

// Numbers, so that it can travel as they are.
struct ElasticServer::Beside {
  enum Role : std::uint64_t { kNone, kWorks, kServesAlone };
  Role role = kNone;
  std::uint64_t first_step = 0;
  Synchrony synchrony;                                          // since it last met the others
  std::vector<std::pair<std::uint64_t, std::uint64_t>> shards;  // that it has, and letters they have taken in

  std::vector<std::uint64_t> Encode() const {
    const auto now = synchrony.Numbers();
    std::vector<std::uint64_t> out = {role, first_step, now[0], now[1], now[2]};
    for (const auto& [shard, letters] : shards) {
      out.push_back(shard);
      out.push_back(letters);
    }
    return out;
  }
  static Result<Beside> Decode(std::span<const std::uint64_t> in) {
    constexpr std::size_t kHead = 5;
    if (in.size() < kHead || (in.size() - kHead) % 2 != 0 || in[0] > kServesAlone) return Damaged();
    Beside beside{.role = static_cast<Role>(in[0]),
                  .first_step = in[1],
                  .synchrony = TRY(Synchrony::Of(in.subspan(2, 3))),
                  .shards = {}};
    for (std::size_t i = kHead; i < in.size(); i += 2) beside.shards.emplace_back(in[i], in[i + 1]);
    return beside;
  }
  static Result<Besides> DecodeAll(const std::vector<Report>& reports) {
    Besides all;
    for (const Report& each : reports) all.push_back(TRY(Decode(each.own)));
    return all;
  }
};

Result<std::unique_ptr<ElasticServer>> ElasticServer::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                           const Learner& learner) {
  const Synchrony synchrony = TRY(Synchrony::Parse(options.strategy.synchrony));
  if (options.strategy.backup > 0)
    return Error{Code::kInvalid,
                 Str(Option("backup"), " ", options.strategy.backup, " does not go with ", Option("strategy"),
                     " server and ", Option("elastic"), "; use all-reduce, or leave it out")};
  if (!options.strategy.whole)
    return Error{Code::kInvalid, Str(Option("strategy"), " server with ", Option("elastic"),
                                     " is for workers that all "
                                     "have all rows (",
                                     Option("split"), " rows)")};
  if (options.strategy.large)
    return Error{Code::kInvalid, Str(Option("large-model"), " does not go with ", Option("elastic"),
                                     ": who comes is given the whole model; leave one out")};
  auto codec = options.strategy.codec == "none" ? nullptr : TRY(MakeCodec(options.strategy));
  if (codec != nullptr && codec->uses_residual())
    return Error{Code::kInvalid, Str(Option("codec"), " ", options.strategy.codec, " does not go with ",
                                     Option("strategy"), " server and ", Option("elastic"),
                                     ": what it holds back would be lost with a worker; use fp16 or bf16")};
  const bool comes = options.comes;
  std::unique_ptr<ElasticServer> made(new ElasticServer(std::move(options), synchrony, group, learner));
  made->codec_ = std::move(codec);
  Server::BeginPanel(learner.panel, made->options_.strategy, synchrony);
  if (comes) return made;
  TRY(group.Begin());
  made->collectives_ = std::make_unique<fabric::Collectives>(group.fabric(), made->options_.how);
  TRY(Server::Check(made->options_.strategy, made->World()));
  made->Met();
  made->first_step_ = learner.optimizer.step();
  for (int rank = 0; rank < made->size(); ++rank)
    made->serve_alone_.push_back(rank >= made->size() - made->options_.strategy.servers);
  made->serves_alone_ = made->serve_alone_[static_cast<std::size_t>(made->rank())];
  TRY(made->NewWork(made->rank(), made->size(), 0));
  TRY(made->MakeInner());
  return made;
}

Result<void> ElasticServer::NewWork(int rank, int size, std::uint64_t clock) {
  auto gradient = estate_ == nullptr ? TRY(learner_.model.NewGradient(learner_.memory)) : std::move(estate_->gradient);
  CHECK(serve_alone_.size() == static_cast<std::size_t>(size));
  estate_ = nullptr;
  gradient.Clear();
  estate_ = std::make_unique<Estate>(options_.strategy, learner_, synchrony_, std::move(gradient), codec_.get(),
                                     RolesNow(), rank, true);
  estate_->first_step = first_step_;
  estate_->MeetAt(clock);
  return {};
}

Result<std::unique_ptr<OwnPace>> ElasticServer::NewInner() {
  return std::unique_ptr<OwnPace>(std::make_unique<Server>(options_.strategy, World(), synchrony_, *estate_));
}

// All that was done in the synchrony before is done.
void ElasticServer::AllMet() {
  const OwnPace::Due& last = stand_.followed;
  if (last.order != OwnPace::Order::kChange || last.synchrony == synchrony_) return;
  synchrony_ = last.synchrony;
  if (learner_.panel != nullptr) learner_.panel->Changed(synchrony_, settled_clock_);
}

void ElasticServer::Tell(Report& mine) const {
  Beside beside{.role = !serves_alone_   ? Beside::kNone
                        : *serves_alone_ ? Beside::kServesAlone
                                         : Beside::kWorks,
                .first_step = first_step_,
                .synchrony = synchrony_,
                .shards = {}};
  if (estate_ != nullptr) {
    for (const auto& [worker, share] : estate_->shares) mine.shares.push_back(static_cast<std::uint64_t>(worker));
    for (const auto& [shard, holding] : estate_->holdings)
      beside.shards.emplace_back(static_cast<std::uint64_t>(shard), holding.letters);
  }
  mine.own = beside.Encode();
}

Result<void> ElasticServer::Hear(const std::vector<Report>& reports) {
  std::uint64_t met = 0;
  for (const Report& each : reports) met = std::max(met, each.met);
  const Besides besides = TRY(Beside::DecodeAll(reports));
  for (std::size_t r = 0; r < reports.size(); ++r) {
    first_step_ = std::max(first_step_, besides[r].first_step);
    if (met_ == 0 && reports[r].met == met) synchrony_ = besides[r].synchrony;
  }
  return HearRoles(besides);
}

Result<void> ElasticServer::HearRoles(const Besides& besides) {
  const auto with = [&](Beside::Role role) {
    return std::count_if(besides.begin(), besides.end(), [&](const Beside& each) { return each.role == role; });
  };
  if (with(Beside::kWorks) == 0)
    return hopeless_.emplace(
        Error{Code::kPeerLost,
              "all who read rows are lost at once; what there is left is the last checkpoint, if one was written"});
  auto missing = options_.strategy.servers - with(Beside::kServesAlone);
  serve_alone_.clear();
  for (const Beside& each : besides)
    serve_alone_.push_back(each.role == Beside::kServesAlone || (each.role == Beside::kNone && missing-- > 0));
  serves_alone_ = serve_alone_[static_cast<std::size_t>(collectives_->fabric().rank())];
  return {};
}

Estate::Roles ElasticServer::RolesNow() const {
  Estate::Roles roles;
  for (std::size_t rank = 0; rank < serve_alone_.size(); ++rank)
    (serve_alone_[rank] ? roles.serving : roles.working).push_back(static_cast<int>(rank));
  if (roles.serving.empty()) roles.serving = roles.working;
  return roles;
}

void ElasticServer::ForgetWork() {
  estate_ = nullptr;
  serves_alone_.reset();
}

// What every shard's next host is, and who stands for whom, follows from what all have: everybody comes to the same.
Result<void> ElasticServer::TakeOver(const std::vector<Report>& reports) {
  const auto members = static_cast<int>(reports.size());
  const Besides besides = TRY(Beside::DecodeAll(reports));
  const Estate::Roles roles = RolesNow();
  const auto serves = [&](int rank) {
    return std::find(roles.serving.begin(), roles.serving.end(), rank) != roles.serving.end();
  };
  if (static_cast<int>(roles.serving.size()) != estate_->shards) share_out_wanted_ = true;
  TRY(estate_->MakeShards(options_.strategy, learner_, synchrony_));
  chains_.assign(static_cast<std::size_t>(estate_->shards), {});
  for (int shard = 0; shard < estate_->shards; ++shard) {
    std::vector<std::pair<std::uint64_t, int>> holders;  // by what they have
    for (int rank = 0; rank < members; ++rank)
      for (const auto& [number, letters] : besides[static_cast<std::size_t>(rank)].shards)
        if (number == static_cast<std::uint64_t>(shard)) holders.emplace_back(letters, rank);
    if (holders.empty())
      return hopeless_.emplace(Error{
          Code::kPeerLost, Str("a part of the parameters is lost with all who had it: ", Option("replicas"), " ",
                               options_.strategy.replicas, " survives the loss of ", options_.strategy.replicas - 1,
                               " at a time; what there is left is the last checkpoint, if one was written")});
    std::stable_sort(holders.begin(), holders.end(), [&](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : serves(a.second) && !serves(b.second);
    });
    std::vector<int> chain;
    for (const auto& [letters, rank] : holders) chain.push_back(rank);
    chains_[static_cast<std::size_t>(shard)] = roles.Chain(std::move(chain), options_.strategy.replicas);
  }
  TRY(CopyShards(besides));
  const auto applied = TRY(GatherApplied());
  ShareOut(reports, applied);
  TRY(collectives_->Barrier());  // from here on nobody needs what others have
  estate_->chains = chains_;
  const int rank = collectives_->fabric().rank();
  for (auto holding = estate_->holdings.begin(); holding != estate_->holdings.end();) {
    const std::vector<int>& chain = chains_[static_cast<std::size_t>(holding->first)];
    if (std::find(chain.begin(), chain.end(), rank) == chain.end()) {
      holding = estate_->holdings.erase(holding);
    } else {
      holding->second.shard->SetAnswers(chain.front() == rank);
      ++holding;
    }
  }
  return {};
}

// To those of a chain who have less than its first, one after another.
Result<void> ElasticServer::CopyShards(const Besides& besides) {
  constexpr fabric::Tag kCopies = 11;
  fabric::Fabric& fabric = collectives_->fabric();
  const auto letters_at = [&](int rank, int shard) -> std::optional<std::uint64_t> {
    for (const auto& [number, letters] : besides[static_cast<std::size_t>(rank)].shards)
      if (number == static_cast<std::uint64_t>(shard)) return letters;
    return {};
  };
  for (auto& [shard, holding] : estate_->holdings) holding.shard->Retreat();
  for (int shard = 0; shard < estate_->shards; ++shard) {
    const std::vector<int>& chain = chains_[static_cast<std::size_t>(shard)];
    const std::uint64_t most = letters_at(chain.front(), shard).value();
    std::string given;
    for (const int to : chain) {
      if (letters_at(to, shard) == most) continue;
      if (fabric.rank() == chain.front()) {
        if (given.empty()) given = estate_->holdings.at(shard).shard->Give(estate_->placement, shard);
        TRY(fabric.Send(to, kCopies, std::as_bytes(std::span(given.data(), given.size()))));
      }
      if (fabric.rank() != to) continue;
      const auto transfer = TRY(fabric.StartBorrow(chain.front(), kCopies));
      const auto arrived = TRY(fabric.Wait(transfer));
      estate_->holdings[shard];
      TRY(estate_->MakeShards(options_.strategy, learner_, synchrony_));
      const auto taken = estate_->holdings.at(shard).shard->Take(
          {reinterpret_cast<const char*>(arrived.view.data()), arrived.view.size()}, estate_->placement, shard);
      fabric.Release(transfer);
      TRY(taken);
      estate_->holdings.at(shard).letters = most;
    }
  }
  return {};
}

// Of every shard and worker, updates that need not be pushed again.
Result<std::vector<std::vector<std::uint64_t>>> ElasticServer::GatherApplied() {
  const auto workers = static_cast<std::size_t>(estate_->workers), shards = static_cast<std::size_t>(estate_->shards);
  std::vector<std::uint64_t> mine(workers * shards, 0);
  for (const auto& [shard, holding] : estate_->holdings) {
    if (chains_[static_cast<std::size_t>(shard)].front() != collectives_->fabric().rank()) continue;
    const auto applied = holding.shard->Applied();
    std::copy(applied.begin(), applied.end(), mine.begin() + static_cast<std::ptrdiff_t>(workers) * shard);
  }
  std::vector<std::vector<std::uint64_t>> applied(shards, std::vector<std::uint64_t>(workers, 0));
  for (const auto& theirs : TRY(GatherNumbers(*collectives_, mine))) {
    if (theirs.size() != mine.size()) return server::Reader::Damaged();
    for (std::size_t i = 0; i < theirs.size(); ++i)
      applied[i / workers][i % workers] = std::max(applied[i / workers][i % workers], theirs[i]);
  }
  return applied;
}

void ElasticServer::ShareOut(const std::vector<Report>& reports,
                             const std::vector<std::vector<std::uint64_t>>& applied) {
  const int rank = collectives_->fabric().rank();
  std::vector<std::size_t> has;  // of those who pass the rows; others could not do it
  for (std::size_t r = 0; r < reports.size(); ++r)
    has.push_back(reports[r].met == 0 || serve_alone_[r] ? ~std::size_t{0} : reports[r].shares.size());
  for (int worker = 0; worker < estate_->workers; ++worker) {
    int at = -1;
    for (std::size_t r = 0; r < reports.size(); ++r)
      if (reports[r].Has(worker)) at = static_cast<int>(r);
    if (at < 0) {
      at = static_cast<int>(std::min_element(has.begin(), has.end()) - has.begin());
      ++has[static_cast<std::size_t>(at)];
      share_out_wanted_ = true;
      if (at == rank) {
        Estate::Share& share = estate_->shares[worker];
        share.kept.resize(static_cast<std::size_t>(estate_->shards));
        for (const auto& each : applied) share.had.push_back(each[static_cast<std::size_t>(worker)]);
        share.clock = *std::min_element(share.had.begin(), share.had.end());
      }
    }
    estate_->worker_at[static_cast<std::size_t>(worker)] = at;
  }
  for (auto& [worker, share] : estate_->shares)
    for (std::size_t s = 0; s < share.kept.size(); ++s) {
      auto& kept = share.kept[s];
      while (!kept.empty() && kept.front().clock < applied[s][static_cast<std::size_t>(worker)]) kept.pop_front();
    }
}

// Steps of the optimizer are counted when all meet.
void ElasticServer::Describe(GroupChange& change) {
  ElasticPace::Describe(change);
  const int servers = options_.strategy.servers;
  if (const auto left = std::count(serve_alone_.begin(), serve_alone_.end(), true); left < servers)
    change.note = left > 0 ? Str(left, " of ", servers, " servers") : "workers serve, too";
  if (estate_ != nullptr) change.step += estate_->pieces;
}

void ElasticServer::Save(std::vector<data::Tensor>& tensors) const {
  saved_clock_ = estate_->clock();
  tensors.push_back({"server.clock", data::DType::kU64, {1}, std::as_bytes(std::span(&saved_clock_, 1))});
  saved_synchrony_ = synchrony_.Numbers();
  if (synchrony_ != Synchrony::Parse(options_.strategy.synchrony).value())
    tensors.push_back(
        {std::string(Server::kSynchrony), data::DType::kU64, {3}, std::as_bytes(std::span(saved_synchrony_))});
}

Result<void> ElasticServer::Load(const data::TensorFile& file) {
  const auto clock = TRY(file.Values<std::uint64_t>("server.clock"));
  if (clock.size() != 1) return Error{Code::kCorrupt, "the clock of workers is damaged in the checkpoint"};
  estate_->MeetAt(clock[0]);
  if (file.Find(Server::kSynchrony) == nullptr) return {};
  synchrony_ = TRY(Synchrony::Of(TRY(file.Values<std::uint64_t>(Server::kSynchrony))));
  server().SetSynchrony(synchrony_);
  return {};
}

}  // namespace freshet::strategy::server
