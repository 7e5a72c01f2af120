#include "strategy/server/shard.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace freshet::strategy::server {

Result<std::unique_ptr<Shard>> Shard::Make(const Options& options, const model::Model& model,
                                           const optimize::Parameters& start, const optimize::Optimizer& optimizer,
                                           optimize::Memory& memory) {
  const bool hollow = start.blocks() > 0 && base::IsHollow(start.Row(0, 0));
  auto parameters = TRY(model.NewParameters(memory));
  if (!hollow && options.large == nullptr) parameters.CopyFrom(start);
  auto own = TRY(optimize::Optimizer::Make(optimizer.options(), memory));
  TRY(own->Follow(parameters));
  if (!hollow && options.large == nullptr) own->state().CopyFrom(optimizer.state());
  own->SetStep(optimizer.step());
  auto gradient = TRY(model.NewGradient(memory));
  std::unique_ptr<Shard> shard(new Shard(options, model, std::move(parameters), std::move(own), std::move(gradient)));
  if (options.large != nullptr) TRY(shard->Follow(start, optimizer.state(), *options.large));
  return shard;
}

Shard::Shard(const Options& options, const model::Model& model, optimize::Parameters parameters,
             std::unique_ptr<optimize::Optimizer> optimizer, optimize::Gradient gradient)
    : options_(options),
      model_(model),
      parameters_(std::move(parameters)),
      optimizer_(std::move(optimizer)),
      workers_(static_cast<std::size_t>(options.workers)),
      gradient_(std::move(gradient)),
      heat_(options.heat, parameters_.blocks()) {}

Result<Shard::Answers> Shard::On(int worker, std::span<const std::byte> letter, base::Clock::Duration now) {
  if (letter.empty() || worker < 0 || worker >= options_.workers) return Reader::Damaged();
  if (reinterpret_cast<std::uintptr_t>(letter.data()) % 8 != 0) {
    const std::vector<std::byte> copy(letter.begin(), letter.end());
    return On(worker, copy, now);
  }
  writer_ = worker;
  switch (static_cast<Kind>(letter[0])) {
    case Kind::kPush:
      return OnPush(worker, letter, now);
    case Kind::kPull:
      return OnPull(worker, letter, now);
    case Kind::kAnswer:
    case Kind::kTicket:
    case Kind::kBundle:
    case Kind::kForward:
    case Kind::kHave:
    case Kind::kReady:
      break;
    case Kind::kAway: {
      const auto head = TRY(Reader(letter).Take<AwayHead>());
      workers_[static_cast<std::size_t>(worker)].away = true;
      Answers answers;
      TRY(Advance(now, answers));
      const AnswerHead answer{.shard = options_.number,
                              .worker = static_cast<std::uint16_t>(worker),
                              .request = head.request,
                              .have = Applied(workers_[static_cast<std::size_t>(worker)]),
                              .clock = clock_,
                              .version = version_,
                              .notice = notice_};
      if (answers_) answers.push_back({worker, Writer(answer).Take()});
      return answers;
    }
  }
  return Reader::Damaged();
}

Result<Shard::Answers> Shard::OnPush(int worker, std::span<const std::byte> letter, base::Clock::Duration now) {
  const auto head = TRY(Reader(letter).Take<PushHead>());
  Standing& standing = workers_[static_cast<std::size_t>(worker)];
  Answers answers;
  if (options_.dealt) {
    TRY(TakeShare(head, letter, standing));
    TRY(Advance(now, answers));
    return answers;
  }
  if (head.clock < standing.clock) return answers;  // it was applied before
  if (head.clock > standing.clock) return Reader::Damaged();
  ++standing.clock;
  if (head.notice.number > notice_.number) notice_ = head.notice;
  if (options_.synchrony.bulk()) {
    const auto number = static_cast<std::size_t>(worker);
    if (head.clock == clock_ && (number == next_ || SecondMayBeFirst(number)))
      TRY(AddNext(number, letter, standing.asked.get()));
    else
      pending_[{head.clock, number, 0}] = {{letter.begin(), letter.end()}, standing.asked};
  } else {
    stale_ = version_ - std::min(head.version, version_);
    // It is one of as many as make a batch: all of a clock move as far as those of bulk.
    weight_ = head.weight * options_.workers;
    progress_ = head.progress;
    if (Dense() || model_.Supervised() || head.parcels == 0) {
      TRY(ApplyAtOnce(letter, standing.asked.get()));
    } else {
      TRY(Add(static_cast<std::size_t>(worker), letter, standing.asked.get()));
      TRY(Apply());
    }
  }
  TRY(Advance(now, answers));
  return answers;
}

Result<Shard::Answers> Shard::OnPull(int worker, std::span<const std::byte> letter, base::Clock::Duration now) {
  Reader reader(letter);
  const auto head = TRY(reader.Take<PullHead>());
  auto asked = std::make_shared<Lists>(parameters_.blocks());
  for (std::uint32_t i = 0; i < head.parcels; ++i) {
    const auto parcel = TRY(reader.Take<Parcel>());
    if (parcel.block >= parameters_.blocks()) return Reader::Damaged();
    if (parcel.form != Parcel::Form::kRows) continue;
    const auto rows = TRY(reader.Numbers<std::uint32_t>(parcel.count));
    (*asked)[parcel.block].assign(rows.begin(), rows.end());
  }
  workers_[static_cast<std::size_t>(worker)].asked = std::move(asked);
  Answers answers;
  if (!answers_) return answers;
  parked_.push_back({worker, head.needs, now, {letter.begin(), letter.end()}});
  TRY(Advance(now, answers));
  return answers;
}

// Whoever pushes a share first, whole or all its parts, does it; what comes later of the same rows is dropped.
Result<void> Shard::TakeShare(const PushHead& head, std::span<const std::byte> letter, const Standing& standing) {
  if (head.share >= head.shares || head.part >= head.parts) return Reader::Damaged();
  if (head.notice.number > notice_.number) notice_ = head.notice;
  if (head.clock < clock_) return {};
  const auto [known, first] = shares_.try_emplace(head.clock, head.shares);
  if (known->second != head.shares) return Reader::Damaged();
  const std::size_t share = head.share;
  if (head.clock == clock_ && (share < next_ || (share == 1 && second_came_))) return {};
  if (head.clock == clock_ && head.parts == 1 && (share == next_ || SecondMayBeFirst(share)))
    return AddNext(share, letter, standing.asked.get());
  const std::size_t part = head.parts == 1 ? 0 : head.part + std::size_t{1};
  pending_.try_emplace({head.clock, share, part}, Push{{letter.begin(), letter.end()}, standing.asked});
  return {};
}

std::size_t Shard::Shares() const {
  if (!options_.dealt) return workers_.size();
  const auto known = shares_.find(clock_);
  return known == shares_.end() ? 0 : known->second;
}

// Pushes of a clock are added in the order of shares, which are those of ranks, each as soon as those before it have been,
// or are known not to come; but for the first two of a dense gradient, whose sum has the same bits either way.
Result<void> Shard::AddNext(std::size_t share, std::span<const std::byte> letter, const Lists* asked) {
  TRY(Add(share, letter, asked));
  if (share == next_)
    ++next_;
  else
    second_came_ = true;
  return {};
}

// True when the next share is here in all its parts, which have been added.
Result<bool> Shard::AddParts() {
  const auto first = pending_.lower_bound({clock_, next_, 1}), last = pending_.lower_bound({clock_, next_ + 1, 0});
  if (first == last) return false;
  const auto parts = TRY(Reader(first->second.letter).Take<PushHead>()).parts;
  if (std::distance(first, last) != parts) return false;
  for (auto push = first; push != last; ++push) TRY(Add(next_, push->second.letter, push->second.asked.get()));
  ++next_;
  return true;
}

bool Shard::SecondMayBeFirst(std::size_t share) const { return Dense() && share == 1 && next_ == 0 && !second_came_; }

// True when all of this clock have been added.
Result<bool> Shard::AddThoseInOrder() {
  while (next_ < Shares()) {
    if (next_ == 1 && std::exchange(second_came_, false)) {
      ++next_;
      continue;
    }
    if (const auto push = pending_.extract({clock_, next_, 0}); !push.empty())
      TRY(AddNext(next_, push.mapped().letter, push.mapped().asked.get()));
    else if (options_.dealt && TRY(AddParts()))
      continue;
    else if (!options_.dealt && workers_[next_].away && workers_[next_].clock <= clock_)
      ++next_;
    else
      return false;
  }
  return added_ > 0;
}

Result<void> Shard::Advance(base::Clock::Duration now, Answers& answers) {
  if (options_.synchrony.bulk()) {
    while (TRY(AddThoseInOrder())) {
      stale_ = 0;
      TRY(Apply());
      ++clock_;
      next_ = 0;
      added_ = 0;
      // Of a share that came whole and in parts, one was enough.
      pending_.erase(pending_.begin(), pending_.lower_bound({clock_, 0, 0}));
      shares_.erase(shares_.begin(), shares_.lower_bound(clock_));
    }
  } else {
    std::optional<std::uint64_t> least;
    std::uint64_t most = 0;
    for (const Standing& each : workers_) {
      most = std::max(most, each.clock);
      if (!each.away) least = std::min(least.value_or(each.clock), each.clock);
    }
    clock_ = std::max(clock_, least.value_or(most));
  }
  const auto ready =
      std::stable_partition(parked_.begin(), parked_.end(), [&](const Pull& pull) { return pull.needs > clock_; });
  for (auto pull = ready; pull != parked_.end(); ++pull) answers.push_back(TRY(Read(*pull, now)));
  parked_.erase(ready, parked_.end());
  return {};
}

void Shard::SetSynchrony(const Synchrony& synchrony) {
  CHECK(idle());
  options_.synchrony = synchrony;
}

void Shard::Return(std::uint64_t clock, const std::vector<bool>& away) {
  CHECK(idle());
  clock_ = clock;
  next_ = 0;
  for (std::size_t w = 0; w < workers_.size(); ++w)
    workers_[w] = {.clock = clock, .away = away[w], .asked = std::move(workers_[w].asked)};
}

std::uint64_t Shard::Applied(const Standing& standing) const {
  return options_.synchrony.bulk() ? std::min(standing.clock, clock_) : standing.clock;
}

std::vector<std::uint64_t> Shard::Applied() const {
  std::vector<std::uint64_t> applied;
  for (const Standing& each : workers_) applied.push_back(Applied(each));
  return applied;
}

// Who is away may have been so behind a push that is forgotten.
void Shard::Retreat() {
  parked_.clear();
  pending_.clear();
  digests_.clear();
  added_to_.clear();
  gradient_.Clear();
  next_ = added_ = 0;
  second_came_ = false;
  notice_ = {};
  for (Standing& each : workers_) each = {.clock = Applied(each), .away = false, .asked = nullptr};
}

Result<Shard::Answer> Shard::Read(const Pull& pull, base::Clock::Duration now) {
  Reader reader(pull.letter);
  const auto head = TRY(reader.Take<PullHead>());
  AnswerHead answer{.shard = options_.number,
                    .worker = static_cast<std::uint16_t>(pull.worker),
                    .waited_for = static_cast<std::int16_t>(writer_ == pull.worker ? -1 : writer_),
                    .request = head.request,
                    .have = Applied(workers_[static_cast<std::size_t>(pull.worker)]),
                    .clock = clock_,
                    .version = version_,
                    .waited = base::Seconds(now - pull.since),
                    .notice = notice_};
  Writer writer(answer, last_answer_bytes_);
  for (std::uint32_t i = 0; i < head.parcels; ++i) {
    const auto parcel = TRY(reader.Take<Parcel>());
    const std::uint64_t width = parameters_.width(parcel.block);
    if (parcel.form == Parcel::Form::kStretch) {
      const std::uint64_t last = parcel.first + parcel.count;
      if (last < parcel.first) return Reader::Damaged();
      TRY(MakeRoom(parcel.block, last));
      const std::uint64_t bytes = parcel.count * width * sizeof(float);
      if (parcel.count > 0) writer.Put(parameters_.Row(parcel.block, parcel.first), bytes);
      heat_.Stretch(Heat::Way::kPulled, parcel.block, parcel.first, parcel.count, bytes);
      effort_.copied += bytes;
      continue;
    }
    const auto rows = TRY(RowsOf(parcel, reader, nullptr));
    if (rows.empty()) continue;
    effort_.rows += BytesOf(parcel.block, rows.size());
    float* out = writer.Floats(rows.size() * width);
    for (const std::uint32_t row : TRY(Places(parcel.block, rows)))
      out = std::copy_n(parameters_.Row(parcel.block, row), width, out);
    heat_.Rows(Heat::Way::kPulled, parcel.block, rows, rows.size() * width * sizeof(float));
  }
  answer.hollow = writer.hollow();
  writer.SetHead(answer);
  last_answer_bytes_ = writer.size();
  return Answer{pull.worker, writer.Take()};
}

}  // namespace freshet::strategy::server
