#include "strategy/elastic.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/option.h"
#include "strategy/bytes_together.h"
#include "strategy/whole_state.h"

namespace freshet::strategy {
Result<std::unique_ptr<Elastic>> Elastic::Make(Options options, fabric::ElasticGroup& group, const Learner& learner) {
  if (!options.strategy.whole && (options.strategy.exact || options.strategy.backup > 0))
    return Error{Code::kInvalid, Str(Option("exact"), " and ", Option("backup"),
                                     " are for workers that all have all rows (", Option("split"), " rows)")};
  if (options.strategy.lossy && (options.strategy.kind == "allreduce" || options.strategy.block_momentum > 0))
    return Error{Code::kInvalid, Str(Option("lossy"), " is for ", Option("strategy"), " average and groups, without ",
                                     Option("block-momentum"))};
  const bool comes = options.comes;
  std::unique_ptr<Elastic> elastic(new Elastic(std::move(options), group, learner));
  if (comes) return elastic;
  TRY(group.Begin());
  elastic->Met();
  TRY(elastic->MakeInner());
  return elastic;
}

// What this member remembers for itself goes on with the next. What is still on its way, of a step that failed, ends first.
void Elastic::EndInner(bool in_order) {
  if (inner_ == nullptr) return;
  if (!in_order) group_.fabric().Abort({Code::kPeerLost, "the group changes"});
  before_.Add(inner_->times());
  carried_ = Remembered(*inner_);
  inner_ = nullptr;
  collectives_ = nullptr;
}

Result<void> Elastic::Inherit(const fabric::Roster& before) {
  const std::string copy = copies_.copy();
  copies_.Forget();
  const auto& seats = before.seats;
  const fabric::Roster now = group_.roster();
  const fabric::MemberId self = now.seats[static_cast<std::size_t>(group_.rank())].id;
  for (std::size_t i = 0; i < seats.size() && !copy.empty(); ++i)
    if (seats[(i + 1) % seats.size()].id == self && !now.Has(seats[i].id))
      TRY(inner_->Merge(TRY(data::TensorFile::Parse(copy, "what a lost worker remembered"))));
  return {};
}

// Everything that members remember for themselves, as one could go on with it.
Result<void> Elastic::Collect() {
  collected_.reset();
  if (Remembered(*inner_).empty()) return {};
  return Together([&](fabric::Collectives& collectives) -> Result<void> {
    const std::string mine = Remembered(*inner_);
    const auto all = TRY(collectives.Gather(std::as_bytes(std::span(mine.data(), mine.size()))));
    last_.updated = last_.sums = 0;
    if (collectives.fabric().rank() != 0) return {};
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      TRY(inner_->Merge(TRY(data::TensorFile::Parse(
          std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size()), "what a worker remembers"))));
    collected_ = TRY(data::TensorFile::Parse(Remembered(*inner_), "what workers remember"));
    return inner_->Load(TRY(data::TensorFile::Parse(mine, "what a worker remembers")));
  });
}

void Elastic::Save(std::vector<data::Tensor>& tensors) const {
  if (collected_) tensors.insert(tensors.end(), collected_->tensors().begin(), collected_->tensors().end());
}

Result<void> Elastic::MakeInner() {
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  StrategyOptions options = options_.strategy;
  options.undo = options.uneven = true;
  inner_ = TRY(Synchronous::Make(options, World()));
  if (!carried_.empty()) TRY(inner_->Load(TRY(data::TensorFile::Parse(carried_, "what a worker remembers"))));
  inner_->SetShow(show_);
  slow_for_.clear();
  slow_one_.reset();
  inner_->Ask(ask_stop_, ask_save_);
  inner_->SetProgress(progress_);
  return {};
}

void Elastic::Ask(bool stop, bool save) {
  ask_stop_ = stop;
  ask_save_ = save;
  inner_->Ask(stop, save);
  inner_->AskAdmission(group_.change_wanted());
}

Result<bool> Elastic::StepDry() {
  const auto made = Step({}, {}, {});
  if (!made.ok()) TRY(Recover(made.error(), {}, {}));
  return everyone_dry_;
}

Result<std::optional<double>> Elastic::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  if (done_before_ > 0) {
    --done_before_;
    last_ = {.updated = 1};
    return std::optional<double>(LossOf(mine, scores));
  }
  const std::optional<double> loss = TRY(inner_->Step(piece, mine, scores));
  Met();
  last_ = {.updated = loss ? 1u : 0u,
           .stop = inner_->stop_agreed() ? 1u : 0u,
           .save = inner_->save_agreed() ? 1u : 0u,
           .admit = inner_->admission_agreed() ? 1u : 0u,
           .rows = static_cast<std::uint64_t>(inner_->rows_agreed()),
           .dry = inner_->everyone_dry() ? 1u : 0u};
  rows_made_ = loss ? last_.rows : 0;
  everyone_dry_ = last_.dry != 0;
  agreed_in_ = group_.roster().generation;
  WatchSlow();
  // What a loss may cost of what is not delivered yet is what has changed since the last copy.
  const bool remembers = options_.strategy.codec != "none" && options_.copy_every > 0;
  if (remembers && loss && met_ % options_.copy_every == 0) {
    const auto copied = copies_.Exchange(*collectives_, Remembered(*inner_));
    if (!copied.ok() && !OfMembers(copied.error())) return copied.error();  // else the next step will find out, too
  }
  TRY(At("step.done"));
  return loss;
}

// All see the same times, and so come to the same conclusion.
void Elastic::WatchSlow() {
  const std::span<const float> ready = inner_->ready();
  const fabric::Roster roster = group_.roster();
  if (options_.evict_factor <= 0 || ready.size() < 3 || ready.size() <= group_.least()) return;
  slow_for_.resize(ready.size(), 0);
  const double step = *std::max_element(ready.begin(), ready.end());
  for (std::size_t rank = 0; rank < ready.size(); ++rank) {
    std::vector<float> others(ready.begin(), ready.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    const bool slow = ready[rank] > options_.evict_factor * *middle;
    slow_for_[rank] = slow ? slow_for_[rank] + step : 0;
    if (slow_for_[rank] >= options_.evict_seconds) slow_one_ = roster.seats[rank].id;
  }
}

double Elastic::LossOf(const data::Batch& mine, std::span<float> scores) const {
  if (mine.rows == 0) return 0;
  model::Workspace workspace;
  workspace.threads = options_.strategy.threads;
  learner_.model.Predict(learner_.parameters, mine, workspace, scores);
  return learner_.model.LossOf(learner_.parameters, mine, workspace, scores);
}

Result<std::optional<double>> Elastic::Recover(const Error& why, const data::Batch& mine, std::span<float> scores) {
  double loss = 0;
  own_part_ = inner_->computed();
  rows_of_step_ = inner_->rows_agreed();
  rows_made_ = 0;
  everyone_dry_ = false;
  gives_ = !own_part_;  // the step was taken back
  // What others have done is in place of what this one would have: of its rows it then knows only the loss.
  before_replaced_ = [&] { loss = LossOf(mine, scores); };
  const auto regrouped = Regroup(why, Admits::kWhenTooFew);
  before_replaced_ = {};
  gives_ = false;
  bool done = TRY(regrouped);
  if (options_.strategy.lossy) {
    while (!done) {
      const auto salvaged = Salvage(mine.rows);
      if (salvaged.ok()) break;
      done = TRY(Regroup(salvaged.error(), Admits::kNobody));
    }
    const std::optional<double> own = std::exchange(own_part_, std::nullopt);
    rows_made_ = last_.rows;
    if (!done && last_.updated != 0) return std::optional<double>(own.value_or(loss));
  }
  if (done) {
    rows_made_ = last_.rows;
    everyone_dry_ = last_.dry != 0;
  }
  return done && last_.updated != 0 ? std::optional<double>(loss) : std::nullopt;  // else they agreed to stop
}

// The mean of those whose part was done is what there is; the rest is given up. Nothing, if nobody's was.
Result<void> Elastic::Salvage(std::size_t mine) {
  struct Part {
    std::uint64_t done = 0, rows = 0, step = 0;
    double of_all = 0;
  };
  const Part part{.done = own_part_ ? 1u : 0u,
                  .rows = own_part_ ? mine : 0,
                  .step = learner_.optimizer.step(),
                  .of_all = rows_of_step_};
  Part all;
  for (const auto& bytes : TRY(collectives_->Gather(std::as_bytes(std::span(&part, 1))))) {
    Part one;
    if (bytes.size() != sizeof one) return Error{Code::kCorrupt, "what another worker has done is damaged"};
    std::memcpy(&one, bytes.data(), sizeof one);
    all.done += one.done;
    all.rows += one.rows;
    all.step = std::max(all.step, one.step);
    all.of_all = std::max(all.of_all, one.of_all);
  }
  last_ = {};
  if (all.done == 0) return {};
  std::vector<std::vector<float>> sums;
  for (std::size_t b = 0; b < learner_.parameters.blocks(); ++b) {
    std::vector<float>& values = sums.emplace_back(learner_.parameters.Gather(b));
    if (!own_part_) std::fill(values.begin(), values.end(), 0.0f);
    TRY(collectives_->AllReduce(values));
    for (float& value : values) value /= static_cast<float>(all.done);
  }
  for (std::size_t b = 0; b < sums.size(); ++b) learner_.parameters.Scatter(b, sums[b]);
  learner_.optimizer.SetStep(all.step);
  last_.updated = 1;
  last_.rows = static_cast<std::uint64_t>(all.of_all);
  last_.given_up = last_.rows - all.rows;
  history_.given_up += last_.given_up;
  Met();
  return {};
}

// Those who were behind have regrouped since they would have agreed, and so have those who agreed. All leave the step
// before anybody leaves the group. Who regroups meanwhile does not begin the barrier anew: others may never have come to it.
Result<void> Elastic::Admit() {
  last_.admit = 0;
  left_out_ = std::exchange(slow_one_, std::nullopt);
  const auto still = [&] { return agreed_in_ == group_.roster().generation; };
  const bool mine = left_out_ && group_.roster().seats[static_cast<std::size_t>(rank())].id == *left_out_;
  gives_ = true;
  Result<void> done;
  if (still()) {
    const Result<void> met = collectives_->Barrier();
    if (met.ok()) {
      last_.updated = last_.sums = 0;
      Met();
    } else if (const auto regrouped = Regroup(met.error(), Admits::kNobody); !regrouped.ok()) {
      done = regrouped.error();
    }
  }
  if (done.ok() && still()) {
    const auto regrouped = Regroup({Code::kPeerLost, "somebody wants in"}, Admits::kAll);
    if (!regrouped.ok() && mine)
      done = Error{Code::kPeerLost, Str("left out by the others: more than ", options_.evict_factor,
                                        " times slower than they are, for ", options_.evict_seconds, " s")};
    else if (!regrouped.ok())
      done = regrouped.error();
  }
  gives_ = false;
  left_out_.reset();
  return done;
}

Result<void> Elastic::Together(const std::function<Result<void>(fabric::Collectives&)>& meeting) {
  while (true) {
    const Result<void> met = meeting(*collectives_);
    if (met.ok()) {
      Met();
      return {};
    }
    if (TRY(Regroup(met.error(), Admits::kNobody))) return {};
  }
}

Result<std::vector<double>> Elastic::Sum(const std::vector<double>& mine) {
  TRY(Together([&](fabric::Collectives&) -> Result<void> {
    sums_ = TRY(inner_->Sum(mine));
    last_.updated = 0;
    last_.sums = sums_.size();
    return {};
  }));
  return sums_;
}

Result<void> Elastic::Barrier() {
  return Together([&](fabric::Collectives& collectives) -> Result<void> {
    TRY(collectives.Barrier());
    last_.updated = last_.sums = 0;
    return {};
  });
}

// With a barrier, since there may be nothing to exchange: nobody ends a meeting that another has not begun, or that one
// could be two behind, and not know what came of the first.
Result<void> Elastic::Settle() {
  return Together([&](fabric::Collectives& collectives) -> Result<void> {
    TRY(inner_->Settle());
    TRY(collectives.Barrier());
    last_.updated = last_.sums = 0;
    return {};
  });
}

Result<void> Elastic::Unite(const fabric::Roster* before) {
  TRY(MakeInner());
  if (before != nullptr) TRY(Inherit(*before));
  return Level();
}

Result<void> Elastic::Level() {
  const fabric::Roster roster = group_.roster();
  const auto ahead = std::max_element(roster.seats.begin(), roster.seats.end(),
                                      [](const auto& a, const auto& b) { return a.step < b.step; });
  const int from = static_cast<int>(ahead - roster.seats.begin());
  const auto any = [&](auto&& is) { return std::any_of(roster.seats.begin(), roster.seats.end(), is); };
  const bool behind = met_ != 0 && met_ < ahead->step;
  if (any([&](const fabric::Seat& seat) { return seat.step != 0 && seat.step != ahead->step; }))
    TRY(ShareOutcome(from, ahead->step, behind));
  if (any([](const fabric::Seat& seat) { return seat.step == 0; })) {
    TRY(HandOver(from));
    if (!kept_.empty()) met_ = ahead->step;
  }
  return {};
}

// From one who is ahead, at that meeting, to those who are not: by one, or by several steps where slow ones are not waited
// for.
Result<void> Elastic::ShareOutcome(int from, std::uint64_t met, bool behind) {
  Outcome outcome = last_;
  TRY(collectives_->Broadcast(std::as_writable_bytes(std::span(&outcome, 1)), from));
  std::vector<double> sums = sums_;
  sums.resize(outcome.sums);
  TRY(collectives_->Broadcast(std::as_writable_bytes(std::span(sums)), from));
  std::string state, inner;
  if (outcome.updated != 0) {
    if (collectives_->fabric().rank() == from) {
      state = EncodeWhole(learner_);
      inner = Remembered(*inner_, true);
    }
    TRY(BroadcastBytes(*collectives_, state, from));
    TRY(BroadcastBytes(*collectives_, inner, from));
  }
  TRY(At("regroup.shared"));
  if (!behind) return {};
  if (outcome.updated != 0) {
    if (before_replaced_) before_replaced_();
    TRY(AdoptWhole(learner_, state, options_.strategy.whole));
    if (!inner.empty())
      TRY(inner_->LoadShared(TRY(data::TensorFile::Parse(std::move(inner), "what all workers remember"))));
  }
  sums_ = std::move(sums);
  last_ = outcome;
  history_.given_up += last_.given_up;
  agreed_in_ = 0;
  done_before_ = met - met_ - 1;
  Met();
  met_ = met;
  return {};
}

// What one who is ahead gives, to who has nothing; all keep it until nobody can need it again.
Result<void> Elastic::HandOver(int from) {
  std::string given;
  if (collectives_->fabric().rank() == from) {
    if (!kept_.empty())
      given = kept_;
    else if (gives_ && give_) {
      const std::string inner = Remembered(*inner_, true);
      given = Str(options_.how.table.ToText(), "\n", inner.size(), "\n", inner, TRY(give_()));
    }
  }
  TRY(BroadcastBytes(*collectives_, given, from));
  if (met_ != 0) {
    kept_ = std::move(given);
    return {};
  }
  const std::size_t end = given.find('\n');
  if (end == std::string::npos) return {};  // there is nobody who stands between two steps
  const std::size_t behind = given.find('\n', end + 1);
  const std::size_t inner = std::strtoull(given.c_str() + end, nullptr, 10);
  if (behind == std::string::npos || given.size() - behind - 1 < inner)
    return Error{Code::kCorrupt, "what the others hand over is damaged"};
  if (end > 0) options_.how.table = TRY(fabric::AlgorithmTable::FromText(std::string_view(given).substr(0, end)));
  collectives_->SetTable(fabric::Collectives(collectives_->fabric(), options_.how).table());
  if (inner > 0)
    TRY(inner_->LoadShared(TRY(data::TensorFile::Parse(given.substr(behind + 1, inner), "what all workers remember"))));
  kept_ = given.substr(behind + 1 + inner);
  return {};
}

}  // namespace freshet::strategy
