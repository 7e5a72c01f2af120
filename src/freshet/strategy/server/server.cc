// A parameter server: the parameters lie in shards with some members, the servers; workers read the rows they need,
// compute, and push what they would change, and servers make the updates (Li et al., "Scaling Distributed Machine
// Learning with the Parameter Server"). How far workers may drift apart is the synchrony's to say. A member may be
// worker and server at once, which is how it is where no number of servers is given.
//
// A server answers on the fabric's own thread, whatever its member does meanwhile. When all meet (Settle), every worker
// tells the servers that it makes no more updates, every member gets every row, and all go on from one clock.
//
// Where nobody waits and all workers are handed all rows, a worker learns from the pieces it has tickets for, and gets the next
// ticket when it has done one: who is slow does fewer. Tickets are numbers of pieces of an epoch; the first server gives them
// out, each once, and everybody begins with two, so that one is always known. Where it takes longer than a step until the
// next one is, who reads ahead asks for twice as many.
//
// Approximate workers read ahead (Copy): a step does not wait for an answer that is on its way. It waits for one that takes
// more steps than the fastest did: then it is the servers that have much to do, and to run on would only make them stale.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/option.h"
#include "model/digest.h"
#include "strategy/own_pace.h"
#include "strategy/packed_rows.h"
#include "strategy/server/copy.h"
#include "strategy/server/shard.h"

namespace freshet::strategy {
namespace {

using server::AnswerHead;
using server::Copy;
using server::Kind;
using server::Placement;
using server::Shard;
using server::Synchrony;

class Server final : public OwnPace {
 public:
  Server(const StrategyOptions& options, const World& world, const Synchrony& synchrony, optimize::Gradient gradient)
      : OwnPace(options, world, kAtOnce),
        synchrony_(synchrony),
        servers_(options.servers == 0 ? size() : options.servers),
        workers_(options.servers == 0 ? size() : size() - options.servers),
        answer_tag_(world.collectives.NextTag()),
        gradient_(std::move(gradient)),
        placement_(Blocks(world.parameters), servers_,
                   {.range_rows = gradient_.buffer == nullptr ? kRangeRows : 0, .alike = !world.model.Supervised()}),
        ahead_(synchrony.kind == Synchrony::Kind::kApproximate && world.model.Supervised()),
        copy_({synchrony, options.fetch_every, options.push_every, ahead_}, world.model, world.parameters,
              world.optimizer.options().schedule.rate, placement_, gradient_),
        expected_(static_cast<std::size_t>(servers_)),
        first_step_(world.optimizer.step()) {
    workspace_.threads = options.threads;
    ticketed_ = options.whole && !synchrony_.bounded() && world.model.Supervised();
    EpochEnded();
  }
  ~Server() override {
    letters().End();
    for (const Sent& sent : answers_) (void)world_.collectives.fabric().Wait(sent.transfer, std::chrono::seconds(1));
  }

  bool has_rows() const override { return rank() < workers_; }
  int readers() const override { return workers_; }
  std::size_t piece() const override {
    return options_.whole && !ticketed_ ? options_.batch : std::max<std::size_t>(options_.batch / workers_, 1);
  }
  data::Batch Share(const data::Batch& piece) const override {
    if (!options_.whole) return piece;
    if (ticketed_) return tickets_.front() == pieces_ ? piece : piece.Slice(0, 0);
    return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), workers_),
                       fabric::ChunkBegin(piece.rows, rank() + 1, workers_));
  }

  void Save(std::vector<data::Tensor>& tensors) const override {
    if (!ticketed_) return;
    saved_.assign(tickets_.begin(), tickets_.end());
    saved_.push_back(pieces_);
    {
      const base::Lock lock(mutex_);
      saved_.push_back(next_ticket_);
    }
    tensors.push_back({"server.tickets", data::DType::kI64, {saved_.size()}, std::as_bytes(std::span(saved_))});
  }
  Result<void> Load(const data::TensorFile& file) override {
    if (!ticketed_) return {};
    const auto saved = TRY(file.Values<std::int64_t>("server.tickets"));
    if (saved.size() < 3) return Error{Code::kCorrupt, "tickets of a worker are missing in the checkpoint"};
    tickets_.assign(saved.begin(), saved.end() - 2);
    pieces_ = static_cast<std::uint64_t>(*(saved.end() - 2));
    const base::Lock lock(mutex_);
    next_ticket_ = static_cast<std::uint64_t>(saved.back());
    return {};
  }

  Result<void> Settle() override {
    Agreement agreed = TRY(Agree());
    if (!agreed.anybody) return {};
    const auto begun = world_.clock.Now();
    TRY(Open());
    TRY(Rest());
    TRY(Barrier());
    if (size() > 1) TRY(letters().CloseTogether());
    agreed = TRY(Agree());  // on what was pushed at the end
    TRY(ShareAll(agreed));
    clock_ = agreed.clock;
    copy_.Settled(clock_);
    began_ = false;
    away_ = dry();  // until the epoch ends
    const base::Lock lock(mutex_);
    if (shard_ != nullptr) {
      shard_->Return(clock_, agreed.dry);
      times_.stale = shard_->staleness();
    }
    times_.exchange += base::Seconds(world_.clock.Now() - begun);
    return {};
  }

 protected:
  Result<void> Begin() override {
    began_ = true;
    step_ = world_.optimizer.step();
    if (!serves()) return {};
    const base::Lock lock(mutex_);
    if (shard_ == nullptr)
      shard_ = TRY(Shard::Make({synchrony_, workers_, options_.slower_when_stale}, world_.model, world_.parameters,
                               world_.optimizer, world_.memory));
    return {};
  }

  Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) override {
    const model::Model& model = world_.model;
    if (ticketed_ && tickets_.front() != pieces_++) return 0.0;  // it is another worker's
    const auto begun = world_.clock.Now();
    const std::vector<std::byte> digest = DigestOf(mine);
    if (ahead_ || gradient_.buffer == nullptr || copy_.outstanding() == 0)
      TRY(SendAll(Bundle({copy_.Ask(mine, clock_)})));
    TRY(ahead_ ? TakeAnswers([this] { return copy_.AskedAt(clock_) + StepsAhead() > clock_; }) : AwaitAnswers());
    const auto asked = world_.clock.Now();
    if (model.observes(world_.parameters, world_.optimizer) == model::Model::Observes::kRows)
      model.Observe(world_.parameters, piece, world_.optimizer);
    gradient_.Clear();
    workspace_.step = first_step_ + clock_;
    double loss = 0, weight = 0;
    const std::size_t parts = std::min<std::size_t>(options_.accumulate, mine.rows), width = model.scores();
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t first = mine.rows * part / parts, last = mine.rows * (part + 1) / parts;
      TRY(model.Reserve(last - first, workspace_));
      loss += model.LossAndGradient(world_.parameters, mine.Slice(first, last), workspace_, gradient_,
                                    scores.subspan(first * width, (last - first) * width));
    }
    for (std::size_t r = 0; r < mine.rows; ++r) weight += mine.weight(r);
    const auto computed = world_.clock.Now();
    std::vector<Copy::Letters> told_now = {copy_.Push(Head(weight), digest)};
    Spend(copy_.TakeEffort());
    ++clock_;
    if (ticketed_) {
      tickets_.pop_front();
      if (const std::uint64_t known = tickets_.size() + tickets_coming_; known < tickets_wanted_) {
        told_now.push_back({server::Writer(server::Ticket{.count = tickets_wanted_ - known}).Take()});
        tickets_coming_ += tickets_wanted_ - known;
      }
    }
    // What does not depend on the next rows is asked for at once, and comes while they are read.
    if (gradient_.buffer != nullptr) told_now.push_back(copy_.Ask({}, clock_));
    TRY(SendAll(Bundle(std::move(told_now))));
    TRY(letters().AwaitTaken(kMostOnTheirWay * static_cast<std::size_t>(servers_)));
    const auto told = world_.clock.Now();
    if (ahead_ && weight > 0) LearnAhead(weight);
    const auto learned = world_.clock.Now();
    if (ahead_ && ticketed_) TRY(AwaitTicket());
    const double waited = std::min(std::exchange(waited_, 0), base::Seconds(asked - begun));
    times_.wait += waited;
    times_.exchange += base::Seconds(asked - begun) - waited + base::Seconds(told - computed);
    times_.exchange += base::Seconds(world_.clock.Now() - learned);
    times_.compute += base::Seconds(computed - asked);
    times_.apply += base::Seconds(learned - told);
    return loss;
  }

  // Of an answer by this member itself.
  Result<void> OnLetter(int from, std::span<const std::byte> bytes) override {
    if (from != rank()) return server::Reader::Damaged();
    return Take(ServerAt(from), bytes);
  }

  Result<bool> Serve(int from, std::span<const std::byte> bytes) override {
    const auto kind = static_cast<Kind>(bytes[0]);
    if (kind < Kind::kPush || kind > Kind::kBundle || kind == Kind::kAnswer) return false;
    TRY(Handle(from, bytes));
    return true;
  }

  std::uint64_t clock() const override { return clock_; }
  // Nobody can be further than this before it has read something that was pushed after the order, and so knows of it. Who
  // has come to the end of rows that all have is as far as the others will come.
  std::uint64_t meeting() const override {
    if (!synchrony_.bounded() || (dry() && !options_.whole)) return 0;
    return dry() ? clock_ : clock_ + synchrony_.staleness + 2;
  }
  // Tells what was held back, and that there is no more to come: nobody waits for this worker any more.
  Result<void> Rest() override {
    if (std::exchange(away_, true) || !has_rows()) return {};
    if (auto rest = copy_.PushRest(Head(1)); !rest.empty()) {
      TRY(SendAll(Bundle({std::move(rest)})));
      ++clock_;
    }
    TRY(SendAll(Bundle({copy_.Away()})));
    return AwaitAnswers();
  }
  Result<void> Leave() override { return Barrier(); }
  void EpochEnded() override {
    const auto workers = static_cast<std::uint64_t>(workers_);
    pieces_ = 0;
    tickets_ = {static_cast<std::uint64_t>(rank()), static_cast<std::uint64_t>(rank()) + workers};
    const base::Lock lock(mutex_);
    next_ticket_ = 2 * workers;
  }

 private:
  static constexpr std::size_t kMostOnTheirWay = 4;  // letters to each server
  static constexpr std::size_t kAtOnce = 4;          // that come in, so that one is on its way while another is added
  static constexpr std::uint64_t kMostAhead = 64;    // steps
  // Of rows that are asked for one by one: few, since those that most ask for often stand beside each other.
  static constexpr std::uint64_t kRangeRows = 64;
  struct Sent {
    std::vector<std::byte> bytes;
    fabric::Transfer transfer;
  };
  struct Agreement {
    bool anybody = false;  // has begun since all met
    std::uint64_t clock = 0, step = 0;
    std::vector<bool> dry;            // by rank
    std::vector<std::uint64_t> rows;  // by block
  };

  std::uint64_t StepsAhead() const {
    const double step = (times_.read + times_.compute + times_.apply) / static_cast<double>(times_.steps + 1);
    const double steps = step > 0 ? std::ceil(base::Seconds(fastest_.value_or(base::Clock::Duration{})) / step) : 1;
    return static_cast<std::uint64_t>(std::clamp(steps, 1.0, static_cast<double>(kMostAhead)));
  }

  // By oneself, until servers have answered.
  void LearnAhead(double weight) {
    world_.optimizer.SetProgress(progress_);
    copy_.Learn(weight * workers_, world_.optimizer, workspace_);
    Spend(copy_.TakeEffort());
  }

  Result<void> AwaitTicket() {
    if (!tickets_.empty()) return {};
    tickets_wanted_ = std::min(2 * tickets_wanted_, kMostAhead);
    return TakeAnswers([this] { return !tickets_.empty(); });
  }

  static std::vector<optimize::Block> Blocks(const optimize::Parameters& parameters) {
    std::vector<optimize::Block> blocks;
    for (std::size_t b = 0; b < parameters.blocks(); ++b) blocks.push_back(parameters.block(b));
    return blocks;
  }
  int RankOf(int server) const { return size() - servers_ + server; }
  int ServerAt(int rank) const { return rank - (size() - servers_); }
  bool serves() const { return ServerAt(rank()) >= 0; }

  server::PushHead Head(double weight) const {
    const Due& order = last_order();
    return {.clock = clock_,
            .weight = weight,
            .progress = progress_,
            .notice = {order.number, order.clock, static_cast<std::uint64_t>(order.order)}};
  }
  void SetProgress(double progress) override { progress_ = progress; }

  std::vector<std::byte> DigestOf(const data::Batch& mine) {
    digest_.width = mine.sparse() ? 0 : mine.width;
    digest_.ClearRows();
    model::Digest(world_.model, world_.parameters, mine, world_.optimizer, digest_);
    return digest_.size() == 0 ? std::vector<std::byte>() : PackRows(digest_);
  }

  // What goes to one server goes as one letter.
  Copy::Letters Bundle(std::vector<Copy::Letters> all) {
    Copy::Letters bundled(static_cast<std::size_t>(servers_));
    for (std::size_t s = 0; s < bundled.size(); ++s) {
      std::vector<std::vector<std::byte>*> letters;
      for (Copy::Letters& each : all)
        if (s < each.size() && !each[s].empty()) letters.push_back(&each[s]);
      for (const auto* letter : letters)
        if (static_cast<Kind>((*letter)[0]) != Kind::kPush) expected_[s].push_back(world_.clock.Now());
      if (letters.empty()) continue;
      if (letters.size() == 1) {
        bundled[s] = std::move(*letters[0]);
        continue;
      }
      server::BundleHead head{.letters = letters.size()};
      for (const auto* letter : letters) head.hollow += server::LeftOut(*letter);
      server::Writer writer(head);
      for (const auto* letter : letters) {
        const std::uint64_t size = letter->size();
        writer.Put(&size, sizeof size);
        writer.Put(letter->data(), size);
      }
      bundled[s] = writer.Take();
    }
    return bundled;
  }

  // Letters whose answers are expected already.
  Result<void> SendAll(Copy::Letters letters_by_server) {
    for (std::size_t s = 0; s < letters_by_server.size(); ++s) {
      auto& bytes = letters_by_server[s];
      const int to = RankOf(static_cast<int>(s));
      if (bytes.empty()) continue;
      const std::size_t hollow = server::LeftOut(bytes);
      TRY(to == rank() ? Handle(to, bytes) : letters().Send(to, std::move(bytes), hollow));
    }
    return {};
  }

  void Spend(const server::Effort& effort) {
    fabric::Fabric& fabric = world_.collectives.fabric();
    fabric.Spend("copy", effort.copied);
    fabric.Spend("add", effort.added);
    fabric.Spend("apply", effort.applied);
    fabric.Spend("rows", effort.rows);
  }

  // On the fabric's own thread, or from this member to itself.
  Result<void> Handle(int from, std::span<const std::byte> bytes) {
    fabric::Fabric& fabric = world_.collectives.fabric();
    const base::Lock lock(mutex_);
    if (shard_ == nullptr) return server::Reader::Damaged();
    Shard::Answers answers;
    if (static_cast<Kind>(bytes[0]) != Kind::kBundle) {
      TRY(Answer(from, bytes, answers));
    } else {
      server::Reader reader(bytes);
      const auto head = TRY(reader.Take<server::BundleHead>());
      for (std::uint64_t i = 0; i < head.letters; ++i)
        TRY(Answer(from, TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>()))), answers));
    }
    Spend(shard_->TakeEffort());
    for (Shard::Answer& answer : answers) {
      if (answer.to == rank()) {
        letters().SendToSelf(std::move(answer.bytes));
        continue;
      }
      Sent& sent = answers_.emplace_back(Sent{std::move(answer.bytes), {}});
      sent.transfer = TRY(fabric.StartHollowSend(answer.to, answer_tag_, sent.bytes, server::LeftOut(sent.bytes)));
    }
    while (!answers_.empty() && fabric.Done(answers_.front().transfer)) {
      TRY(fabric.Wait(answers_.front().transfer));
      answers_.pop_front();
    }
    return {};
  }

  Result<void> Answer(int from, std::span<const std::byte> letter, Shard::Answers& answers) REQUIRES(mutex_) {
    if (!letter.empty() && static_cast<Kind>(letter[0]) == Kind::kTicket) {
      const auto wanted = TRY(server::Reader(letter).Take<server::Ticket>());
      if (wanted.count > kMostAhead) return server::Reader::Damaged();
      answers.push_back({from, server::Writer(server::Ticket{.piece = next_ticket_, .count = wanted.count}).Take()});
      next_ticket_ += wanted.count;
      return {};
    }
    for (Shard::Answer& answer : TRY(shard_->On(from, letter, world_.clock.Now())))
      answers.push_back(std::move(answer));
    return {};
  }

  Result<void> Take(int server, std::span<const std::byte> bytes) {
    auto& expected = expected_[static_cast<std::size_t>(server)];
    if (expected.empty()) return server::Reader::Damaged();
    const auto took = world_.clock.Now() - expected.front();
    expected.pop_front();
    if (RankOf(server) != rank()) fastest_ = std::min(fastest_.value_or(took), took);
    if (!bytes.empty() && static_cast<Kind>(bytes[0]) == Kind::kTicket) {
      const auto given = TRY(server::Reader(bytes).Take<server::Ticket>());
      if (given.count > tickets_coming_) return server::Reader::Damaged();
      for (std::uint64_t i = 0; i < given.count; ++i) tickets_.push_back(given.piece + i);
      tickets_coming_ -= given.count;
      return {};
    }
    const AnswerHead head = TRY(copy_.Take(server, bytes));
    Spend(copy_.TakeEffort());
    waited_ = std::max(waited_, head.waited);
    Learn({head.notice.number, head.notice.clock, static_cast<Order>(head.notice.what)});
    return {};
  }

  // To all that was asked.
  Result<void> AwaitAnswers() {
    TRY(ListenForAnswers());
    while (!coming_.empty()) TRY(TakeAnswer(0));
    return AwaitOwnAnswers();
  }
  Result<void> AwaitOwnAnswers() {
    while (serves() && !expected_[static_cast<std::size_t>(ServerAt(rank()))].empty()) TRY(AwaitLetter());
    return {};
  }

  // Those that are here, and more until that is enough.
  template <class Enough>
  Result<void> TakeAnswers(const Enough& enough) {
    fabric::Fabric& fabric = world_.collectives.fabric();
    TRY(AwaitOwnAnswers());
    TRY(ListenForAnswers());
    for (std::size_t i = 0; i < coming_.size();) {
      if (fabric.Done(coming_[i].transfer))
        TRY(TakeAnswer(i));
      else
        ++i;
    }
    while (!enough() && !coming_.empty()) {
      std::vector<fabric::Transfer> transfers;
      for (const Coming& each : coming_) transfers.push_back(each.transfer);
      TRY(TakeAnswer(TRY(fabric.WaitAny(transfers, Letterbox::kPatience))));
    }
    return {};
  }

  Result<void> ListenForAnswers() {
    for (int s = 0; s < servers_; ++s) {
      const auto here =
          std::count_if(coming_.begin(), coming_.end(), [s](const Coming& each) { return each.server == s; });
      for (auto i = here; RankOf(s) != rank() && i < std::ssize(expected_[static_cast<std::size_t>(s)]); ++i)
        coming_.push_back({s, TRY(world_.collectives.fabric().StartBorrow(RankOf(s), answer_tag_))});
    }
    return {};
  }

  Result<void> TakeAnswer(std::size_t i) {
    fabric::Fabric& fabric = world_.collectives.fabric();
    const Coming coming = coming_[i];
    coming_.erase(coming_.begin() + static_cast<std::ptrdiff_t>(i));
    const fabric::Arrived arrived = TRY(fabric.Wait(coming.transfer, Letterbox::kPatience));
    const auto taken = Take(coming.server, arrived.view);
    fabric.Release(coming.transfer);
    return taken;
  }

  Result<Agreement> Agree() {
    // A worker that reads ahead makes steps of its own, which are not those of the model.
    const std::uint64_t step = began_ ? step_ : world_.optimizer.step();
    std::vector<std::uint64_t> mine = {began_ ? 1u : 0u, clock_, step, dry() ? 1u : 0u};
    const std::size_t first = mine.size();
    {
      const base::Lock lock(mutex_);
      if (shard_ != nullptr) mine[2] = std::max(mine[2], shard_->optimizer().step());
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
        mine.push_back(std::max(world_.parameters.rows(b), shard_ == nullptr ? 0 : shard_->parameters().rows(b)));
    }
    Agreement agreed;
    agreed.rows.resize(world_.parameters.blocks(), 0);
    for (const auto& bytes : TRY(world_.collectives.Gather(std::as_bytes(std::span<const std::uint64_t>(mine))))) {
      std::vector<std::uint64_t> told(mine.size());
      if (bytes.size() != told.size() * sizeof told[0]) return server::Reader::Damaged();
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
  Result<void> ShareAll(const Agreement& agreed) {
    TRY(world_.model.MakeRoom(world_.parameters, agreed.rows));
    TRY(world_.optimizer.Follow(world_.parameters));
    {
      const base::Lock lock(mutex_);
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) {
        KeepOwn(b, world_.parameters, shard_ == nullptr ? nullptr : &shard_->parameters());
        KeepOwn(b, world_.optimizer.state(), shard_ == nullptr ? nullptr : &shard_->optimizer().state());
      }
    }
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
      for (optimize::Parameters* each : {&world_.parameters, &world_.optimizer.state()})
        if (each->width(b) > 0 && each->rows(b) > 0) TRY(world_.collectives.AllReduce(each->Values(b)));
    world_.optimizer.SetStep(agreed.step);
    return {};
  }

  void KeepOwn(std::size_t b, optimize::Parameters& all, const optimize::Parameters* own) {
    const std::uint64_t width = all.width(b);
    for (std::uint64_t first = 0; first < all.rows(b);) {
      const Placement::Stretch stretch = placement_.StretchFrom(b, first, all.rows(b));
      float* const values = all.Row(b, first);
      if (serves() && stretch.server == ServerAt(rank())) {
        const std::uint64_t last = std::min(stretch.last, own == nullptr ? 0 : own->rows(b));
        if (last > first) std::copy_n(own->Row(b, first), (last - first) * width, values);
      } else {
        std::fill_n(values, (stretch.last - first) * width, 0.0f);
      }
      first = stretch.last;
    }
  }

  const Synchrony synchrony_;
  const int servers_, workers_;  // the last ranks serve, the first ones work; all do both where nothing was said
  const fabric::Tag answer_tag_;
  optimize::Gradient gradient_;
  Placement placement_;
  const bool ahead_;
  Copy copy_;
  model::Workspace workspace_;
  data::Rows digest_;
  struct Coming {
    int server = 0;
    fabric::Transfer transfer;
  };
  std::vector<std::deque<base::Clock::Duration>> expected_;  // answers, by server: when they were asked for
  std::optional<base::Clock::Duration> fastest_;             // of the answers of others
  std::vector<Coming> coming_;                               // those that are listened for
  const std::uint64_t first_step_;
  std::uint64_t clock_ = 0, step_ = 0;  // its own; of the model, when all last met
  double progress_ = 0, waited_ = 0;
  bool began_ = false, away_ = false;

  bool ticketed_ = false;
  std::uint64_t pieces_ = 0;           // of this epoch that this worker has come past
  std::deque<std::uint64_t> tickets_;  // those it is to learn from next, ascending
  std::uint64_t tickets_wanted_ = 2, tickets_coming_ = 0;
  mutable std::vector<std::int64_t> saved_;

  mutable base::Mutex mutex_;
  std::uint64_t next_ticket_ GUARDED_BY(mutex_) = 0;  // of the first server
  std::unique_ptr<Shard> shard_ GUARDED_BY(mutex_);
  std::deque<Sent> answers_ GUARDED_BY(mutex_);  // on their way
};

}  // namespace

Result<StrategyPtr> MakeServer(const StrategyOptions& options, const Strategy::World& world) {
  const auto not_with = [](const std::string& what) {
    return Error{Code::kInvalid, Str(Option("strategy"), " server does not go with ", what)};
  };
  const Synchrony synchrony = TRY(Synchrony::Parse(options.synchrony));
  const int members = world.collectives.fabric().size();
  if (options.servers < 0 || options.servers >= members)
    return Error{Code::kInvalid, Str(Option("servers"), " ", options.servers, " of ", members,
                                     " members leave no worker; give fewer, or 0: then each is both")};
  if (options.codec != "none") return not_with(Option("codec"));
  if (!world.model.Supervised() && !options.whole) return not_with("clusters of rows that not all workers have");
  if (synchrony.bulk() && options.push_every > 1)
    return not_with(Str(Option("push-every"), " and ", Option("synchrony"), " bsp; use ssp, asp or bap"));
  if (options.fetch_every > synchrony.MostFetchEvery())
    return Error{Code::kInvalid, Str(Option("fetch-every"), " ", options.fetch_every, " is older than ",
                                     synchrony.ToText(), " allows; give at most ", synchrony.MostFetchEvery())};
  auto gradient = TRY(world.model.NewGradient(world.memory));
  return StrategyPtr(std::make_unique<Server>(options, world, synchrony, std::move(gradient)));
}

}  // namespace freshet::strategy
