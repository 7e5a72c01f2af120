#include "strategy/server/server.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/option.h"
#include "model/digest.h"
#include "strategy/gather_numbers.h"
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
                                         fabric.rank(), fabric.size(), false, std::move(near));
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

Result<void> Server::Settle() {
  Agreement agreed = TRY(Agree());
  if (!agreed.anybody) return {};
  const auto begun = world_.clock.Now();
  TRY(Open());
  TRY(CatchUp());
  TRY(Rest());
  TRY(Barrier());
  if (size() > 1) TRY(letters().CloseTogether());
  CheckLedger();
  agreed = TRY(Agree());  // on what was pushed at the end
  TRY(ShareAll(agreed));
  // What a codec loses depends on what travels together: then all stays where it is, so that a run that is stopped goes on
  // to the same model.
  if (!estate_.keeps && estate_.codec == nullptr) TRY(MoveHot());
  settled_clock_ = agreed.clock;
  if (!estate_.keeps) {
    estate_.MeetAt(agreed.clock);
    began_ = false;
    away_ = dry();  // until the epoch ends
  }
  const base::Lock lock(mutex_);
  times_.stale.fill(0);
  for (auto& [shard, holding] : estate_.holdings) {
    if (holding.shard == nullptr) continue;
    if (!estate_.keeps) holding.shard->Return(agreed.clock, agreed.dry);
    if (!Answers(shard)) continue;
    for (std::size_t i = 0; i < times_.stale.size(); ++i) times_.stale[i] += holding.shard->staleness()[i];
  }
  times_.exchange += base::Seconds(world_.clock.Now() - begun);
  return {};
}

// Where losses are survived all stand at the same row now: every shard has every worker's update of every piece before it,
// each once, since a shard takes a worker's updates in order and none twice.
void Server::CheckLedger() const {
  if (!estate_.keeps) return;
  const base::Lock lock(mutex_);
  for (const auto& [shard, holding] : estate_.holdings)
    for (const std::uint64_t applied : holding.shard->Applied()) CHECK(applied >= estate_.clock() || !Answers(shard));
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
  if (estate_.ahead || !Dense() || copy.outstanding() == 0)
    TRY(SendAll(Bundle(estate_.number, {copy.Ask(RowsOf(piece, shown), share.clock)})));
  TRY(estate_.ahead ? TakeAnswers([&] { return copy.AskedAt(share.clock) + StepsAhead() > share.clock; })
                    : AwaitAnswers());
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
  // What does not depend on the next rows is asked for at once, and comes while they are read.
  if (Dense() && worker == estate_.number) told_now.push_back(copy.Ask({}, share.clock));
  if (estate_.keeps) told_now.push_back(AskAboutKept(share));
  TRY(SendAll(Bundle(worker, std::move(told_now))));
  TRY(letters().AwaitTaken(kMostOnTheirWay * static_cast<std::size_t>(estate_.shards)));
  TRY(At("step.exchanged"));
  const auto told = world_.clock.Now();
  if (estate_.ahead && made.weight > 0) LearnAhead(made.weight);
  const auto learned = world_.clock.Now();
  if (estate_.ahead && ticketed_) TRY(AwaitTicket());
  times_.exchange += base::Seconds(told - computed) + base::Seconds(world_.clock.Now() - learned);
  times_.apply += base::Seconds(learned - told);
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

void Server::KeepPushes(Estate::Share& share, std::uint64_t clock, const Copy::Letters& letters) const {
  if (!estate_.keeps) return;
  for (std::size_t s = 0; s < letters.size(); ++s) share.kept[s].push_back({clock, letters[s]});
}

Copy::Letters Server::AskAboutKept(const Estate::Share& share) {
  std::vector<bool> many;
  for (const auto& kept : share.kept) many.push_back(kept.size() >= kMostKept);
  return estate_.copy.AskHave(many);
}

Copy::Letters Server::Bundle(int worker, std::vector<Copy::Letters> all) {
  Copy::Letters bundled(static_cast<std::size_t>(estate_.shards));
  for (std::size_t s = 0; s < bundled.size(); ++s) {
    std::vector<std::vector<std::byte>*> letters;
    for (Copy::Letters& each : all)
      if (s < each.size() && !each[s].empty()) letters.push_back(&each[s]);
    for (const auto* letter : letters)
      if (static_cast<Kind>((*letter)[0]) != Kind::kPush) expected_[s].push_back(world_.clock.Now());
    if (letters.empty()) continue;
    if (!estate_.keeps && (letters.size() == 1 || static_cast<Kind>((*letters[0])[0]) == Kind::kPush)) {
      bundled[s] = Append(letters);
      continue;
    }
    BundleHead head{.shard = static_cast<std::uint16_t>(s),
                    .worker = static_cast<std::uint16_t>(worker),
                    .letters = letters.size()};
    for (const auto* letter : letters) head.hollow += LeftOut(*letter);
    Writer writer(head);
    for (const auto* letter : letters) {
      const std::uint64_t size = letter->size();
      writer.Put(&size, sizeof size);
      writer.Put(letter->data(), size);
    }
    bundled[s] = writer.Take();
  }
  return bundled;
}

// To the first, which may be long: without a copy of it.
std::vector<std::byte> Server::Append(const std::vector<std::vector<std::byte>*>& letters) {
  const std::uint64_t bytes = letters[0]->size();
  if (letters.size() == 1) return std::move(*letters[0]);
  std::memcpy(letters[0]->data() + offsetof(PushHead, bytes), &bytes, sizeof bytes);
  Writer writer(std::move(*letters[0]));
  for (std::size_t i = 1; i < letters.size(); ++i) {
    const std::uint64_t size = letters[i]->size();
    writer.Put(&size, sizeof size);
    writer.Put(letters[i]->data(), size);
  }
  return writer.Take();
}

Result<void> Server::SendAll(Copy::Letters letters_by_shard) {
  for (std::size_t s = 0; s < letters_by_shard.size(); ++s) {
    auto& bytes = letters_by_shard[s];
    const int to = HostOf(static_cast<int>(s));
    if (bytes.empty()) continue;
    const std::size_t hollow = LeftOut(bytes);
    TRY(to == rank() ? Handle(to, bytes) : letters().Send(to, std::move(bytes), hollow));
  }
  return {};
}

Result<void> Server::GoOn() {
  estate_.copy.Forget();
  TRY(Open());
  for (auto& [worker, share] : estate_.shares)
    for (std::size_t s = 0; s < share.kept.size(); ++s)
      for (const Estate::Kept& kept : share.kept[s]) {
        Copy::Letters letters(share.kept.size());
        letters[s] = kept.letter;
        const Notice none;  // what was ordered before is not any more, unless somebody has followed it
        std::memcpy(letters[s].data() + offsetof(PushHead, notice), &none, sizeof none);
        TRY(SendAll(Bundle(worker, {std::move(letters)})));
      }
  return {};
}

// Of an answer by this member itself.
Result<void> Server::OnLetter(int from, std::span<const std::byte> bytes) {
  if (from != rank()) return Reader::Damaged();
  return TakeAnswer(bytes);
}

Result<bool> Server::Serve(int from, std::span<const std::byte> bytes) {
  const auto kind = static_cast<Kind>(bytes[0]);
  if (kind < Kind::kPush || kind > Kind::kHave || kind == Kind::kAnswer) return false;
  TRY(Handle(from, bytes));
  return true;
}

Result<void> Server::Handle(int from, std::span<const std::byte> bytes) {
  const base::Lock lock(mutex_);
  Reader reader(bytes);
  switch (static_cast<Kind>(bytes[0])) {
    case Kind::kBundle: {
      const auto head = TRY(reader.Take<BundleHead>());
      const int shard = estate_.keeps ? head.shard : rank() - (size() - estate_.shards);
      const int worker = estate_.keeps ? head.worker : from;
      for (std::uint64_t i = 0; i < head.letters; ++i)
        TRY(TakeIn(shard, worker, TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>()))), true));
      break;
    }
    case Kind::kForward: {
      const auto head = TRY(reader.Take<ForwardHead>());
      const auto holding = estate_.holdings.find(head.shard);
      if (holding == estate_.holdings.end() || head.number != holding->second.letters + 1) return Reader::Damaged();
      TRY(TakeIn(head.shard, head.worker, bytes.subspan(sizeof head), false));
      break;
    }
    case Kind::kHave: {
      const auto head = TRY(reader.Take<HaveHead>());
      TRY(Release(head.shard, head.number));
      break;
    }
    case Kind::kPush: {
      const int shard = rank() - (size() - estate_.shards);
      const auto head = TRY(Reader(bytes).Take<PushHead>());
      TRY(TakeIn(shard, from, TRY(reader.Bytes(head.bytes == 0 ? bytes.size() : head.bytes)), true));
      while (reader.left() > 0) TRY(TakeIn(shard, from, TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>()))), true));
      break;
    }
    default:
      TRY(TakeIn(rank() - (size() - estate_.shards), from, bytes, true));
  }
  while (!sent_.empty() && world_.collectives.fabric().Done(sent_.front().transfer)) {
    TRY(world_.collectives.fabric().Wait(sent_.front().transfer));
    sent_.pop_front();
  }
  return {};
}

Result<void> Server::TakeIn(int shard, int worker, std::span<const std::byte> letter, bool first) {
  const auto found = estate_.holdings.find(shard);
  if (found == estate_.holdings.end() || found->second.shard == nullptr || first != Answers(shard) || letter.empty() ||
      worker >= estate_.workers)
    return Reader::Damaged();
  if (static_cast<Kind>(letter[0]) == Kind::kTicket) {
    const auto wanted = TRY(Reader(letter).Take<Ticket>());
    if (wanted.count > kMostAhead) return Reader::Damaged();
    const std::uint64_t next = std::exchange(next_ticket_, next_ticket_ + wanted.count);
    return Answer({worker, Writer(Ticket{.piece = next, .count = wanted.count}).Take()});
  }
  Estate::Holding& holding = found->second;
  auto answers = TRY(holding.shard->On(worker, letter, world_.clock.Now()));
  Spend(holding.shard->TakeEffort());
  ++holding.letters;
  const std::uint64_t shown = std::exchange(holding.shown, holding.shard->updates());
  if (world_.panel != nullptr && first) world_.panel->AddUpdates(holding.shown - shown);
  const std::vector<int>& chain = estate_.chains[static_cast<std::size_t>(shard)];
  const auto here = std::find(chain.begin(), chain.end(), rank());
  CHECK(here != chain.end());
  if (here + 1 != chain.end()) {
    Writer writer(ForwardHead{.shard = static_cast<std::uint16_t>(shard),
                              .worker = static_cast<std::uint16_t>(worker),
                              .number = holding.letters});
    writer.Put(letter.data(), letter.size());
    TRY(Write(*(here + 1), letters().tag(), writer.Take()));
  } else if (!first) {
    TRY(Write(chain.front(), letters().tag(),
              Writer(HaveHead{.shard = static_cast<std::uint16_t>(shard), .number = holding.letters}).Take()));
  }
  for (Shard::Answer& answer : answers) {
    if (chain.size() == 1)
      TRY(Answer(std::move(answer)));
    else
      withheld_.push_back({shard, holding.letters, std::move(answer)});
  }
  return {};
}

Result<void> Server::Release(int shard, std::uint64_t up_to) {
  std::deque<Withheld> rest;
  for (Withheld& each : withheld_) {
    if (each.shard == shard && each.letter <= up_to)
      TRY(Answer(std::move(each.answer)));
    else
      rest.push_back(std::move(each));
  }
  withheld_ = std::move(rest);
  return {};
}

Result<void> Server::Answer(Shard::Answer answer) {
  const int to = estate_.worker_at[static_cast<std::size_t>(answer.to)];
  if (to != rank()) return Write(to, answer_tag_, std::move(answer.bytes));
  letters().SendToSelf(std::move(answer.bytes));
  return {};
}

Result<void> Server::Write(int to, fabric::Tag tag, std::vector<std::byte> bytes) {
  Sent& sent = sent_.emplace_back(Sent{std::move(bytes), {}});
  sent.transfer = TRY(world_.collectives.fabric().StartHollowSend(to, tag, sent.bytes, LeftOut(sent.bytes)));
  return {};
}

Result<void> Server::TakeAnswer(std::span<const std::byte> bytes) {
  const bool ticket = !bytes.empty() && static_cast<Kind>(bytes[0]) == Kind::kTicket;
  const std::size_t shard = ticket ? 0 : TRY(Reader(bytes).Take<AnswerHead>()).shard;
  if (shard >= expected_.size() || expected_[shard].empty()) return Reader::Damaged();
  const auto took = world_.clock.Now() - expected_[shard].front();
  expected_[shard].pop_front();
  if (!Answers(static_cast<int>(shard))) fastest_ = std::min(fastest_.value_or(took), took);
  if (ticket) {
    const auto given = TRY(Reader(bytes).Take<Ticket>());
    if (given.count > tickets_coming_) return Reader::Damaged();
    for (std::uint64_t i = 0; i < given.count; ++i) tickets_.push_back(given.piece + i);
    tickets_coming_ -= given.count;
    return {};
  }
  const AnswerHead head = TRY(estate_.copy.Take(static_cast<int>(shard), bytes));
  Spend(estate_.copy.TakeEffort());
  waits_.Took(head);
  newest_ = std::max(newest_, head.clock);
  const Notice& notice = head.notice;
  Learn({notice.number, notice.clock, static_cast<Order>(notice.what), notice.synchrony});
  if (!estate_.keeps) return {};
  estate_.Forget(shard, head.clock);
  auto& kept = estate_.shares[head.worker].kept[shard];
  while (!kept.empty() && kept.front().clock < head.have) kept.pop_front();
  return {};
}

Result<void> Server::AwaitAnswers() {
  TRY(ListenForAnswers());
  while (!coming_.empty()) TRY(AwaitAnswer(0));
  return AwaitOwnAnswers();
}

Result<void> Server::AwaitOwnAnswers() {
  for (int s = 0; s < estate_.shards; ++s)
    while (Answers(s) && !expected_[static_cast<std::size_t>(s)].empty()) TRY(AwaitLetter());
  return {};
}

Result<void> Server::TakeAnswers(const std::function<bool()>& enough) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  TRY(AwaitOwnAnswers());
  TRY(ListenForAnswers());
  while (!coming_.empty()) {
    const std::vector<std::size_t> next = NextOfEach();
    const auto here =
        std::find_if(next.begin(), next.end(), [&](std::size_t i) { return fabric.Done(coming_[i].transfer); });
    if (here != next.end()) {
      TRY(AwaitAnswer(*here));
      continue;
    }
    if (enough()) break;
    std::vector<fabric::Transfer> transfers;
    for (const std::size_t i : next) transfers.push_back(coming_[i].transfer);
    TRY(AwaitAnswer(next[TRY(fabric.WaitAny(transfers, Letterbox::kPatience))]));
  }
  return {};
}

// What a server answers is taken in the order in which it did, whatever comes while one looks.
std::vector<std::size_t> Server::NextOfEach() const {
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < coming_.size(); ++i)
    if (std::none_of(next.begin(), next.end(), [&](std::size_t j) { return coming_[j].shard == coming_[i].shard; }))
      next.push_back(i);
  return next;
}

Result<void> Server::ListenForAnswers() {
  for (int s = 0; s < estate_.shards; ++s) {
    const auto here =
        std::count_if(coming_.begin(), coming_.end(), [s](const Coming& each) { return each.shard == s; });
    for (auto i = here; !Answers(s) && i < std::ssize(expected_[static_cast<std::size_t>(s)]); ++i)
      coming_.push_back({s, TRY(world_.collectives.fabric().StartBorrow(HostOf(s), answer_tag_))});
  }
  return {};
}

Result<void> Server::AwaitAnswer(std::size_t i) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  const Coming coming = coming_[i];
  coming_.erase(coming_.begin() + static_cast<std::ptrdiff_t>(i));
  const fabric::Arrived arrived = TRY(fabric.Wait(coming.transfer, Letterbox::kPatience));
  auto taken = TakeAnswer(arrived.view);
  fabric.Release(coming.transfer);
  return taken;
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

Result<Server::Agreement> Server::Agree() {
  // A worker that reads ahead makes steps of its own, which are not those of the model.
  const std::uint64_t step = began_ ? step_ : world_.optimizer.step();
  std::vector<std::uint64_t> mine = {began_ ? 1u : 0u, furthest(), step, dry() ? 1u : 0u};
  const std::size_t first = mine.size();
  {
    const base::Lock lock(mutex_);
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) mine.push_back(world_.parameters.rows(b));
    for (const auto& [shard, holding] : estate_.holdings) {
      if (holding.shard == nullptr) continue;
      mine[2] = std::max(mine[2], holding.shard->optimizer().step());
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
        mine[first + b] = std::max(mine[first + b], holding.shard->rows(b));
    }
  }
  Agreement agreed;
  agreed.rows.resize(world_.parameters.blocks(), 0);
  for (const auto& bytes : TRY(world_.collectives.Gather(std::as_bytes(std::span<const std::uint64_t>(mine))))) {
    std::vector<std::uint64_t> told(mine.size());
    if (bytes.size() != told.size() * sizeof told[0]) return Reader::Damaged();
    std::memcpy(told.data(), bytes.data(), bytes.size());
    agreed.anybody = agreed.anybody || told[0] != 0;
    agreed.clock = std::max(agreed.clock, told[1]);
    agreed.step = std::max(agreed.step, told[2]);
    agreed.dry.push_back(told[3] != 0);
    for (std::size_t b = 0; b < agreed.rows.size(); ++b) agreed.rows[b] = std::max(agreed.rows[b], told[first + b]);
  }
  return agreed;
}

// Everybody gets what all servers have: of each row the sum of what its server has and of nothing.
Result<void> Server::ShareAll(const Agreement& agreed) {
  TRY(world_.model.MakeRoom(world_.parameters, agreed.rows));
  TRY(world_.optimizer.Follow(world_.parameters));
  {
    const base::Lock lock(mutex_);
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
      for (const bool state : {false, true}) KeepOwn(b, state);
  }
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    for (optimize::Parameters* each : {&world_.parameters, &world_.optimizer.state()}) {
      if (each->width(b) == 0) continue;
      const std::span<float> all = each->Values(b);
      const std::size_t most = estate_.near == nullptr ? all.size() : kPiece;  // what a sum may take beside it
      for (std::size_t first = 0; first < all.size(); first += most)
        TRY(world_.collectives.AllReduce(all.subspan(first, std::min(most, all.size() - first))));
    }
  world_.optimizer.SetStep(agreed.step);
  return {};
}

Result<void> Server::MoveHot() {
  std::vector<std::uint64_t> mine;
  {
    const base::Lock lock(mutex_);
    const auto group_of = [this](std::size_t b) { return estate_.placement.GroupOf(b); };
    const auto rows_of = [this](std::size_t b) { return world_.parameters.rows(b); };
    for (const auto& [shard, holding] : estate_.holdings) {
      const server::Load load =
          holding.shard == nullptr ? server::Load() : holding.shard->heat().TakeLoad(group_of, rows_of);
      mine.push_back(load.bytes);
      for (const auto& each : load.busiest) mine.insert(mine.end(), {each.group, each.range, each.bytes, each.rows});
    }
  }
  std::vector<server::Load> loads;
  for (const auto& told : TRY(GatherNumbers(world_.collectives, mine))) {
    if (told.empty()) continue;  // it serves nobody
    if (told.size() % 4 != 1) return Reader::Damaged();
    server::Load& load = loads.emplace_back(server::Load{.bytes = told[0], .busiest = {}});
    for (std::size_t i = 1; i < told.size(); i += 4)
      load.busiest.push_back({told[i], told[i + 1], told[i + 2], told[i + 3]});
  }
  const std::vector<Move> moves = Balance(std::move(loads));
  if (moves.empty()) return {};
  moved_ += moves.size();
  const base::Lock lock(mutex_);
  for (const Move& move : moves) estate_.placement.Move(move.group, move.range, move.to);
  estate_.copy.Moved();
  for (auto& [shard, holding] : estate_.holdings)
    if (holding.shard != nullptr)
      TRY(holding.shard->Follow(world_.parameters, world_.optimizer.state(), estate_.placement));
  return {};
}

void Server::KeepOwn(std::size_t b, bool state) {
  optimize::Parameters& all = state ? world_.optimizer.state() : world_.parameters;
  const std::uint64_t width = all.width(b);
  for (std::uint64_t first = 0; first < all.rows(b);) {
    const Placement::Stretch stretch = estate_.placement.StretchFrom(b, first, all.rows(b));
    float* const values = all.Row(b, first);
    const auto held = Answers(stretch.server) ? estate_.holdings.find(stretch.server) : estate_.holdings.end();
    if (held != estate_.holdings.end()) {
      // Where nobody has pushed anything, there is no shard yet, and all have the same.
      if (const Shard* const shard = held->second.shard.get(); shard != nullptr) {
        shard->CopyRows(state ? Shard::What::kState : Shard::What::kParameters, b, first, stretch.last, values);
      }
    } else {
      std::fill_n(values, (stretch.last - first) * width, 0.0f);
    }
    first = stretch.last;
  }
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
