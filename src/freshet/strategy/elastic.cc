#include "strategy/elastic.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/option.h"

namespace freshet::strategy {
namespace {

void Add(StepTimes& to, const StepTimes& times) {
  for (double StepTimes::*part :
       {&StepTimes::read, &StepTimes::compute, &StepTimes::wait, &StepTimes::exchange, &StepTimes::apply})
    to.*part += times.*part;
  for (std::uint64_t StepTimes::*part :
       {&StepTimes::steps, &StepTimes::rows, &StepTimes::bytes_sent, &StepTimes::bytes_shared, &StepTimes::bytes_dense})
    to.*part += times.*part;
}

bool OfMembers(const Error& why) { return why.code == Code::kPeerLost || why.code == Code::kTimeout; }

// Bytes of which only `from` knows how many they are.
Result<void> Broadcast(fabric::Collectives& collectives, std::string& bytes, int from) {
  std::uint64_t size = bytes.size();
  TRY(collectives.Broadcast(std::as_writable_bytes(std::span(&size, 1)), from));
  bytes.resize(size);
  return collectives.Broadcast(std::as_writable_bytes(std::span(bytes.data(), bytes.size())), from);
}

template <class T>
void Put(std::string& out, const T* values, std::size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

Result<std::unique_ptr<Elastic>> Elastic::Make(Options options, fabric::ElasticGroup& group, const Learner& learner) {
  if (options.strategy.codec != "none" || options.strategy.factors || !options.strategy.whole)
    return Error{Code::kInvalid,
                 Str("workers may come and go only with ", Option("codec"), " none and ", Option("split"), " rows")};
  const bool comes = options.comes;
  std::unique_ptr<Elastic> elastic(new Elastic(std::move(options), group, learner));
  if (comes) return elastic;
  TRY(group.Begin());
  elastic->Met();
  TRY(elastic->MakeInner());
  return elastic;
}

// What this member remembers for itself goes on with the next.
void Elastic::EndInner() {
  if (inner_ == nullptr) return;
  Add(before_, inner_->times());
  carried_ = SaveInner();
  inner_ = nullptr;
  collectives_ = nullptr;
}

std::string Elastic::SaveInner() const {
  std::vector<data::Tensor> tensors;
  inner_->Save(tensors);
  if (tensors.empty()) return "";
  base::StringFile file;
  CHECK(data::WriteTensors(file, tensors, {}).ok());
  return std::move(file.text);
}

Result<void> Elastic::LoadInner(std::string state) {
  if (state.empty()) return {};
  return inner_->Load(TRY(data::TensorFile::Parse(std::move(state), "what a worker remembers")));
}

Result<void> Elastic::MakeInner() {
  collectives_ = std::make_unique<fabric::Collectives>(group_.fabric(), options_.how);
  StrategyOptions options = options_.strategy;
  options.undo = options.uneven = true;
  inner_ = TRY(Synchronous::Make(options, {*collectives_, learner_.model, learner_.parameters, learner_.optimizer,
                                           learner_.memory, learner_.clock, learner_.trace, learner_.at}));
  TRY(LoadInner(carried_));
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

void Elastic::SetProgress(double progress) {
  progress_ = progress;
  if (inner_ != nullptr) inner_->SetProgress(progress);
}

StepTimes Elastic::times() const {
  StepTimes times = before_;
  if (inner_ != nullptr) Add(times, inner_->times());
  return times;
}

// Nobody can be without what this meeting began with.
void Elastic::Met() {
  ++met_;
  met_at_ = learner_.clock.Now();
  kept_ = {};
}

Result<std::optional<double>> Elastic::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const std::optional<double> loss = TRY(inner_->Step(piece, mine, scores));
  Met();
  last_ = {.updated = loss ? 1u : 0u,
           .stop = inner_->stop_agreed() ? 1u : 0u,
           .save = inner_->save_agreed() ? 1u : 0u,
           .admit = inner_->admission_agreed() ? 1u : 0u};
  agreed_in_ = group_.roster().generation;
  TRY(At("step.done"));
  return loss;
}

Result<std::optional<double>> Elastic::Recover(const Error& why, const data::Batch& mine, std::span<float> scores) {
  double loss = 0;
  gives_ = true;  // the step was taken back
  // What others have done is in place of what this one would have: of its rows it then knows only the loss.
  const auto regrouped = Regroup(why, Admits::kWhenTooFew, [&] {
    model::Workspace workspace;
    workspace.threads = options_.strategy.threads;
    learner_.model.Predict(learner_.parameters, mine, workspace, scores);
    loss = learner_.model.LossOf(learner_.parameters, mine, workspace, scores);
  });
  gives_ = false;
  const bool done = TRY(regrouped);
  return done && last_.updated != 0 ? std::optional<double>(loss) : std::nullopt;  // else they agreed to stop
}

// Those who were behind have regrouped since they would have agreed, and so have those who agreed. All leave the step
// before anybody leaves the group.
Result<void> Elastic::Admit() {
  last_.admit = 0;
  const auto still = [&] { return agreed_in_ == group_.roster().generation; };
  gives_ = true;
  Result<void> done = still() ? Barrier() : Result<void>();
  if (done.ok() && still()) {
    const auto regrouped = Regroup({Code::kPeerLost, "somebody wants in"}, Admits::kAll, {});
    if (!regrouped.ok()) done = regrouped.error();
  }
  gives_ = false;
  return done;
}

Result<std::string> Elastic::Take() {
  TRY(group_.Begin());
  while (true) {
    TRY(MakeInner());
    const auto level = Level({});
    if (level.ok() && met_ == 0)
      return Error{Code::kPeerLost, "the group changed before it could hand anything over; start this worker again"};
    if (level.ok()) return std::exchange(kept_, {});
    if (!OfMembers(level.error())) return level.error();
    EndInner();
    TRY(group_.Regroup(met_, 0, Admits::kNobody));
  }
}

Result<void> Elastic::Together(const std::function<Result<void>(fabric::Collectives&)>& meeting) {
  while (true) {
    const Result<void> met = meeting(*collectives_);
    if (met.ok()) {
      Met();
      return {};
    }
    if (TRY(Regroup(met.error(), Admits::kNobody, {}))) return {};
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

Result<void> Elastic::Settle() {
  return Together([&](fabric::Collectives&) -> Result<void> {
    TRY(inner_->Settle());
    last_.updated = last_.sums = 0;
    return {};
  });
}

Result<bool> Elastic::Regroup(const Error& why, Admits admits, const std::function<void()>& before) {
  if (!OfMembers(why)) return why;
  const std::uint64_t met = met_;
  for (bool in_order = admits == Admits::kAll;; in_order = false) {
    const fabric::Roster last = group_.roster();
    EndInner();
    TRY(At("regroup.begin"));
    TRY(group_.Regroup(met_, 0, admits, in_order));
    ++losses_;
    TRY(At("regroup.decided"));
    TRY(MakeInner());
    const auto level = Level(before);
    TRY(At("regroup.levelled"));
    Tell(last, level.ok() && met_ == met && admits != Admits::kAll);
    if (level.ok()) return met_ != met;
    if (!OfMembers(level.error())) return level.error();
  }
}

Result<void> Elastic::Level(const std::function<void()>& before) {
  const fabric::Roster roster = group_.roster();
  const auto ahead = std::max_element(roster.seats.begin(), roster.seats.end(),
                                      [](const auto& a, const auto& b) { return a.step < b.step; });
  const int from = static_cast<int>(ahead - roster.seats.begin());
  const auto any = [&](auto&& is) { return std::any_of(roster.seats.begin(), roster.seats.end(), is); };
  const bool behind = met_ != 0 && met_ < ahead->step;
  if (any([&](const fabric::Seat& seat) { return seat.step != 0 && seat.step != ahead->step; }))
    TRY(ShareOutcome(from, behind, before));
  if (any([](const fabric::Seat& seat) { return seat.step == 0; })) {
    TRY(HandOver(from));
    if (!kept_.empty()) met_ = ahead->step;
  }
  return {};
}

std::string Elastic::EncodeState() const {
  std::string bytes;
  const std::uint64_t step = learner_.optimizer.step();
  Put(bytes, &step, 1);
  for (const optimize::Parameters* const part : {&learner_.parameters, &learner_.optimizer.state()})
    for (std::size_t b = 0; b < part->blocks(); ++b) {
      const std::vector<float> values = part->Gather(b);
      Put(bytes, values.data(), values.size());
    }
  return bytes;
}

Result<void> Elastic::AdoptState(std::string_view bytes) {
  if (bytes.size() != EncodeState().size())
    return Error{Code::kCorrupt, "another worker has a model of another size; do all see the same rows?"};
  std::uint64_t step = 0;
  std::memcpy(&step, bytes.data(), sizeof step);
  bytes.remove_prefix(sizeof step);
  for (optimize::Parameters* const part : {&learner_.parameters, &learner_.optimizer.state()})
    for (std::size_t b = 0; b < part->blocks(); ++b) {
      std::vector<float> values(part->Gather(b).size());
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
      bytes.remove_prefix(values.size() * sizeof(float));
      part->Scatter(b, values);
    }
  learner_.optimizer.SetStep(step);
  return {};
}

// From one who is ahead, by one meeting, to those who are not.
Result<void> Elastic::ShareOutcome(int from, bool behind, const std::function<void()>& before) {
  Outcome outcome = last_;
  TRY(collectives_->Broadcast(std::as_writable_bytes(std::span(&outcome, 1)), from));
  std::vector<double> sums = sums_;
  sums.resize(outcome.sums);
  TRY(collectives_->Broadcast(std::as_writable_bytes(std::span(sums)), from));
  std::string state, inner;
  if (outcome.updated != 0) {
    if (collectives_->fabric().rank() == from) {
      state = EncodeState();
      inner = SaveInner();
    }
    TRY(Broadcast(*collectives_, state, from));
    TRY(Broadcast(*collectives_, inner, from));
  }
  TRY(At("regroup.shared"));
  if (!behind) return {};
  if (outcome.updated != 0) {
    if (before) before();
    TRY(AdoptState(state));
    TRY(LoadInner(std::move(inner)));
  }
  sums_ = std::move(sums);
  last_ = outcome;
  agreed_in_ = 0;
  Met();
  return {};
}

// What one who is ahead gives, to who has nothing; all keep it until nobody can need it again.
Result<void> Elastic::HandOver(int from) {
  std::string given;
  if (collectives_->fabric().rank() == from) {
    if (!kept_.empty())
      given = kept_;
    else if (gives_ && give_) {
      const std::string inner = SaveInner();
      given = Str(options_.how.table.ToText(), "\n", inner.size(), "\n", inner, TRY(give_()));
    }
  }
  TRY(Broadcast(*collectives_, given, from));
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
  TRY(LoadInner(given.substr(behind + 1, inner)));
  kept_ = given.substr(behind + 1 + inner);
  return {};
}

void Elastic::Tell(const fabric::Roster& before, bool repeated) const {
  if (!options_.changed) return;
  const fabric::Roster after = group_.roster();
  GroupChange change{.generation = after.generation,
                     .before = static_cast<int>(before.seats.size()),
                     .after = static_cast<int>(after.seats.size()),
                     .step = learner_.optimizer.step(),
                     .first = group_.rank() == 0,
                     .repeated = repeated,
                     .seconds = base::Seconds(learner_.clock.Now() - met_at_)};
  for (const fabric::Seat& seat : before.seats)
    if (!after.Has(seat.id)) change.gone.push_back({seat.name, group_.HowEnded(seat.id)});
  for (const fabric::Seat& seat : after.seats)
    if (!before.Has(seat.id)) change.came.push_back(seat.name);
  options_.changed(change);
}

std::string GroupChange::ToText() const {
  std::string text = Str("membership ", before, " → ", after, ":");
  std::string_view mark = " ";
  for (const Gone& one : gone) {
    text += Str(mark, one.name, " is gone, ", one.how.empty() ? "unreachable" : one.how);
    mark = "; ";
  }
  for (const std::string& one : came) {
    text += Str(mark, one, " has come");
    mark = "; ";
  }
  if (gone.empty() && came.empty()) text += " the same once more";
  return Str(text, "; step ", step, repeated ? " repeated; " : "; ", Fixed(seconds, 2), " s");
}

}  // namespace freshet::strategy
