#include "strategy/ring/elastic_ring.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/option.h"
#include "fabric/subset.h"
#include "strategy/bytes_together.h"
#include "strategy/gather_numbers.h"
#include "strategy/ring/ring.h"
#include "strategy/sum_in_order.h"
#include "strategy/whole_state.h"

namespace freshet::strategy::ring {
namespace {

// Rows of steps are kept until their updates are with two members: so many bytes make a point, however few steps they are.
constexpr std::size_t kMostKeptBytes = 64 << 20;

Error Damaged() {
  return {Code::kCorrupt, "what another member tells of its part is damaged; do all members run the same program?"};
}

// One of the parts that a member gives.
void AddPart(std::string& out, std::string_view part) {
  const std::uint64_t size = part.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += part;
}

}  // namespace

Result<std::unique_ptr<ElasticRing>> ElasticRing::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                       const Learner& learner) {
  if (options.copy_every == 0)
    return Error{Code::kInvalid, Str(Option("copy-every"), " 0 does not go with ", Option("strategy"), " ring and ",
                                     Option("elastic"), ": what a lost worker had is in a copy; give at least 1")};
  if (options.strategy.pipeline == "stash")
    return Error{Code::kInvalid,
                 Str(Option("pipeline"), " stash does not go with ", Option("elastic"),
                     ": its micro-batches are always under way, and there is no moment to go back to; use 1f1b")};
  if (learner.model.partials() == nullptr && learner.model.config().kind != "network")
    return Error{Code::kInvalid, Str(Option("strategy"), " ring with ", Option("elastic"),
                                     " is for networks, linear models, fm and kmeans, not for ", Option("model"), " ",
                                     learner.model.config().kind, ", whose items walk; use allreduce")};
  if (options.strategy.balance && learner.model.partials() != nullptr)
    return Error{Code::kInvalid, Str(Option("elastic"), " does not go with ", Option("balance"),
                                     " of columns: of which ones a copy is would change; leave one out")};
  if (!options.strategy.whole)
    return Error{Code::kInvalid, Str(Option("strategy"), " ring with ", Option("elastic"), " does not go with ",
                                     Option("split"), " bytes: nobody else has the rows of who is lost; use rows")};
  if (options.strategy.large)
    return Error{Code::kInvalid, Str(Option("large-model"), " does not go with ", Option("strategy"), " ring and ",
                                     Option("elastic"), ": what is lost is brought together in memory")};
  const bool comes = options.comes;
  std::unique_ptr<ElasticRing> made(new ElasticRing(std::move(options), group, learner));
  if (comes) return made;
  TRY(group.Begin());
  made->collectives_ = std::make_unique<fabric::Collectives>(group.fabric(), made->options_.how);
  made->Met();
  made->ring_ = group.roster();
  made->SetBase(0);
  TRY(made->MakeInner());
  return made;
}

Result<void> ElasticRing::MakeInner() {
  inner_ = TRY(MakeRing(options_.strategy, World()));
  parted_ = dynamic_cast<Parted*>(inner_.get());
  CHECK(parted_ != nullptr);
  inner_->SetShow(show_);
  inner_->SetProgress(progress_);
  inner_->Ask(ask_stop_, ask_save_);
  return {};
}

void ElasticRing::EndInner(bool in_order) {
  if (!in_order) group_.fabric().Abort({Code::kPeerLost, "the group changes"});
  if (inner_ != nullptr) before_.Add(inner_->times());
  inner_ = nullptr;
  parted_ = nullptr;
  collectives_ = nullptr;
  broken_.reset();
}

void ElasticRing::ForgetTaken() {
  met_ = made_ = 0;
  base_.reset();
  kept_ = {};
}

void ElasticRing::Ask(bool stop, bool save) {
  ask_stop_ = stop;
  ask_save_ = save;
  inner_->Ask(stop, save);
  parted_->AskAdmission(group_.change_wanted());
}

StepTimes ElasticRing::times() const {
  StepTimes times = ElasticStrategy::times();
  times.bytes_copied = copies_.bytes_sent();
  return times;
}

void ElasticRing::SetBase(std::uint64_t made) {
  base_ = from_ = point_ = made;
  base_step_ = learner_.optimizer.step();
}

Result<std::optional<double>> ElasticRing::Step(const data::Batch& piece, const data::Batch& mine,
                                                std::span<float> scores) {
  if (base_ == made_) base_step_ = learner_.optimizer.step();  // who resumes a run has got it since
  steps_.Add(made_ + 1, piece, progress_, fabric::ChunkBegin(piece.rows, rank(), size()), mine.rows);
  in_step_ = true;
  if (broken_) return *broken_;
  const std::optional<double> loss = TRY(inner_->Step(piece, mine, scores));
  Met();
  in_step_ = false;
  last_ = {.updated = loss.has_value(),
           .stop = inner_->stop_agreed(),
           .save = inner_->save_agreed(),
           .admit = inner_->admission_agreed()};
  agreed_in_ = group_.roster().generation;
  if (loss) {
    ++made_;
    const auto copied = Updated(made_);
    if (!copied.ok()) broken_ = copied.error();  // of what is done nothing is undone
  } else {
    steps_.DropLast();
  }
  TRY(At("step.done"));
  return loss;
}

// An update is made by this member. It cannot be before all others have begun it, who then had the copies of the point
// before the last, since they waited for these at the last: what is older nobody can need.
Result<void> ElasticRing::Updated(std::uint64_t made) {
  if (const auto points = copies_.own(); points.size() >= 2) {
    from_ = points[points.size() - 2];
    copies_.DropBefore(from_);
    steps_.DropUpTo(from_);
  }
  if (made - point_ < options_.copy_every && steps_.BytesAfter(point_) < kMostKeptBytes) return {};
  point_ = made;
  return copies_.Exchange(*collectives_, made, parted_->Part());
}

Result<std::optional<double>> ElasticRing::Recover(const Error& why, const data::Batch&, std::span<float> scores) {
  scores_ = scores;
  gives_ = true;
  const auto regrouped = Regroup(why, Admits::kWhenTooFew);
  gives_ = false;
  in_step_ = false;
  scores_ = {};
  if (TRY(regrouped)) {
    owed_.reset();
    return last_.updated ? std::optional<double>(loss_) : std::nullopt;  // else they agreed to stop
  }
  steps_.DropLast();
  return std::optional<double>();
}

Result<void> ElasticRing::Together(const std::function<Result<void>(fabric::Collectives&)>& meeting) {
  while (true) {
    Result<void> met = meeting(*collectives_);
    if (met.ok()) {
      worked_ = true;
      met = collectives_->Barrier();
    }
    if (met.ok()) {
      Met();
      worked_ = false;
      return {};
    }
    if (TRY(Regroup(met.error(), Admits::kNobody))) return {};
  }
}

Result<std::vector<double>> ElasticRing::Sum(const std::vector<double>& mine) {
  TRY(Together([&](fabric::Collectives& collectives) -> Result<void> {
    sums_ = TRY(SumInOrder(collectives, mine));
    return {};
  }));
  return sums_;
}

Result<void> ElasticRing::Barrier() {
  return Together([](fabric::Collectives&) { return Result<void>(); });
}

Result<void> ElasticRing::Settle() {
  settling_ = true;
  TRY(Together([&](fabric::Collectives&) { return BringTogether(); }));
  if (std::exchange(settling_, false)) Settled();
  return {};
}

// What all hold now is the whole of all.
Result<void> ElasticRing::BringTogether() {
  if (base_ == made_) return {};
  const fabric::Fabric& fabric = group_.fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  std::string mine;
  AddPart(mine, parted_->Part());
  TRY(PutAll(mine));
  before_.bytes_sent += fabric.bytes_sent() - sent;
  before_.bytes_shared += fabric.bytes_shared() - shared;
  base_ = made_;
  base_step_ = learner_.optimizer.step();
  return {};
}

// All have the whole: nobody goes back to anything before it.
void ElasticRing::Settled() {
  copies_.Forget();
  steps_.DropUpTo(made_);
  from_ = point_ = made_;
}

// Parts that all members give, each some of them, to the whole of all; which stays as it is until everything has come.
Result<void> ElasticRing::PutAll(const std::string& mine) {
  const auto all = TRY(collectives_->Gather(std::as_bytes(std::span(mine.data(), mine.size()))));
  if (met_ == 0) return {};  // it is given all the rest, too
  for (const auto& bytes : all) {
    std::string_view left(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!left.empty()) {
      std::uint64_t size = 0;
      if (left.size() < sizeof size) return Damaged();
      std::memcpy(&size, left.data(), sizeof size);
      left.remove_prefix(sizeof size);
      if (left.size() < size) return Damaged();
      TRY(parted_->Put(left.substr(0, size)));
      left.remove_prefix(size);
    }
  }
  return {};
}

// Who has seen the group change since it agreed does not regroup once more: those who want in try another time.
Result<void> ElasticRing::Admit() {
  const std::uint64_t agreed_in = agreed_in_;
  TRY(Settle());
  last_.admit = false;
  if (group_.roster().generation != agreed_in) return {};
  gives_ = true;
  const auto regrouped = Regroup({Code::kPeerLost, "somebody wants in"}, Admits::kAll);
  gives_ = false;
  TRY(regrouped);
  return {};
}

void ElasticRing::Describe(GroupChange& change) { change.repeated = again_ + (in_step_ && !owed_ ? 1 : 0); }

Result<void> ElasticRing::Unite(const fabric::Roster*) {
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  again_ = 0;
  Reports reports = TRY(GatherReports());
  const auto by_met = [](const Report& a, const Report& b) { return a.met < b.met; };
  const Report ahead = *std::max_element(reports.begin(), reports.end(), by_met);
  if (ahead.met == 0) return {};  // all come, and nobody has anything
  auto point = FindPoint(reports);
  if (!point) return hopeless_.emplace(Hopeless());
  if (met_ != 0) CatchUp(ahead);
  const bool some_come = std::any_of(reports.begin(), reports.end(), [](const Report& each) { return each.met == 0; });
  if (some_come && point->made < ahead.made) {
    // Who comes is given what somebody has who stands between two steps: those who were there come to that without it.
    if (met_ != 0) TRY(GoOnAmongThose(reports, *point));
    reports = TRY(GatherReports());
    point = FindPoint(reports);
    CHECK(point && point->made == ahead.made);
  }
  TRY(MakeInnerOrGiveUp());
  TRY(GoBackTo(*point, reports));
  if (some_come) TRY(HandOver(reports, ahead));
  if (met_ == 0 && kept_.empty()) return {};
  if (met_ == 0) {
    met_ = ahead.met;
    made_ = ahead.made;
  }
  TRY(collectives_->Barrier());  // from here on nobody needs what others have kept
  ring_ = group_.roster();
  copies_.Forget();
  steps_.DropUpTo(point->made);
  base_ = from_ = point_ = point->made;
  return MakeAgain(point->made, true);
}

Result<void> ElasticRing::MakeInnerOrGiveUp() {
  auto made = MakeInner();
  if (made.ok() || OfMembers(made.error())) return made;
  return hopeless_.emplace(
      Error{Code::kPeerLost, Str(size(), " workers cannot go on: ", made.error().text,
                                 "; what there is left is the last checkpoint, if one was written")});
}

// Those who were there before, as a ring of their own for the steps that are to be made again. What all have kept stays:
// another may be lost meanwhile.
Result<void> ElasticRing::GoOnAmongThose(const Reports& reports, const Point& point) {
  constexpr fabric::Tag kApart = fabric::Tag{1} << 60;
  std::vector<int> ranks;
  Reports theirs;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    if (reports[r].met == 0) continue;
    ranks.push_back(static_cast<int>(r));
    theirs.push_back(reports[r]);
  }
  fabric::Subset among(group_.fabric(), ranks, kApart);
  collectives_ = std::make_unique<fabric::Collectives>(among, options_.how);
  Result<void> done = MakeInnerOrGiveUp();
  if (done.ok()) done = GoBackTo(point, theirs);
  if (done.ok()) done = MakeAgain(point.made, false);
  if (done.ok()) done = BringTogether();
  if (inner_ != nullptr) before_.Add(inner_->times());
  inner_ = nullptr;
  parted_ = nullptr;
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  return done;
}

// By as much as those are ahead who have finished the meeting in which this member is.
void ElasticRing::CatchUp(const Report& ahead) {
  if (met_ < ahead.met) {
    CHECK(met_ + 1 == ahead.met);
    gives_ = false;  // it has not come as far by itself
    if (worked_) {
      if (std::exchange(settling_, false)) Settled();
    } else {
      last_ = ahead.last;
      if (last_.updated) owed_ = ++made_;
      if (!last_.updated) steps_.DropLast();
    }
    Met();
  }
  worked_ = false;
}

// Of every part, its holder's own or the copy of the member after it. What somebody has all of is as good.
std::optional<ElasticRing::Point> ElasticRing::FindPoint(const Reports& reports) {
  std::uint64_t from = 0;
  for (const Report& each : reports)
    if (each.met != 0) from = std::max(from, each.from);
  std::optional<Point> best;
  const auto offer = [&](const Point& point) {
    if (point.made >= from && (!best || point.made > best->made)) best = point;
  };
  for (const Report& each : reports)
    if (each.met != 0 && each.base) offer({.made = *each.base, .whole = true});
  for (const Report& each : reports)
    for (const std::uint64_t made : each.own) {
      std::set<std::uint64_t> parts;
      for (const Report& other : reports)
        for (std::uint64_t part = 0; part < each.places && other.ring == each.ring; ++part)
          if (other.Has(part, made)) parts.insert(part);
      if (parts.size() == each.places) offer({.made = made, .ring = each.ring});
    }
  return best;
}

bool ElasticRing::Report::Has(std::uint64_t part, std::uint64_t point) const {
  if (places == 0) return false;  // it has come since
  const auto& points = part == place ? own : before;
  const bool known = part == place || (part + 1) % places == place;
  return known && std::find(points.begin(), points.end(), point) != points.end();
}

Error ElasticRing::Hopeless() const {
  std::string who;
  const fabric::Roster now = group_.roster();
  const auto& seats = ring_.seats;
  for (std::size_t part = 0; part < seats.size(); ++part) {
    const fabric::Seat &holder = seats[part], &next = seats[(part + 1) % seats.size()];
    if (!now.Has(holder.id) && !now.Has(next.id)) who = Str(" ", holder.name, " and ", next.name, ",");
  }
  return {Code::kPeerLost,
          Str("a part of the model is lost with both who had it:", who,
              " neighbours on the ring, at once; what there is left is the last checkpoint, if one was written")};
}

// Brings what all have of it together.
Result<void> ElasticRing::GoBackTo(const Point& point, const Reports& reports) {
  const auto me = static_cast<std::size_t>(collectives_->fabric().rank());
  if (point.whole) {
    const auto has = [&](const Report& each) { return each.met != 0 && each.base == point.made; };
    const auto needs = [&](const Report& each) { return each.met != 0 && each.base != point.made; };
    if (base_ == point.made) learner_.optimizer.SetStep(base_step_);
    if (std::any_of(reports.begin(), reports.end(), needs)) {
      const auto from = std::find_if(reports.begin(), reports.end(), has) - reports.begin();
      std::string whole;
      if (static_cast<std::size_t>(from) == me) whole = EncodeWhole(learner_);
      TRY(BroadcastBytes(*collectives_, whole, static_cast<int>(from)));
      if (needs(reports[me])) TRY(AdoptWhole(learner_, whole, false));
    }
  } else {
    // Each part is given by the first who has it.
    std::string mine;
    std::vector<std::string> parts;
    const auto places = std::find_if(reports.begin(), reports.end(), [&](const Report& each) {
                          return each.ring == point.ring;
                        })->places;
    for (std::uint64_t part = 0; part < places; ++part) {
      const auto from = std::find_if(reports.begin(), reports.end(), [&](const Report& each) {
        return each.ring == point.ring && each.Has(part, point.made);
      });
      if (static_cast<std::size_t>(from - reports.begin()) != me) continue;
      const PartCopies::Bytes bytes = part == from->place ? copies_.Own(point.made) : copies_.Before(point.made);
      AddPart(mine, *bytes);
    }
    TRY(PutAll(mine));
  }
  if (met_ == 0) return {};
  base_ = point.made;
  base_step_ = learner_.optimizer.step();
  return {};
}

// From one who stands between two steps.
Result<void> ElasticRing::HandOver(const Reports& reports, const Report& ahead) {
  const auto giver = std::find_if(reports.begin(), reports.end(),
                                  [&](const Report& each) { return each.gives && each.met == ahead.met; });
  if (giver == reports.end()) return {};
  const auto from = static_cast<int>(giver - reports.begin());
  std::string given;
  if (from == collectives_->fabric().rank() && give_) given = TRY(give_());
  TRY(BroadcastBytes(*collectives_, given, from));
  if (met_ == 0) kept_ = std::move(given);
  return {};
}

// The steps after that one, which all members have made, or all but those who were behind.
Result<void> ElasticRing::MakeAgain(std::uint64_t after, bool points) {
  inner_->Ask(false, false);
  std::vector<float> nobodys;
  for (const KeptSteps::Step& step : steps_.steps()) {
    if (step.number <= after || step.number > made_) continue;
    const data::Batch piece = step.rows.batch();
    const bool owed = owed_ == step.number;
    const std::size_t first = owed ? step.first : fabric::ChunkBegin(piece.rows, inner_->rank(), inner_->size());
    const data::Batch mine = piece.Slice(
        first, owed ? first + step.mine : fabric::ChunkBegin(piece.rows, inner_->rank() + 1, inner_->size()));
    nobodys.resize(mine.rows * learner_.model.scores());
    parted_->ScoreFrom(first);
    inner_->SetProgress(step.progress);
    const auto loss = TRY(inner_->Step(piece, mine, owed ? scores_ : std::span(nobodys)));
    CHECK(loss.has_value());  // nobody asks for anything meanwhile
    if (owed) loss_ = *loss;
    ++again_;
    if (points) TRY(Updated(step.number));
  }
  parted_->ScoreFrom({});
  inner_->SetProgress(progress_);
  inner_->Ask(ask_stop_, ask_save_);
  return {};
}

std::vector<std::uint64_t> ElasticRing::Report::Encode() const {
  const auto flags = static_cast<std::uint64_t>(gives) | static_cast<std::uint64_t>(last.updated) << 1 |
                     static_cast<std::uint64_t>(last.stop) << 2 | static_cast<std::uint64_t>(last.save) << 3 |
                     static_cast<std::uint64_t>(last.admit) << 4;
  std::vector<std::uint64_t> out = {met, made, base ? *base + 1 : 0, from, flags, ring, place, places, own.size()};
  out.insert(out.end(), own.begin(), own.end());
  out.insert(out.end(), before.begin(), before.end());
  return out;
}

Result<ElasticRing::Report> ElasticRing::Report::Decode(std::span<const std::uint64_t> in) {
  constexpr std::size_t kHead = 9;
  if (in.size() < kHead || in[kHead - 1] > in.size() - kHead || (in[7] > 0 && in[6] >= in[7])) return Damaged();
  Report report;
  report.met = in[0];
  report.made = in[1];
  if (in[2] > 0) report.base = in[2] - 1;
  report.from = in[3];
  report.gives = (in[4] & 1) != 0;
  report.last = {(in[4] & 2) != 0, (in[4] & 4) != 0, (in[4] & 8) != 0, (in[4] & 16) != 0};
  report.ring = in[5];
  report.place = in[6];
  report.places = in[7];
  const auto before = in.begin() + static_cast<std::ptrdiff_t>(kHead + in[kHead - 1]);
  report.own.assign(in.begin() + kHead, before);
  report.before.assign(before, in.end());
  return report;
}

Result<ElasticRing::Reports> ElasticRing::GatherReports() {
  Report mine{.met = met_,
              .made = made_,
              .base = base_,
              .from = from_,
              .gives = gives_,
              .last = last_,
              .ring = ring_.generation,
              .place = 0,
              .places = ring_.seats.size(),
              .own = copies_.own(),
              .before = copies_.before()};
  const fabric::Roster now = group_.roster();
  const fabric::MemberId self = now.seats[static_cast<std::size_t>(group_.rank())].id;
  for (std::size_t place = 0; place < ring_.seats.size(); ++place)
    if (ring_.seats[place].id == self) mine.place = place;
  Reports reports;
  for (const auto& numbers : TRY(GatherNumbers(*collectives_, mine.Encode())))
    reports.push_back(TRY(Report::Decode(numbers)));
  return reports;
}

}  // namespace freshet::strategy::ring
