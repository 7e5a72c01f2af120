#include "strategy/elastic_pace.h"

#include <algorithm>
#include <utility>

#include "strategy/bytes_together.h"
#include "strategy/gather_numbers.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy {

std::vector<std::uint64_t> ElasticPace::Report::Encode() const {
  const auto ordered = followed.synchrony.Numbers();
  std::vector<std::uint64_t> out = {met,
                                    begun,
                                    gives,
                                    base,
                                    followed.number,
                                    followed.clock,
                                    static_cast<std::uint64_t>(followed.order),
                                    ordered[0],
                                    ordered[1],
                                    ordered[2],
                                    shares.size()};
  out.insert(out.end(), shares.begin(), shares.end());
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Result<ElasticPace::Report> ElasticPace::Report::Decode(std::span<const std::uint64_t> in) {
  constexpr std::size_t kHead = 11;
  if (in.size() < kHead || in[kHead - 1] > in.size() - kHead) return Damaged();
  Report report{
      .met = in[0],
      .begun = in[1],
      .gives = in[2],
      .base = in[3],
      .followed = {in[4], in[5], static_cast<OwnPace::Order>(in[6]), TRY(server::Synchrony::Of(in.subspan(7, 3)))},
      .shares = {},
      .own = {}};
  const auto own = in.begin() + static_cast<std::ptrdiff_t>(kHead + in[kHead - 1]);
  report.shares.assign(in.begin() + kHead, own);
  report.own.assign(own, in.end());
  return report;
}

bool ElasticPace::Report::Has(int share) const {
  return std::find(shares.begin(), shares.end(), static_cast<std::uint64_t>(share)) != shares.end();
}

Error ElasticPace::Damaged() {
  return {Code::kCorrupt, "what another member tells of its work is damaged; do all members run the same program?"};
}

void ElasticPace::Met() {
  ElasticStrategy::Met();
  worked_ = false;
}

Result<void> ElasticPace::MakeInner() {
  inner_ = TRY(NewInner());
  inner_->SetShow(show_);
  inner_->Ask(ask_stop_, ask_save_);
  inner()->SetProgress(progress_);
  if (share_out_wanted_) inner_->Want(OwnPace::Order::kMeet);
  return {};
}

void ElasticPace::EndInner(bool in_order) {
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

void ElasticPace::Ask(bool stop, bool save) {
  ask_stop_ = stop;
  ask_save_ = save;
  inner_->Ask(stop, save);
  if (group_.change_wanted()) inner_->Want(OwnPace::Order::kAdmit);
}

Result<std::optional<double>> ElasticPace::Step(const data::Batch& piece, const data::Batch& mine,
                                                std::span<float> scores) {
  agreed_.reset();
  const std::uint64_t pieces = work()->pieces, followed = inner_->stand().followed.number;
  Result<void> done;
  while (true) {
    if (work()->pieces == pieces) {
      const auto made = inner_->Step(piece, mine, scores);
      done = made.ok() ? Result<void>() : made.error();
    } else {
      done = inner_->Attend();
    }
    if (done.ok()) break;
    TRY(Regroup(done.error(), Admits::kNobody));
    if (stand_.followed.number > followed) break;
  }
  met_at_ = learner_.clock.Now();
  const double loss = work()->own_loss;
  agreed_ = done.ok() ? inner_->agreed() : std::optional(stand_.followed.order);
  if (Meets()) {
    agreed_.reset();
    TRY(Settle());
  }
  TRY(At("step.done"));
  return std::optional<double>(loss);
}

Result<bool> ElasticPace::StepDry() {
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

Result<void> ElasticPace::Settle() {
  settling_ = true;
  TRY(Together([&](fabric::Collectives&) -> Result<void> {
    TRY(inner_->Settle());
    settled_clock_ = settled_clock();
    settled_rank_ = rank();
    settled_size_ = size();
    return {};
  }));
  if (!std::exchange(settling_, false)) return {};  // it was done by others, and so was this
  before_.Add(inner_->times());
  stand_ = inner_->stand();
  inner_ = nullptr;
  share_out_wanted_ = false;
  AllMet();
  TRY(NewWork(rank(), size(), settled_clock_));
  TRY(MakeInner());
  inner_->Resume(stand_, stand_.followed);
  return {};
}

Result<void> ElasticPace::Together(const std::function<Result<void>(fabric::Collectives&)>& meeting) {
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

Result<std::vector<double>> ElasticPace::Sum(const std::vector<double>& mine) {
  TRY(Together([&](fabric::Collectives& collectives) -> Result<void> {
    sums_ = TRY(SumInOrder(collectives, mine));
    return {};
  }));
  return sums_;
}

Result<void> ElasticPace::Barrier() {
  return Together([](fabric::Collectives&) { return Result<void>(); });
}

// Who does not stand here with the others any more has seen the group change: then they try another time.
Result<void> ElasticPace::Admit() {
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

Result<std::vector<ElasticPace::Report>> ElasticPace::GatherReports() {
  Report mine{
      .met = met_, .gives = gives_ && has_rows() ? 1u : 0u, .followed = stand_.followed, .shares = {}, .own = {}};
  if (work() != nullptr) {
    mine.begun = begun() || work()->pieces > 0 ? 1 : 0;
    mine.base = work()->base;
  }
  Tell(mine);
  std::vector<Report> reports;
  for (const auto& numbers : TRY(GatherNumbers(*collectives_, mine.Encode())))
    reports.push_back(TRY(Report::Decode(numbers)));
  return reports;
}

// Everybody has done its part of a meeting that somebody has left behind.
Result<void> ElasticPace::FinishMeeting(std::uint64_t met) {
  const bool mine = std::exchange(worked_, false);
  if (met_ == 0 || met_ == met) return {};
  CHECK(mine && met_ + 1 == met);
  Met();
  if (!std::exchange(settling_, false)) return {};
  share_out_wanted_ = false;
  AllMet();
  return NewWork(settled_rank_, settled_size_, settled_clock_);
}

Result<void> ElasticPace::Unite(const fabric::Roster*) {
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  auto reports = TRY(GatherReports());
  std::uint64_t met = 0;
  for (const Report& each : reports) met = std::max(met, each.met);
  TRY(FinishMeeting(met));
  const auto any = [&](auto&& is) { return std::any_of(reports.begin(), reports.end(), is); };
  const bool somebody_comes = any([](const Report& each) { return each.met == 0; });
  reports = TRY(GatherReports());
  const bool some_begun = any([](const Report& each) { return each.begun != 0; });
  OwnPace::Due last;
  std::uint64_t base = 0;
  for (const Report& each : reports) {
    if (each.followed.number > last.number) last = each.followed;
    base = std::max(base, each.base);
  }
  if (somebody_comes) TRY(HandOver(reports));
  if (met_ == 0 && kept_.empty()) return {};  // nobody could give anything
  TRY(Hear(reports));
  if (met_ == 0) {
    met_ = met;
    stand_.followed = last;
  }
  if (some_begun) {
    TRY(TakeOver(reports));
  } else {
    TRY(NewWork(rank(), size(), base));
    TRY(collectives_->Barrier());  // nobody begins before all know how many work
  }
  TRY(MakeInner());
  inner_->Resume(stand_, last);
  return some_begun ? GoOn() : Result<void>();
}

// What was given may be of before what others have begun since.
void ElasticPace::ForgetTaken() {
  met_ = 0;
  ForgetWork();
  kept_ = {};
}

// From one who stands between two steps of all.
Result<void> ElasticPace::HandOver(const std::vector<Report>& reports) {
  const bool settled = std::none_of(reports.begin(), reports.end(), [](const Report& each) { return each.begun != 0; });
  const auto giver = std::find_if(reports.begin(), reports.end(), [](const Report& each) { return each.gives != 0; });
  std::string given;
  const int from = giver == reports.end() ? 0 : static_cast<int>(giver - reports.begin());
  if (giver != reports.end() && settled && from == collectives_->fabric().rank() && give_) given = TRY(give_());
  TRY(BroadcastBytes(*collectives_, given, from));
  if (met_ == 0) kept_ = std::move(given);
  return {};
}

}  // namespace freshet::strategy
