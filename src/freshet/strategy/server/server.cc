#include "strategy/server/server.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/option.h"
#include "model/digest.h"
#include "strategy/make_codec.h"
#include "strategy/packed_rows.h"
#include "strategy/server/backup_server.h"

namespace freshet::strategy {
namespace server {
namespace {

double WeightOf(const data::Batch& rows) {
  double weight = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  return weight;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Make(const StrategyOptions& options, const World& world) {
  return MakeBy(options, world, [&](const Synchrony& synchrony, Estate& estate) -> std::unique_ptr<Server> {
    if (options.backup > 0 && estate.workers > 1)
      return std::make_unique<BackupServer>(options, world, synchrony, estate);
    return std::make_unique<Server>(options, world, synchrony, estate);
  });
}

Result<std::unique_ptr<Server>> Server::MakeBy(const StrategyOptions& options, const World& world, const Maker& maker) {
  TRY(Check(options, world));
  const Synchrony synchrony = TRY(Synchrony::Parse(options.synchrony));
  auto gradient = TRY(world.model.NewGradient(world.memory));
  const fabric::Fabric& fabric = world.collectives.fabric();
  auto codec = options.codec == "none" ? nullptr : TRY(MakeCodec(options));
  if (options.backup > 0 && codec != nullptr && codec->uses_residual())
    return Error{Code::kInvalid,
                 Str(Option("codec"), " ", options.codec, " does not go with ", Option("backup"),
                     ": what it holds back would be lost with a push that came late; use fp16 or bf16")};
  auto near = options.large ? TRY(NearRows::Make(world.model, world.memory)) : nullptr;
  auto estate = std::make_unique<Estate>(options, world.learner(), synchrony, std::move(gradient), codec.get(),
                                         Estate::Roles::Of(options.servers, fabric.size()), fabric.rank(), false,
                                         std::move(near));
  estate->first_step = world.optimizer.step();
  auto server = maker(synchrony, *estate);
  server->own_codec_ = std::move(codec);
  server->own_estate_ = std::move(estate);
  BeginPanel(world.panel, options, synchrony);
  return server;
}

Server::Server(const StrategyOptions& options, const World& world, const Synchrony& synchrony, Estate& estate)
    : OwnPace(options, world, kAtOnce),
      synchrony_(synchrony),
      estate_(estate),
      answer_tag_(world.collectives.NextTag()),
      expected_(static_cast<std::size_t>(estate.shards)),
      settled_clock_(estate.base),
      waits_(estate.workers) {
  workspace_.threads = options.threads;
  EpochEnded();
}

bool Server::Ticketed() const { return !estate_.keeps && GivesTickets(options_, synchrony_, world_.model); }

std::optional<std::uint64_t> Server::next_ticket() const {
  return ticketed_ ? std::optional(tickets_.front()) : std::nullopt;
}

void Server::BeginPanel(Panel* panel, const StrategyOptions& options, const Synchrony& synchrony) {
  if (panel != nullptr) panel->Begin(synchrony, [options](const Synchrony& to) { return CheckSynchrony(options, to); });
}

Server::~Server() {
  letters().End();
  fabric::Fabric& fabric = world_.collectives.fabric();
  std::deque<fabric::Transfer> coming;
  for (const Coming& each : coming_) coming.push_back(each.transfer);
  Letterbox::TakeBack(fabric, coming);
  const base::Lock lock(mutex_);
  std::vector<fabric::Transfer> sent;
  for (const Sent& each : sent_) sent.push_back(each.transfer);
  Letterbox::LetGo(fabric, sent);
}

Result<std::optional<double>> Server::Step(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  if (world_.panel != nullptr) {
    world_.panel->SetClock(clock());
    if (const auto wished = world_.panel->wished()) WantChange(*wished);
  }
  auto loss = TRY(OwnPace::Step(piece, mine, scores));
  if (agreed() == Order::kChange && !estate_.keeps) TRY(Change());
  return loss;
}

Result<bool> Server::StepDry() {
  while (true) {
    if (TRY(OwnPace::StepDry())) return true;
    if (agreed() != Order::kChange || estate_.keeps) return false;
    TRY(Change());
  }
}

Result<void> Server::Change() {
  Forget();
  const Synchrony to = stand().followed.synchrony;
  TRY(Settle());
  SetSynchrony(to);
  return {};
}

void Server::SetSynchrony(const Synchrony& synchrony) {
  synchrony_ = synchrony;
  const base::Lock lock(mutex_);
  estate_.SetSynchrony(synchrony);
  if (world_.panel != nullptr) world_.panel->Changed(synchrony, estate_.clock());
}

StepTimes Server::times() const {
  StepTimes times = OwnPace::times();
  if (estate_.codec == nullptr) return times;
  times.bytes_dense = times.bytes_sent + times.bytes_shared;
  for (int s = 0; s < estate_.shards; ++s) times.bytes_dense += Answers(s) ? 0 : estate_.copy.saved(s);
  return times;
}

std::optional<Report> Server::report() {
  Report report{.waited_for = waits_.seconds(), .moved = moved_};
  const base::Lock lock(mutex_);
  for (const auto& [number, holding] : estate_.holdings) {
    if (holding.shard == nullptr || !Answers(number)) continue;
    report.updates += holding.shard->updates();
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) {
      const std::uint64_t rows = world_.parameters.rows(b);
      Report::Block& block = report.blocks.emplace_back(holding.shard->heat().Tell(b, rows));
      block.name = world_.parameters.block(b).name;
      block.held = estate_.placement.RowsOf(number, b, rows);
    }
  }
  return report;
}

std::size_t Server::piece() const {
  const auto workers = static_cast<std::uint64_t>(estate_.workers);
  return options_.whole && !ticketed_ ? options_.batch : std::max<std::size_t>(options_.batch / workers, 1);
}

data::Batch Server::Share(const data::Batch& piece) const {
  if (!options_.whole) return piece;
  if (ticketed_) return tickets_.front() == passed_ ? piece : piece.Slice(0, 0);
  return piece.Slice(fabric::ChunkBegin(piece.rows, estate_.number, estate_.workers),
                     fabric::ChunkBegin(piece.rows, estate_.number + 1, estate_.workers));
}

void Server::Save(std::vector<data::Tensor>& tensors) const {
  saved_clock_ = estate_.clock();
  tensors.push_back({"server.clock", data::DType::kU64, {1}, std::as_bytes(std::span(&saved_clock_, 1))});
  estate_.copy.Save(tensors);
  saved_synchrony_ = synchrony_.Numbers();
  if (synchrony_ != Synchrony::Parse(options_.synchrony).value())
    tensors.push_back({std::string(kSynchrony), data::DType::kU64, {3}, std::as_bytes(std::span(saved_synchrony_))});
  if (!ticketed_) return;
  saved_.assign(tickets_.begin(), tickets_.end());
  saved_.push_back(static_cast<std::int64_t>(passed_));
  {
    const base::Lock lock(mutex_);
    saved_.push_back(static_cast<std::int64_t>(next_ticket_));
  }
  tensors.push_back({std::string(kTickets), data::DType::kI64, {saved_.size()}, std::as_bytes(std::span(saved_))});
}

Result<void> Server::Load(const data::TensorFile& file) {
  const auto clock = TRY(file.Values<std::uint64_t>("server.clock"));
  if (clock.size() != 1) return Error{Code::kCorrupt, "the clock of a worker is damaged in the checkpoint"};
  estate_.MeetAt(clock[0]);
  TRY(estate_.copy.Load(file));
  if (file.Find(kSynchrony) != nullptr) {
    SetSynchrony(TRY(Synchrony::Of(TRY(file.Values<std::uint64_t>(kSynchrony)))));
    ticketed_ = file.Find(kTickets) != nullptr;
  }
  if (!ticketed_) return {};
  const auto saved = TRY(file.Values<std::int64_t>(kTickets));
  if (saved.size() < 3) return Error{Code::kCorrupt, "tickets of a worker are missing in the checkpoint"};
  tickets_.assign(saved.begin(), saved.end() - 2);
  passed_ = static_cast<std::uint64_t>(*(saved.end() - 2));
  const base::Lock lock(mutex_);
  next_ticket_ = static_cast<std::uint64_t>(saved.back());
  return {};
}

Result<void> Server::Begin() {
  began_ = true;
  step_ = world_.optimizer.step();
  const base::Lock lock(mutex_);
  return estate_.MakeShards(options_, world_.learner(), synchrony_);
}

// After a loss it may be called again for the same piece: what was done of it stays done.
Result<double> Server::Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  if (ticketed_ && tickets_.front() != passed_++) return 0.0;  // it is another worker's
  if (!std::exchange(estate_.in_piece, true)) estate_.own_loss = 0;
  TRY(CatchUp());
  for (auto& [worker, share] : estate_.shares)
    if (worker != estate_.number && share.clock == estate_.clock()) TRY(WorkForAnother(worker, piece));
  if (estate_.shares[estate_.number].clock == estate_.clock())
    estate_.own_loss = TRY(WorkFor(estate_.number, piece, mine, scores));
  ++estate_.pieces;
  if (estate_.keeps) estate_.Keep(piece);
  estate_.in_piece = false;
  return estate_.own_loss;
}

Result<double> Server::WorkForAnother(int worker, const data::Batch& piece) {
  const data::Batch share = piece.Slice(fabric::ChunkBegin(piece.rows, worker, estate_.workers),
                                        fabric::ChunkBegin(piece.rows, worker + 1, estate_.workers));
  return WorkFor(worker, piece, Shown(share), ScoresOfOthers(share.rows));
}

std::vector<float>& Server::ScoresOfOthers(std::size_t rows) {
  scores_of_others_.resize(rows * world_.model.scores());
  return scores_of_others_;
}

// The one that is furthest behind comes first: others may wait for it.
Result<void> Server::CatchUp() {
  while (true) {
    int behind = -1;
    for (const auto& [worker, share] : estate_.shares)
      if (share.clock < estate_.clock() && (behind < 0 || share.clock < estate_.shares[behind].clock)) behind = worker;
    if (behind < 0) return {};
    TRY(WorkForAnother(behind, estate_.Again(estate_.shares[behind].clock)));
  }
}

Result<double> Server::Gradient(std::uint64_t clock, const data::Batch& mine, std::span<float> scores) {
  const model::Model& model = world_.model;
  estate_.gradient.Clear();
  workspace_.step = estate_.first_step + clock;
  double loss = 0;
  const std::size_t parts = std::min<std::size_t>(options_.accumulate, mine.rows), width = model.scores();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = mine.rows * part / parts, last = mine.rows * (part + 1) / parts;
    TRY(model.Reserve(last - first, workspace_));
    loss += model.LossAndGradient(Here(), mine.Slice(first, last), workspace_, estate_.gradient,
                                  scores.subspan(first * width, (last - first) * width));
  }
  return loss;
}

// Others' rows come before a worker's own, with which it asks for what comes next: that may wait for those others.
Result<double> Server::WorkFor(int worker, const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  const Made made = TRY(Compute(worker, piece, mine, scores));
  TRY(Push(worker, Head(estate_.shares[worker].clock, made.weight), made));
  return made.loss;
}

Result<Server::Made> Server::Compute(int worker, const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) {
  const model::Model& model = world_.model;
  Copy& copy = estate_.copy;
  Estate::Share& share = estate_.shares[worker];
  const bool own = worker == estate_.number;
  TRY(At("step.begin"));
  const auto begun = world_.clock.Now();
  Made made;
  observes_ = model.observes(Here(), world_.optimizer);
  made.digest = DigestOf(RowsOf(piece, mine));
  const data::Batch shown = TRY(Near(mine));
  const auto ask = [&] { return SendAll(Bundle(estate_.number, {copy.Ask(RowsOf(piece, shown), share.clock)})); };
  if (estate_.ahead || !Dense() || copy.outstanding() == 0) TRY(ask());
  TRY(estate_.ahead ? AwaitWhatMayBeRead(share.clock, ask) : AwaitAnswers());
  TRY(At("step.agreed"));
  const auto asked = world_.clock.Now();
  if (own && model.observes(Here(), world_.optimizer) == model::Model::Observes::kRows)
    model.Observe(Here(), piece, world_.optimizer);
  made.loss = TRY(Gradient(share.clock, shown, scores));
  made.weight = WeightOf(RowsOf(piece, mine));
  TRY(At("step.computed"));
  const double stood = base::Seconds(asked - begun), waited = waits_.EndStep(stood);
  times_.wait += waited;
  times_.exchange += stood - waited;
  times_.compute += base::Seconds(world_.clock.Now() - asked);
  return made;
}

Result<void> Server::Push(int worker, const PushHead& head, const Made& made) {
  Copy& copy = estate_.copy;
  Estate::Share& share = estate_.shares[worker];
  const auto computed = world_.clock.Now();
  Copy::Telling telling{.by_name = estate_.keeps};
  for (const std::uint64_t had : share.had) telling.had.push_back(had > share.clock);
  std::vector<Copy::Letters> told_now;
  told_now.push_back(copy.Push(head, made.digest, telling));
  KeepPushes(share, share.clock, told_now[0]);
  Spend(copy.TakeEffort());
  ++share.clock;
  if (ticketed_) {
    tickets_.pop_front();
    if (const std::uint64_t known = tickets_.size() + tickets_coming_; known < tickets_wanted_) {
      told_now.push_back({Writer(Ticket{.count = tickets_wanted_ - known}).Take()});
      tickets_coming_ += tickets_wanted_ - known;
    }
  }
  // Before anything is asked for of which this is a part.
  const auto written = world_.clock.Now();
  if (estate_.ahead && made.weight > 0) LearnAhead(made.weight);
  const auto learned = world_.clock.Now();
  // What does not depend on the next rows is asked for at once, and comes while they are read.
  if (Dense() && worker == estate_.number) told_now.push_back(copy.Ask({}, share.clock));
  if (estate_.keeps) told_now.push_back(AskAboutKept(share));
  TRY(SendAll(Bundle(worker, std::move(told_now))));
  TRY(letters().AwaitTaken(kMostOnTheirWay * static_cast<std::size_t>(estate_.shards)));
  TRY(At("step.exchanged"));
  if (estate_.ahead && ticketed_) TRY(AwaitTicket());
  times_.exchange += base::Seconds(written - computed) + base::Seconds(world_.clock.Now() - learned);
  times_.apply += base::Seconds(learned - written);
  return {};
}

Result<std::optional<Server::Made>> Server::ComputeForAnother(std::uint64_t clock, const data::Batch& rows) {
  const auto begun = world_.clock.Now();
  Made made{.loss = 0, .weight = WeightOf(rows), .digest = DigestOf(rows)};
  if (!Dense()) {
    TRY(SendAll(Bundle(estate_.number, {estate_.copy.Ask(rows, clock)})));
    TRY(AwaitAnswers());
    if (newest_ > clock) return std::optional<Made>();
  }
  const auto asked = world_.clock.Now();
  made.loss = TRY(Gradient(clock, rows, ScoresOfOthers(rows.rows)));
  times_.exchange += base::Seconds(asked - begun);
  times_.compute += base::Seconds(world_.clock.Now() - asked);
  return std::optional(std::move(made));
}

Result<void> Server::PushForAnother(const PushHead& head, const Made& made) {
  const auto begun = world_.clock.Now();
  Copy::Letters told = estate_.copy.Push(head, made.digest);
  Spend(estate_.copy.TakeEffort());
  TRY(SendAll(Bundle(estate_.number, {std::move(told)})));
  TRY(letters().AwaitTaken(kMostOnTheirWay * static_cast<std::size_t>(estate_.shards)));
  times_.exchange += base::Seconds(world_.clock.Now() - begun);
  return {};
}

optimize::Parameters& Server::Here() const {
  return estate_.near == nullptr ? world_.parameters : estate_.near->parameters();
}

Result<data::Batch> Server::Near(const data::Batch& rows) {
  if (estate_.near == nullptr) return rows;
  if (estate_.near->many() && estate_.copy.HoldsNothing()) {
    estate_.near->Forget();
    estate_.copy.ForgetNear();
  }
  return estate_.near->Show(rows);
}

std::uint64_t Server::StepsAhead() const {
  const double step = (times_.read + times_.compute + times_.apply) / static_cast<double>(times_.steps + 1);
  const double steps = step > 0 ? std::ceil(base::Seconds(fastest_.value_or(base::Clock::Duration{})) / step) : 1;
  return static_cast<std::uint64_t>(std::clamp(steps, 1.0, static_cast<double>(kMostAhead)));
}

// A question that came in time for an earlier clock may be answered with what is too old for this one.
Result<void> Server::AwaitWhatMayBeRead(std::uint64_t clock, const std::function<Result<void>()>& ask) {
  Copy& copy = estate_.copy;
  const auto enough = [&] { return copy.MayRead(clock) && copy.AskedAt(clock) + StepsAhead() > clock; };
  TRY(TakeAnswers(enough));
  while (!copy.MayRead(clock)) {
    TRY(ask());
    TRY(TakeAnswers(enough));
  }
  return {};
}

// By oneself, until servers have answered.
void Server::LearnAhead(double weight) {
  world_.optimizer.SetProgress(progress_);
  estate_.copy.Learn(weight * estate_.workers, world_.optimizer, workspace_);
  Spend(estate_.copy.TakeEffort());
}

Result<void> Server::AwaitTicket() {
  if (!tickets_.empty()) return {};
  tickets_wanted_ = std::min(2 * tickets_wanted_, kMostAhead);
  return TakeAnswers([this] { return !tickets_.empty(); });
}

void Server::Spend(const Effort& effort) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  fabric.Spend("copy", effort.copied);
  fabric.Spend("add", effort.added);
  fabric.Spend("apply", effort.applied);
  fabric.Spend("rows", effort.rows);
}

PushHead Server::Head(std::uint64_t clock, double weight) const {
  const Due& order = last_order();
  return {.clock = clock,
          .weight = weight,
          .progress = progress_,
          .notice = {order.number, order.clock, static_cast<std::uint64_t>(order.order), order.synchrony}};
}

std::vector<std::byte> Server::DigestOf(const data::Batch& mine) {
  digest_.width = mine.sparse() ? 0 : mine.width;
  digest_.ClearRows();
  model::Digest(observes_, mine, digest_);
  return digest_.size() == 0 ? std::vector<std::byte>() : PackRows(digest_);
}

std::uint64_t Server::furthest() const {
  std::uint64_t furthest = estate_.clock();
  for (const auto& [worker, share] : estate_.shares) furthest = std::max(furthest, share.clock);
  return furthest;
}

std::uint64_t Server::meeting(const Due&) {
  if (!synchrony_.bounded() || (dry() && (!options_.whole || ticketed_))) return 0;
  return dry() ? clock() : clock() + synchrony_.staleness + 2;
}

Result<void> Server::Rest() {
  TRY(CatchUp());
  if (std::exchange(away_, true) || !has_rows()) return {};
  for (auto& [worker, share] : estate_.shares) {
    if (worker == estate_.number) {
      if (auto rest = estate_.copy.PushRest(Head(share.clock, 1)); !rest.empty()) {
        KeepPushes(share, share.clock, rest);
        TRY(SendAll(Bundle(worker, {std::move(rest)})));
        ++share.clock;
      }
    }
    TRY(SendAll(Bundle(worker, {estate_.copy.Away()})));
  }
  return AwaitAnswers();
}

void Server::EpochEnded() {
  const auto workers = static_cast<std::uint64_t>(estate_.workers);
  passed_ = 0;
  ticketed_ = Ticketed();
  tickets_ = {static_cast<std::uint64_t>(rank()), static_cast<std::uint64_t>(rank()) + workers};
  const base::Lock lock(mutex_);
  next_ticket_ = 2 * workers;
}

Result<void> Server::Check(const StrategyOptions& options, const World& world) {
  const auto not_with = [](const std::string& what) {
    return Error{Code::kInvalid, Str(Option("strategy"), " server does not go with ", what)};
  };
  const Synchrony synchrony = TRY(Synchrony::Parse(options.synchrony));
  const int members = world.collectives.fabric().size();
  if (options.servers < 0 || options.servers >= members)
    return Error{Code::kInvalid, Str(Option("servers"), " ", options.servers, " of ", members,
                                     " members leave no worker; give fewer, or 0: then each is both")};
  if (options.codec == "power") return not_with(Str(Option("codec"), " power, which is a way to make a sum"));
  if (options.factors) return not_with(Option("layer-factors"));
  if (options.backup > 0) TRY(BackupServer::Check(options));
  if (!world.model.Supervised() && !options.whole) return not_with("clusters of rows that not all workers have");
  if (options.large) TRY(CheckLarge(options, world));
  return CheckSynchrony(options, synchrony);
}

Result<void> Server::CheckLarge(const StrategyOptions& options, const World& world) {
  bool grows = false;
  for (std::size_t b = 0; b < world.parameters.blocks(); ++b) {
    const optimize::Block block = world.parameters.block(b);
    grows = grows || block.most_rows > block.rows;
  }
  if (options.backup > 0)
    return Error{Code::kInvalid, Str(Option("large-model"), " does not go with ", Option("backup"), "; leave one out")};
  if (!grows || !world.model.Supervised())
    return Error{Code::kInvalid, Str(Option("large-model"),
                                     " is for models that have parameters for each feature, user or "
                                     "item that rows name, of which a step needs a few; this one needs all of them")};
  if (options.codec != "none" && TRY(MakeCodec(options))->uses_residual())
    return Error{Code::kInvalid, Str(Option("codec"), " ", options.codec, " does not go with ", Option("large-model"),
                                     ": what it holds back would take as much memory as the model; use fp16 or bf16")};
  return {};
}

Result<void> Server::CheckSynchrony(const StrategyOptions& options, const Synchrony& synchrony) {
  if (synchrony.bulk() && options.push_every > 1)
    return Error{Code::kInvalid, Str(Option("synchrony"), " bsp does not go with ", Option("push-every"), " ",
                                     options.push_every, "; use ssp, asp or bap")};
  if (options.backup > 0) TRY(BackupServer::CheckSynchrony(options, synchrony));
  if (options.fetch_every > synchrony.MostFetchEvery())
    return Error{Code::kInvalid, Str(Option("fetch-every"), " ", options.fetch_every, " is older than ",
                                     synchrony.ToText(), " allows; give at most ", synchrony.MostFetchEvery())};
  return {};
}

}  // namespace server

Result<StrategyPtr> MakeServer(const StrategyOptions& options, const Strategy::World& world) {
  return StrategyPtr(TRY(server::Server::Make(options, world)));
}

}  // namespace freshet::strategy
