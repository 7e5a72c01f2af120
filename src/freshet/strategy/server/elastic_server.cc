#include "strategy/server/elastic_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/option.h"
#include "strategy/bytes_together.h"
#include "strategy/make_codec.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy::server {

// Numbers, so that it can travel as they are.
struct ElasticServer::Report {
  std::uint64_t met = 0, begun = 0, gives = 0, base = 0, first_step = 0;
  OwnPace::Due followed;
  Synchrony synchrony;                                          // since it last met the others
  std::vector<std::uint64_t> shares;                            // workers it stands for
  std::vector<std::pair<std::uint64_t, std::uint64_t>> shards;  // that it has, and letters they have taken in

  std::vector<std::uint64_t> Encode() const {
    const auto ordered = followed.synchrony.Numbers(), now = synchrony.Numbers();
    std::vector<std::uint64_t> out = {
        met,        begun,           gives,          base,
        first_step, followed.number, followed.clock, static_cast<std::uint64_t>(followed.order),
        ordered[0], ordered[1],      ordered[2],     now[0],
        now[1],     now[2],          shares.size()};
    out.insert(out.end(), shares.begin(), shares.end());
    for (const auto& [shard, letters] : shards) {
      out.push_back(shard);
      out.push_back(letters);
    }
    return out;
  }
  static Result<Report> Decode(std::span<const std::uint64_t> in) {
    constexpr std::size_t kHead = 15;
    if (in.size() < kHead || in[kHead - 1] > in.size() - kHead || (in.size() - kHead - in[kHead - 1]) % 2 != 0)
      return server::Reader::Damaged();
    const std::size_t shares = in[kHead - 1];
    Report report{.met = in[0],
                  .begun = in[1],
                  .gives = in[2],
                  .base = in[3],
                  .first_step = in[4],
                  .followed = {in[5], in[6], static_cast<OwnPace::Order>(in[7]), TRY(Synchrony::Of(in.subspan(8, 3)))},
                  .synchrony = TRY(Synchrony::Of(in.subspan(11, 3))),
                  .shares = {},
                  .shards = {}};
    report.shares.assign(in.begin() + kHead, in.begin() + static_cast<std::ptrdiff_t>(kHead + shares));
    for (std::size_t i = kHead + shares; i < in.size(); i += 2) report.shards.emplace_back(in[i], in[i + 1]);
    return report;
  }
};

namespace {

Result<std::vector<std::vector<std::uint64_t>>> GatherNumbers(fabric::Collectives& collectives,
                                                              const std::vector<std::uint64_t>& mine) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const auto& bytes : TRY(collectives.Gather(std::as_bytes(std::span(mine))))) {
    std::vector<std::uint64_t>& numbers = all.emplace_back(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof numbers[0]);
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<ElasticServer>> ElasticServer::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                           const Learner& learner) {
  const Synchrony synchrony = TRY(Synchrony::Parse(options.strategy.synchrony));
  if (options.strategy.servers > 0)
    return Error{Code::kInvalid, Str(Option("servers"), " ", options.strategy.servers, " does not go with ",
                                     Option("elastic"), ", where each worker is a server, too; leave it out")};
  if (!options.strategy.whole)
    return Error{Code::kInvalid, Str(Option("strategy"), " server with ", Option("elastic"),
                                     " is for workers that all "
                                     "have all rows (",
                                     Option("split"), " rows)")};
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
  TRY(made->NewEstate(made->rank(), made->size(), 0));
  TRY(made->MakeInner());
  return made;
}

Strategy::World ElasticServer::World() const {
  return {*collectives_,  learner_.model, learner_.parameters, learner_.optimizer, learner_.memory,
          learner_.clock, learner_.trace, learner_.at,         learner_.panel};
}

void ElasticServer::Met() {
  ++met_;
  met_at_ = learner_.clock.Now();
  worked_ = false;
  kept_ = {};
}

Result<void> ElasticServer::NewEstate(int rank, int size, std::uint64_t clock) {
  auto gradient = estate_ == nullptr ? TRY(learner_.model.NewGradient(learner_.memory)) : std::move(estate_->gradient);
  const std::uint64_t first_step = estate_ == nullptr ? learner_.optimizer.step() : estate_->first_step;
  estate_ = nullptr;
  gradient.Clear();
  estate_ = std::make_unique<Estate>(options_.strategy, learner_, synchrony_, std::move(gradient), codec_.get(), rank,
                                     size, true);
  estate_->first_step = first_step;
  estate_->MeetAt(clock);
  return {};
}

Result<void> ElasticServer::MakeInner() {
  inner_ = std::make_unique<Server>(options_.strategy, World(), synchrony_, *estate_);
  inner_->SetShow(show_);
  inner_->Ask(ask_stop_, ask_save_);
  static_cast<Strategy&>(*inner_).SetProgress(progress_);
  if (share_out_wanted_) inner_->Want(OwnPace::Order::kMeet);
  return {};
}

void ElasticServer::EndInner(bool in_order) {
  if (!in_order) group_.fabric().Abort({Code::kPeerLost, "the group changes"});
  if (inner_ != nullptr) {
    before_.Add(inner_->times());
    const std::uint64_t before = stand_.followed.number;
    stand_ = inner_->stand();
    if (stand_.followed.number > before && stand_.followed.order == OwnPace::Order::kEndEpoch) stand_.dry = false;
  }
  inner_ = nullptr;
  collectives_ = nullptr;
}

void ElasticServer::SetShow(Show show) {
  show_ = std::move(show);
  if (inner_ != nullptr) inner_->SetShow(show_);
}

void ElasticServer::Ask(bool stop, bool save) {
  ask_stop_ = stop;
  ask_save_ = save;
  inner_->Ask(stop, save);
  if (group_.change_wanted()) inner_->Want(OwnPace::Order::kAdmit);
}

void ElasticServer::SetProgress(double progress) {
  progress_ = progress;
  if (inner_ != nullptr) static_cast<Strategy&>(*inner_).SetProgress(progress);
}

StepTimes ElasticServer::times() const {
  StepTimes times = before_;
  if (inner_ != nullptr) times.Add(inner_->times());
  return times;
}

Result<std::optional<double>> ElasticServer::Step(const data::Batch& piece, const data::Batch& mine,
                                                  std::span<float> scores) {
  agreed_.reset();
  const std::uint64_t pieces = estate_->pieces, followed = inner_->stand().followed.number;
  Result<void> done;
  while (true) {
    if (estate_->pieces == pieces) {
      const auto made = inner_->Step(piece, mine, scores);
      done = made.ok() ? Result<void>() : made.error();
    } else {
      done = inner_->Attend();
    }
    if (done.ok()) break;
    TRY(Regroup(done.error(), Admits::kNobody));
    if (stand_.followed.number > followed) break;
  }
  const double loss = estate_->own_loss;
  agreed_ = done.ok() ? inner_->agreed() : std::optional(stand_.followed.order);
  if (Meets()) {
    agreed_.reset();
    TRY(Settle());
  }
  TRY(At("step.done"));
  return std::optional<double>(loss);
}

Result<bool> ElasticServer::StepDry() {
  agreed_.reset();
  while (true) {
    const std::uint64_t followed = inner_->stand().followed.number;
    const auto dry = inner_->StepDry();
    if (dry.ok() && dry.value()) return true;
    agreed_ = inner_->agreed();
    if (!dry.ok()) {
      TRY(Regroup(dry.error(), Admits::kNobody));
      if (stand_.followed.number == followed) continue;
      agreed_ = stand_.followed.order;
      if (agreed_ == OwnPace::Order::kEndEpoch) return true;
    }
    if (!Meets()) return false;
    agreed_.reset();
    TRY(Settle());
  }
}

Result<void> ElasticServer::Settle() {
  settling_ = true;
  TRY(Together([&](fabric::Collectives&) -> Result<void> {
    TRY(inner_->Settle());
    settled_clock_ = inner_->settled_clock();
    settled_rank_ = rank();
    settled_size_ = size();
    return {};
  }));
  if (!std::exchange(settling_, false)) return {};  // it was done by others, and so was this
  before_.Add(inner_->times());
  stand_ = inner_->stand();
  inner_ = nullptr;
  share_out_wanted_ = false;
  GoOnAsOrdered();
  TRY(NewEstate(rank(), size(), settled_clock_));
  TRY(MakeInner());
  inner_->Resume(stand_, stand_.followed);
  return {};
}

// All that was done in the synchrony before is done.
void ElasticServer::GoOnAsOrdered() {
  const OwnPace::Due& last = stand_.followed;
  if (last.order != OwnPace::Order::kChange || last.synchrony == synchrony_) return;
  synchrony_ = last.synchrony;
  if (learner_.panel != nullptr) learner_.panel->Changed(synchrony_, settled_clock_);
}

Result<void> ElasticServer::Together(const std::function<Result<void>(fabric::Collectives&)>& meeting) {
  while (true) {
    Result<void> met = meeting(*collectives_);
    if (met.ok()) {
      worked_ = true;
      met = collectives_->Barrier();
    }
    if (met.ok()) {
      Met();
      return {};
    }
    if (TRY(Regroup(met.error(), Admits::kNobody))) return {};
  }
}

Result<std::vector<double>> ElasticServer::Sum(const std::vector<double>& mine) {
  TRY(Together([&](fabric::Collectives& collectives) -> Result<void> {
    sums_ = TRY(SumInOrder(collectives, mine));
    return {};
  }));
  return sums_;
}

Result<void> ElasticServer::Barrier() {
  return Together([](fabric::Collectives&) { return Result<void>(); });
}

// Who does not stand here with the others any more has seen the group change: then they try another time.
Result<void> ElasticServer::Admit() {
  agreed_.reset();
  const std::uint64_t generation = group_.roster().generation;
  TRY(Settle());
  if (group_.roster().generation != generation) return {};
  gives_ = true;
  const auto regrouped = Regroup({Code::kPeerLost, "somebody wants in"}, Admits::kAll);
  gives_ = false;
  TRY(regrouped);
  return {};
}

Result<std::string> ElasticServer::Take() {
  TRY(group_.Begin());
  while (true) {
    const auto united = Unite();
    if (united.ok() && met_ == 0)
      return Error{Code::kPeerLost, "the group changed before it could hand anything over; start this worker again"};
    if (united.ok()) return std::exchange(kept_, {});
    if (!OfMembers(united.error())) return united.error();
    EndInner(false);
    // What was given may be of before what others have begun since.
    met_ = 0;
    estate_ = nullptr;
    kept_ = {};
    TRY(group_.Regroup(met_, 0, Admits::kNobody));
  }
}

Result<bool> ElasticServer::Regroup(const Error& why, Admits admits) {
  if (!OfMembers(why)) return why;
  const std::uint64_t met = met_;
  for (bool in_order = admits == Admits::kAll;; in_order = false) {
    const fabric::Roster last = group_.roster();
    EndInner(in_order);
    TRY(At("regroup.begin"));
    TRY(group_.Regroup(met_, 0, admits, in_order));
    ++losses_;
    TRY(At("regroup.decided"));
    const auto united = Unite();
    TRY(At("regroup.levelled"));
    Tell(last);
    if (united.ok()) return met_ != met;
    if (hopeless_) return *hopeless_;
    if (!OfMembers(united.error())) return united.error();
  }
}

Result<std::vector<ElasticServer::Report>> ElasticServer::GatherReports() {
  Report mine{.met = met_,
              .gives = gives_ ? 1u : 0u,
              .followed = stand_.followed,
              .synchrony = synchrony_,
              .shares = {},
              .shards = {}};
  if (estate_ != nullptr) {
    mine.begun = estate_->HasShards() || estate_->pieces > 0 ? 1 : 0;
    mine.base = estate_->base;
    mine.first_step = estate_->first_step;
    for (const auto& [worker, share] : estate_->shares) mine.shares.push_back(static_cast<std::uint64_t>(worker));
    for (const auto& [shard, holding] : estate_->holdings)
      mine.shards.emplace_back(static_cast<std::uint64_t>(shard), holding.letters);
  }
  std::vector<Report> reports;
  for (const auto& numbers : TRY(GatherNumbers(*collectives_, mine.Encode())))
    reports.push_back(TRY(Report::Decode(numbers)));
  return reports;
}

// Everybody has done its part of a meeting that somebody has left behind.
Result<void> ElasticServer::FinishMeeting(std::uint64_t met) {
  const bool mine = std::exchange(worked_, false);
  if (met_ == 0 || met_ == met) return {};
  CHECK(mine && met_ + 1 == met);
  Met();
  if (!std::exchange(settling_, false)) return {};
  share_out_wanted_ = false;
  GoOnAsOrdered();
  return NewEstate(settled_rank_, settled_size_, settled_clock_);
}

Result<void> ElasticServer::Unite() {
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  auto reports = TRY(GatherReports());
  std::uint64_t met = 0;
  for (const Report& each : reports) met = std::max(met, each.met);
  TRY(FinishMeeting(met));
  const bool somebody_comes =
      std::any_of(reports.begin(), reports.end(), [](const Report& each) { return each.met == 0; });
  reports = TRY(GatherReports());
  const bool begun = std::any_of(reports.begin(), reports.end(), [](const Report& each) { return each.begun != 0; });
  OwnPace::Due last;
  std::uint64_t base = 0, first_step = 0;
  for (const Report& each : reports) {
    first_step = std::max(first_step, each.first_step);
    if (each.followed.number > last.number) last = each.followed;
    base = std::max(base, each.base);
  }
  if (somebody_comes) TRY(HandOver(reports));
  if (met_ == 0 && kept_.empty()) return {};  // nobody could give anything
  if (met_ == 0) {
    for (const Report& each : reports)
      if (each.met == met) synchrony_ = each.synchrony;
    met_ = met;
    stand_.followed = last;
  }
  if (begun) {
    TRY(TakeOver(reports));
  } else {
    TRY(NewEstate(rank(), size(), base));
    estate_->first_step = first_step;
    TRY(collectives_->Barrier());  // nobody begins before all know how many work
  }
  TRY(MakeInner());
  inner_->Resume(stand_, last);
  return begun ? inner_->GoOn() : Result<void>();
}

// From one who stands between two steps of all.
Result<void> ElasticServer::HandOver(const std::vector<Report>& reports) {
  const bool settled = std::none_of(reports.begin(), reports.end(), [](const Report& each) { return each.begun != 0; });
  const auto giver = std::find_if(reports.begin(), reports.end(), [](const Report& each) { return each.gives != 0; });
  std::string given;
  const int from = giver == reports.end() ? 0 : static_cast<int>(giver - reports.begin());
  if (giver != reports.end() && settled && from == collectives_->fabric().rank() && give_) given = TRY(give_());
  TRY(BroadcastBytes(*collectives_, given, from));
  if (met_ == 0) kept_ = std::move(given);
  return {};
}

// What every shard's next host is, and who stands for whom, follows from what all have: everybody comes to the same.
Result<void> ElasticServer::TakeOver(const std::vector<Report>& reports) {
  const auto members = static_cast<int>(reports.size());
  TRY(estate_->MakeShards(options_.strategy, learner_, synchrony_));
  chains_.assign(static_cast<std::size_t>(estate_->shards), {});
  for (int shard = 0; shard < estate_->shards; ++shard) {
    std::vector<std::pair<std::uint64_t, int>> holders;  // by what they have
    for (int rank = 0; rank < members; ++rank)
      for (const auto& [number, letters] : reports[static_cast<std::size_t>(rank)].shards)
        if (number == static_cast<std::uint64_t>(shard)) holders.emplace_back(letters, rank);
    if (holders.empty())
      return hopeless_.emplace(
          Error{Code::kPeerLost, Str("a part of the parameters is lost with all who had it: ", Option("replicas"), " ",
                                     options_.strategy.replicas, " survives the loss of ",
                                     options_.strategy.replicas - 1, " at a time; the last checkpoint has it")});
    std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<int>& chain = chains_[static_cast<std::size_t>(shard)];
    for (const auto& [letters, rank] : holders) chain.push_back(rank);
    for (int i = 1; i < members; ++i)
      if (const int next = (chain.front() + i) % members; std::find(chain.begin(), chain.end(), next) == chain.end())
        chain.push_back(next);
    chain.resize(static_cast<std::size_t>(std::min(options_.strategy.replicas, members)));
  }
  TRY(CopyShards(reports));
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
Result<void> ElasticServer::CopyShards(const std::vector<Report>& reports) {
  constexpr fabric::Tag kCopies = 11;
  fabric::Fabric& fabric = collectives_->fabric();
  const auto letters_at = [&](int rank, int shard) -> std::optional<std::uint64_t> {
    for (const auto& [number, letters] : reports[static_cast<std::size_t>(rank)].shards)
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
  std::vector<std::size_t> has;
  for (const Report& each : reports) has.push_back(each.shares.size());
  for (int worker = 0; worker < estate_->workers; ++worker) {
    int at = -1;
    for (std::size_t r = 0; r < reports.size(); ++r)
      if (std::find(reports[r].shares.begin(), reports[r].shares.end(), static_cast<std::uint64_t>(worker)) !=
          reports[r].shares.end())
        at = static_cast<int>(r);
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

void ElasticServer::Save(std::vector<data::Tensor>& tensors) const {
  saved_clock_ = estate_->clock();
  tensors.push_back({"server.clock", data::DType::kU64, {1}, std::as_bytes(std::span(&saved_clock_, 1))});
  saved_synchrony_ = synchrony_.Numbers();
  if (synchrony_.ToText() != options_.strategy.synchrony)
    tensors.push_back(
        {std::string(Server::kSynchrony), data::DType::kU64, {3}, std::as_bytes(std::span(saved_synchrony_))});
}

Result<void> ElasticServer::Load(const data::TensorFile& file) {
  const auto clock = TRY(file.Values<std::uint64_t>("server.clock"));
  if (clock.size() != 1) return Error{Code::kCorrupt, "the clock of workers is damaged in the checkpoint"};
  estate_->MeetAt(clock[0]);
  if (file.Find(Server::kSynchrony) == nullptr) return {};
  synchrony_ = TRY(Synchrony::Of(TRY(file.Values<std::uint64_t>(Server::kSynchrony))));
  inner_->SetSynchrony(synchrony_);
  return {};
}

void ElasticServer::Tell(const fabric::Roster& before) {
  const auto now = learner_.clock.Now();
  GroupChange change = GroupChange::Since(before, group_, {});
  change.step = learner_.optimizer.step() + (estate_ == nullptr ? 0 : estate_->pieces);
  change.seconds = base::Seconds(now - met_at_);
  met_at_ = now;
  history_.Add(change, false);
  if (learner_.trace != nullptr)
    learner_.trace->Add("membership", base::Trace::kTraining, now, now, {.step = change.step, .note = change.ToText()});
  if (options_.changed) options_.changed(change);
}

}  // namespace freshet::strategy::server
