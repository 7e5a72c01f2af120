#include "strategy/server/server_groups.h"

#include <algorithm>
#include <utility>

#include "base/option.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy {
namespace server {
namespace {

constexpr fabric::Tag kApart = fabric::Tag{1} << 49;
constexpr std::string_view kPlace = "groups.place";

// A worker that pushes what its group has made.
class Leader final : public Server {
 public:
  Leader(const StrategyOptions& options, const World& world, const Synchrony& synchrony, Estate& estate, Group& group)
      : Server(options, world, synchrony, estate), group_(group) {}
  ~Leader() override { letters().End(); }

 protected:
  data::Batch RowsOf(const data::Batch& piece, const data::Batch&) const override {
    rows_ = next_ticket() ? piece : Server::Share(piece);
    return rows_;
  }
  Result<double> Gradient(std::uint64_t clock, const data::Batch& mine, std::span<float> scores) override {
    optimize::Gradient& gradient = estate().gradient;
    const std::uint64_t step = estate().first_step + clock;
    TRY(group_.Tell({.what = Group::Word::What::kGradient, .step = step}));
    TRY(group_.ShareRows(rows_, gradient.buffer != nullptr));
    const double loss = TRY(Server::Gradient(clock, mine, scores));
    TRY(group_.Sum(gradient, step));
    return loss;
  }

 private:
  Group& group_;
  mutable data::Batch rows_;  // of the step it is in, of the whole group
};

}  // namespace

ServerGroups::ServerGroups(const StrategyOptions& options, const World& world, GroupPlan plan)
    : options_(options),
      world_(world),
      plan_(std::move(plan)),
      sent_before_(world.collectives.fabric().bytes_sent()),
      shared_before_(world.collectives.fabric().bytes_shared()) {
  workspace_.threads = options.threads;
}

Result<StrategyPtr> ServerGroups::Make(const StrategyOptions& options, const World& world) {
  const int members = world.collectives.fabric().size();
  if (!options.whole)
    return Error{Code::kInvalid, Str(Option("strategy"), " groups with ", Option("synchrony"), " does not go with ",
                                     Option("split"), " bytes or own: who leads a group reads what all of its rows ",
                                     "need; use ", Option("split"), " rows")};
  if (options.large)
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " groups does not go with ", Option("large-model"),
                     ", since who leads a group hands on rows as they are; use ", Option("strategy"), " server")};
  if (options.servers < 0 || options.servers >= members)
    return Error{Code::kInvalid, Str(Option("servers"), " ", options.servers, " of ", members,
                                     " members leave no worker; give fewer, or 0: then who leads a group is a server")};
  const int workers = members - options.servers;
  GroupPlan plan = TRY(GroupPlan::Make(options, workers, std::min(world.collectives.fabric().rank(), workers - 1)));
  std::unique_ptr<ServerGroups> made(new ServerGroups(options, world, std::move(plan)));
  TRY(made->Start());
  return StrategyPtr(std::move(made));
}

Result<void> ServerGroups::Start() {
  if (has_rows()) group_ = TRY(Group::Make(options_, world_, plan_.members));
  const Synchrony synchrony = TRY(Synchrony::Parse(options_.synchrony));
  if (has_rows() && !group_->leads()) {
    TRY(Server::CheckSynchrony(options_, synchrony));
    gradient_.emplace(TRY(world_.model.NewGradient(world_.memory)));
    if (Server::GivesTickets(options_, synchrony, world_.model)) ticket_ = static_cast<std::uint64_t>(plan_.mine);
    return {};
  }
  std::vector<int> ranks = plan_.leaders;
  for (int rank = readers(); rank < size(); ++rank) ranks.push_back(rank);
  served_ = std::make_unique<fabric::Subset>(world_.collectives.fabric(), ranks, kApart);
  fabric::Collectives::Options how = world_.collectives.options();
  if (how.algorithm == fabric::Algorithm::kNative) how.algorithm = fabric::Algorithm::kAuto;  // of all members alone
  how.table = {};                                                                             // likewise
  served_collectives_ = std::make_unique<fabric::Collectives>(*served_, how);
  const World inner{*served_collectives_, world_.model, world_.parameters, world_.optimizer, world_.memory,
                    world_.clock,         world_.trace, world_.at,         world_.panel};
  server_ = TRY(Server::MakeBy(options_, inner, [&](const Synchrony& is, Estate& estate) -> std::unique_ptr<Server> {
    if (group_ == nullptr) return std::make_unique<Server>(options_, inner, is, estate);
    return std::make_unique<Leader>(options_, inner, is, estate, *group_);
  }));
  return {};
}

std::size_t ServerGroups::piece() const {
  if (server_ != nullptr) return server_->piece();
  const auto groups = static_cast<std::uint64_t>(plan_.groups);
  return ticket_ ? std::max<std::size_t>(options_.batch / groups, 1) : options_.batch;
}

data::Batch ServerGroups::RowsOfGroup(const data::Batch& piece) const {
  if (ticket_) return *ticket_ == passed_ ? piece : piece.Slice(0, 0);
  return piece.Slice(fabric::ChunkBegin(piece.rows, plan_.mine, plan_.groups),
                     fabric::ChunkBegin(piece.rows, plan_.mine + 1, plan_.groups));
}

data::Batch ServerGroups::Share(const data::Batch& piece) const {
  return group_->Share(server_ != nullptr ? server_->Share(piece) : RowsOfGroup(piece));
}

Result<std::optional<double>> ServerGroups::Step(const data::Batch& piece, const data::Batch& mine,
                                                 std::span<float> scores) {
  if (leads()) TRY(group_->Listen());
  if (server_ != nullptr) {
    const auto loss = TRY(server_->Step(piece, mine, scores));
    TRY(TellWhereWeAre(false));
    return loss;
  }
  if (stop_wanted_) TRY(group_->WantStop());
  double loss = 0;
  const auto begun = world_.clock.Now();
  Group::Word word = TRY(group_->Hear());
  times_.wait += base::Seconds(world_.clock.Now() - begun);
  if (word.what == Group::Word::What::kGradient) {
    loss = TRY(FollowGradient(word, piece, mine, scores));
    word = TRY(group_->Hear());
  }
  ++passed_;
  if (mine.rows > 0) ++times_.steps;
  times_.rows += mine.rows;
  TakeWord(word);
  return std::optional<double>(loss);
}

Result<double> ServerGroups::FollowGradient(const Group::Word& word, const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const model::Model& model = world_.model;
  const auto begun = world_.clock.Now();
  TRY(group_->ShareRows(RowsOfGroup(piece), gradient_->buffer != nullptr));
  const auto shared = world_.clock.Now();
  gradient_->Clear();
  workspace_.step = word.step;
  double loss = 0;
  const std::size_t parts = std::min<std::size_t>(options_.accumulate, mine.rows), width = model.scores();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t first = mine.rows * part / parts, last = mine.rows * (part + 1) / parts;
    TRY(model.Reserve(last - first, workspace_));
    loss += model.LossAndGradient(world_.parameters, mine.Slice(first, last), workspace_, *gradient_,
                                  scores.subspan(first * width, (last - first) * width));
  }
  const auto computed = world_.clock.Now();
  TRY(group_->Sum(*gradient_, word.step));
  times_.compute += base::Seconds(computed - shared);
  times_.exchange += base::Seconds(shared - begun) + base::Seconds(world_.clock.Now() - computed);
  return loss;
}

void ServerGroups::TakeWord(const Group::Word& word) {
  agreed_.reset();
  if (word.order != 0) agreed_ = static_cast<OwnPace::Order>(word.order);
  if (word.ended != 0) passed_ = 0;
  ticket_ = word.ticketed != 0 ? std::optional(word.ticket) : std::nullopt;
}

Result<void> ServerGroups::TellWhereWeAre(bool ended) {
  if (!leads()) return {};
  const auto order = server_->agreed();
  const auto ticket = server_->next_ticket();
  return group_->Tell({.what = Group::Word::What::kAfter,
                       .order = order ? static_cast<std::uint64_t>(*order) : 0,
                       .ended = ended ? 1u : 0u,
                       .ticketed = ticket ? 1u : 0u,
                       .ticket = ticket.value_or(0)});
}

Result<bool> ServerGroups::StepDry() {
  if (leads()) TRY(group_->Listen());
  if (server_ != nullptr) {
    const bool ended = TRY(server_->StepDry());
    TRY(TellWhereWeAre(ended));
    return ended;
  }
  if (stop_wanted_) TRY(group_->WantStop());
  const auto begun = world_.clock.Now();
  const Group::Word word = TRY(group_->Hear());
  times_.wait += base::Seconds(world_.clock.Now() - begun);
  TakeWord(word);
  return word.ended != 0;
}

Result<void> ServerGroups::Settle() {
  if (leads()) group_->EndListening();
  if (server_ != nullptr) TRY(server_->Settle());
  return group_ != nullptr ? group_->ShareAll() : Result<void>();
}

void ServerGroups::Ask(bool stop, bool save) {
  stop_wanted_ = stop_wanted_ || stop;
  if (server_ == nullptr) return;
  if (leads()) {
    const auto wanted = group_->StopWanted();  // whose failure the next step meets, too
    stop_wanted_ = stop_wanted_ || (wanted.ok() && wanted.value());
  }
  server_->Ask(stop_wanted_, save);
}

void ServerGroups::Forget() {
  agreed_.reset();
  if (server_ != nullptr) server_->Forget();
}

void ServerGroups::SetProgress(double progress) {
  if (server_ != nullptr)
    static_cast<Strategy&>(*server_).SetProgress(progress);
  else
    world_.optimizer.SetProgress(progress);
}

void ServerGroups::SetShow(Show show) {
  if (server_ != nullptr) server_->SetShow(std::move(show));
}

Result<std::vector<double>> ServerGroups::Sum(const std::vector<double>& mine) {
  return SumInOrder(world_.collectives, mine);
}

StepTimes ServerGroups::times() const {
  if (server_ != nullptr) return server_->times();
  StepTimes times = times_;
  times.bytes_sent = world_.collectives.fabric().bytes_sent() - sent_before_;
  times.bytes_shared = world_.collectives.fabric().bytes_shared() - shared_before_;
  return times;
}

void ServerGroups::CountRead(base::Clock::Duration time) {
  if (server_ != nullptr)
    server_->CountRead(time);
  else
    times_.read += base::Seconds(time);
}

// Who was waited for is a group, in whose place its leader stands.
std::optional<Report> ServerGroups::report() {
  if (server_ == nullptr) return std::nullopt;
  auto report = server_->report();
  std::vector<double> waited(static_cast<std::size_t>(readers()), 0.0);
  for (std::size_t group = 0; group < report->waited_for.size(); ++group)
    waited[static_cast<std::size_t>(plan_.leaders[group])] = report->waited_for[group];
  report->waited_for = std::move(waited);
  return report;
}

void ServerGroups::Save(std::vector<data::Tensor>& tensors) const {
  if (server_ != nullptr) return server_->Save(tensors);
  saved_ = {ticket_ ? static_cast<std::int64_t>(*ticket_) : -1, static_cast<std::int64_t>(passed_)};
  tensors.push_back({std::string(kPlace), data::DType::kI64, {saved_.size()}, std::as_bytes(std::span(saved_))});
}

Result<void> ServerGroups::Load(const data::TensorFile& file) {
  if (server_ != nullptr) return server_->Load(file);
  const auto saved = TRY(file.Values<std::int64_t>(kPlace));
  if (saved.size() != 2) return Error{Code::kCorrupt, "the place of a worker is damaged in the checkpoint"};
  ticket_ = saved[0] < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(saved[0]));
  passed_ = static_cast<std::uint64_t>(saved[1]);
  return {};
}

}  // namespace server

Result<StrategyPtr> MakeServerGroups(const StrategyOptions& options, const Strategy::World& world) {
  return server::ServerGroups::Make(options, world);
}

}  // namespace freshet::strategy
