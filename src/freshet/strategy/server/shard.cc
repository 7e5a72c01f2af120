#include "strategy/server/shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "strategy/packed_rows.h"

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

namespace {

template <class Visit>
void EachOwnStretch(const optimize::Parameters& parameters, Placement& placement, int shard, const Visit& visit) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    for (std::uint64_t first = 0; first < parameters.rows(b) && parameters.width(b) > 0;) {
      const Placement::Stretch stretch = placement.StretchFrom(b, first, parameters.rows(b));
      if (stretch.server == shard) visit(b, first, stretch.last);
      first = stretch.last;
    }
}

struct GivenHead {
  std::uint64_t clock = 0, version = 0, step = 0;
};

}  // namespace

std::string Shard::Give(Placement& placement, int shard) const {
  std::string given;
  const auto put = [&](const void* from, std::size_t bytes) { given.append(static_cast<const char*>(from), bytes); };
  const GivenHead head{clock_, version_, optimizer_->step()};
  put(&head, sizeof head);
  for (const Standing& each : workers_) put(&each.clock, sizeof each.clock);
  for (std::size_t b = 0; b < parameters_.blocks(); ++b) {
    const std::uint64_t rows = parameters_.rows(b);
    put(&rows, sizeof rows);
  }
  for (const optimize::Parameters* all : {&parameters_, &std::as_const(*optimizer_).state()})
    EachOwnStretch(*all, placement, shard, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t row = first; row < last; ++row) put(all->Row(b, row), all->width(b) * sizeof(float));
    });
  return given;
}

Result<void> Shard::Take(std::string_view given, Placement& placement, int shard) {
  const auto take = [&](void* to, std::size_t bytes) {
    if (given.size() < bytes) return false;
    given.copy(static_cast<char*>(to), bytes);  // which may be nothing, to nowhere
    given.remove_prefix(bytes);
    return true;
  };
  GivenHead head;
  if (!take(&head, sizeof head)) return Reader::Damaged();
  Retreat();
  clock_ = head.clock;
  version_ = head.version;
  for (Standing& each : workers_)
    if (!take(&each.clock, sizeof each.clock)) return Reader::Damaged();
  std::vector<std::uint64_t> rows(parameters_.blocks());
  if (!take(rows.data(), rows.size() * sizeof rows[0])) return Reader::Damaged();
  TRY(model_.MakeRoom(parameters_, rows));
  TRY(optimizer_->Follow(parameters_));
  optimizer_->SetStep(head.step);
  bool whole = true;
  for (optimize::Parameters* all : {&parameters_, &optimizer_->state()})
    EachOwnStretch(*all, placement, shard, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t row = first; row < last && row < rows[b]; ++row)
        whole = whole && take(all->Row(b, row), all->width(b) * sizeof(float));
    });
  if (!whole || !given.empty()) return Reader::Damaged();
  return {};
}

Result<void> Shard::Follow(const optimize::Parameters& start, const optimize::Parameters& state, Placement& placement) {
  CHECK(idle());
  if (options_.large == nullptr) {
    parameters_.CopyFrom(start);
    TRY(optimizer_->Follow(parameters_));
    optimizer_->state().CopyFrom(state);
    return {};
  }
  if (!own_rows_) {
    std::vector<optimize::Block> blocks;
    for (std::size_t b = 0; b < start.blocks(); ++b) blocks.push_back(parameters_.block(b));
    own_rows_.emplace(blocks, options_.heat.range_rows);
  }
  Result<void> taken;
  EachOwnStretch(start, placement, options_.number, [&](std::size_t b, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t row = first; row < last && taken.ok(); ++row) {
      std::optional<std::uint64_t> place = own_rows_->Find(b, row);
      if (!place) {
        const auto added = AddPlaces(b, row);
        if (!added.ok()) taken = added.error();
        if (!added.ok()) return;
        place = own_rows_->Find(b, row);
      }
      std::copy_n(start.Row(b, row), start.width(b), parameters_.Row(b, *place));
      if (state.width(b) > 0) std::copy_n(state.Row(b, row), state.width(b), optimizer_->state().Row(b, *place));
    }
  });
  for (std::size_t b = 0; b < start.blocks(); ++b) own_rows_->Name(b, start.rows(b));
  return taken;
}

Result<std::uint64_t> Shard::AddPlaces(std::size_t b, std::uint64_t row) {
  if (!own_rows_->MayHave(b, row)) return Reader::Damaged();
  const std::uint64_t ranges = own_rows_->RangeRows(b), first = own_rows_->Add(b, row);
  TRY(parameters_.Grow(b, first + ranges));
  TRY(optimizer_->Follow(parameters_));
  model_.StartRows(parameters_, b, first, first + ranges, row / ranges * ranges);
  return first + row % ranges;
}

Result<std::span<const std::uint32_t>> Shard::Places(std::size_t b, std::span<const std::uint32_t> rows) {
  const std::uint64_t end = std::uint64_t{*std::max_element(rows.begin(), rows.end())} + 1;
  if (!own_rows_ || !own_rows_->packs(b)) {
    TRY(MakeRoom(b, end));
    return rows;
  }
  own_rows_->Name(b, end);
  places_.clear();
  for (const std::uint32_t row : rows) {
    const std::optional<std::uint64_t> place = own_rows_->Find(b, row);
    places_.push_back(static_cast<std::uint32_t>(place ? *place : TRY(AddPlaces(b, row))));
  }
  return std::span<const std::uint32_t>(places_);
}

void Shard::NameByPlace(data::Rows& sizes) const {
  constexpr std::size_t kFeatures = 0;  // the block that has a row for each
  std::size_t kept = 0;
  for (std::size_t e = 0; e < sizes.indices.size(); ++e)
    if (const auto place = own_rows_->Find(kFeatures, sizes.indices[e])) {
      sizes.indices[kept] = static_cast<std::uint32_t>(*place);
      sizes.values[kept++] = sizes.values[e];
    }
  sizes.offsets[1] = static_cast<std::uint32_t>(kept);
}

void Shard::CopyRows(What what, std::size_t b, std::uint64_t first, std::uint64_t last, float* to) const {
  const optimize::Parameters& all = what == What::kState ? std::as_const(*optimizer_).state() : parameters_;
  const std::uint64_t width = all.width(b);
  for (std::uint64_t row = first; row < last; ++row, to += width) {
    const std::optional<std::uint64_t> place = own_rows_ ? own_rows_->Find(b, row) : row;
    if (place && *place < all.rows(b)) std::copy_n(all.Row(b, *place), width, to);
  }
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

Result<std::span<const std::uint32_t>> Shard::RowsOf(const Parcel& parcel, Reader& reader, const Lists* asked) const {
  if (parcel.form == Parcel::Form::kRows) return reader.Numbers<std::uint32_t>(parcel.count);
  if (asked == nullptr || (*asked)[parcel.block].size() != parcel.count) return Reader::Damaged();
  return std::span<const std::uint32_t>((*asked)[parcel.block]);
}

Result<Shard::Values> Shard::ValuesOf(const Parcel& parcel, std::uint64_t rows, Reader& reader) {
  const std::uint64_t count = rows * parameters_.width(parcel.block);
  if (parcel.values == Parcel::Values::kFloats) {
    const auto floats = TRY(reader.Numbers<float>(count));
    return Values{floats, floats.size_bytes()};
  }
  if (options_.codec == nullptr) return Reader::Damaged();
  const auto bytes = TRY(reader.Bytes(TRY(reader.Take<std::uint64_t>())));
  decoded_.resize(count);
  TRY(options_.codec->Decode(bytes, decoded_, fabric::Codec::Onto::kReplace));
  return Values{decoded_, bytes.size()};
}

Result<void> Shard::MakeRoom(std::size_t b, std::uint64_t rows) {
  if (rows <= parameters_.rows(b)) return {};
  std::vector<std::uint64_t> wanted(parameters_.blocks(), 0);
  wanted[b] = rows;
  TRY(model_.MakeRoom(parameters_, wanted));
  if (rows > parameters_.rows(b)) return Reader::Damaged();
  return optimizer_->Follow(parameters_);
}

Result<void> Shard::Add(std::size_t share, std::span<const std::byte> letter, const Lists* asked) {
  Reader reader(letter);
  const auto head = TRY(reader.Take<PushHead>());
  if (options_.synchrony.bulk()) {
    if (added_++ == 0) weight_ = 0;
    weight_ += head.weight;
    if (!second_came_) progress_ = head.progress;
  }
  const auto digest = TRY(DigestOf(letter, head));
  if (!digest.empty()) digests_[{share, head.part}].assign(digest.begin(), digest.end());
  for (std::uint32_t i = 0; i < head.parcels; ++i) TRY(AddParcel(reader, asked));
  return {};
}

Result<void> Shard::AddParcel(Reader& reader, const Lists* asked) {
  const auto parcel = TRY(reader.Take<Parcel>());
  if (parcel.block >= parameters_.blocks()) return Reader::Damaged();
  if (Dense()) return AddStretch(parcel, reader);
  if (parcel.form == Parcel::Form::kStretch) return Reader::Damaged();
  const auto rows = TRY(RowsOf(parcel, reader, asked));
  if (rows.empty()) return {};
  const auto places = TRY(Places(parcel.block, rows));
  const auto [values, bytes] = TRY(ValuesOf(parcel, rows.size(), reader));
  heat_.Rows(Heat::Way::kPushed, parcel.block, rows, bytes);
  effort_.rows += BytesOf(parcel.block, rows.size());
  optimize::BlockGradient& block = gradient_.blocks[parcel.block];
  const std::uint64_t width = block.width();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* const sum = block.Touch(places[i]);
    for (std::uint64_t k = 0; k < width; ++k) sum[k] += values[i * width + k];
  }
  return {};
}

// The first one of an update overwrites what is left of the one before. All that come later are of the same rows, or of
// none of them.
Result<void> Shard::AddStretch(const Parcel& parcel, Reader& reader) {
  TRY(CheckStretch(parcel));
  if (parcel.count == 0) return {};
  const std::size_t b = parcel.block;
  const std::uint64_t width = parameters_.width(b), last = parcel.first + parcel.count;
  const auto [here, first] = added_to_.try_emplace({b, parcel.first}, last);
  const auto after = std::next(here);
  const bool overlaps = after != added_to_.end() && after->first < std::pair{b, last};
  const bool overlapped =
      here != added_to_.begin() && std::prev(here)->first.first == b && std::prev(here)->second > parcel.first;
  if (here->second != last || overlaps || overlapped) return Reader::Damaged();
  if (!Hollow()) {
    const auto [values, bytes] = TRY(ValuesOf(parcel, parcel.count, reader));
    heat_.Stretch(Heat::Way::kPushed, b, parcel.first, parcel.count, bytes);
    float* const sum = gradient_.blocks[b].memory().data() + parcel.first * width;
    if (first)
      std::copy(values.begin(), values.end(), sum);
    else
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  }
  (first ? effort_.copied : effort_.added) += parcel.count * width * sizeof(float);
  return {};
}

Result<void> Shard::CheckStretch(const Parcel& parcel) const {
  const std::uint64_t rows = parameters_.rows(parcel.block);
  const bool there =
      parcel.form == Parcel::Form::kStretch && Dense() && parcel.first <= rows && parcel.count <= rows - parcel.first;
  return there ? Result<void>() : Reader::Damaged();
}

// It stands at the end of the letter.
Result<std::span<const std::byte>> Shard::DigestOf(std::span<const std::byte> letter, const PushHead& head) {
  const std::size_t room = (letter.size() - sizeof head) / 8 * 8;
  if (head.digest > room) return Reader::Damaged();
  return letter.last((head.digest + 7) / 8 * 8).first(head.digest);
}

// What only servers do, before gradients of these rows are applied: the size of features for the rule, the mean of ratings,
// clusters that have no place yet.
Result<void> Shard::Look(std::span<const std::byte> digest) {
  if (digest.empty()) return {};
  TRY(UnpackRows(digest, seen_));
  if (seen_.size() == 0) return {};
  if (own_rows_) {
    if (model_.observes(parameters_, *optimizer_) == model::Model::Observes::kSizes) NameByPlace(seen_);
  } else {
    TRY(model_.Prepare(parameters_, seen_.batch()));
    TRY(optimizer_->Follow(parameters_));
  }
  model_.Observe(parameters_, seen_.batch(), *optimizer_);
  return {};
}

Result<void> Shard::ApplyAtOnce(std::span<const std::byte> letter, const Lists* asked) {
  Reader reader(letter);
  const auto head = TRY(reader.Take<PushHead>());
  TRY(Look(TRY(DigestOf(letter, head))));
  if (head.parcels > 0) {
    BeginUpdate();
    optimizer_->BeginStep();
  }
  const float factor = weight_ > 0 ? static_cast<float>(1 / weight_) : 1.0f;
  for (std::uint32_t i = 0; i < head.parcels; ++i) {
    const auto parcel = TRY(reader.Take<Parcel>());
    if (parcel.block >= parameters_.blocks()) return Reader::Damaged();
    if (parcel.form == Parcel::Form::kStretch) {
      TRY(ApplyStretch(parcel, reader, factor));
      continue;
    }
    const auto rows = TRY(RowsOf(parcel, reader, asked));
    if (rows.empty()) continue;
    const auto [values, bytes] = TRY(ValuesOf(parcel, rows.size(), reader));
    heat_.Rows(Heat::Way::kPushed, parcel.block, rows, bytes);
    effort_.rows += BytesOf(parcel.block, rows.size());
    ApplyRows(parcel.block, TRY(Places(parcel.block, rows)), values, factor);
  }
  if (head.parcels > 0) EndUpdate();
  return {};
}

Result<void> Shard::ApplyStretch(const Parcel& parcel, Reader& reader, float factor) {
  TRY(CheckStretch(parcel));
  effort_.applied += parcel.count * parameters_.width(parcel.block) * sizeof(float);
  if (Hollow()) return {};
  const auto [values, bytes] = TRY(ValuesOf(parcel, parcel.count, reader));
  heat_.Stretch(Heat::Way::kPushed, parcel.block, parcel.first, parcel.count, bytes);
  optimizer_->ApplyDense(parameters_, parcel.block, parcel.first, parcel.first + parcel.count, values.data(), factor);
  return {};
}

void Shard::ApplyRows(std::size_t b, std::span<const std::uint32_t> rows, std::span<const float> values, float factor) {
  const std::uint64_t width = parameters_.width(b);
  if (Dense()) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      optimizer_->ApplyDense(parameters_, b, rows[i], rows[i] + 1, values.data() + i * width, factor);
    return;
  }
  // To a scale-aware rule, what stands beside a delta is a feature.
  if (width == 1 && optimizer_->name() != "adaptive")
    return optimizer_->UpdateRows(parameters_, b, rows, values, std::span(&factor, 1),
                                  optimize::Optimizer::Sharing::kAlone);
  scaled_.resize(values.size());
  std::transform(values.begin(), values.end(), scaled_.begin(), [factor](float value) { return value * factor; });
  for (std::size_t i = 0; i < rows.size(); ++i)
    optimizer_->UpdateRow(parameters_, b, rows[i], std::span<const float>(scaled_).subspan(i * width, width));
}

void Shard::BeginUpdate() {
  optimizer_->SetProgress(progress_);
  if (options_.slower_when_stale) optimizer_->SetScale(1 / (1 + static_cast<double>(stale_)));
}

void Shard::EndUpdate() {
  ++staleness_[std::min<std::uint64_t>(stale_, staleness_.size() - 1)];
  ++version_;
}

// Looks at what was pushed only now, since parameters may change by that and others read them until then. Of dense blocks
// only what there is a gradient of: all other rows are somebody else's.
Result<void> Shard::Apply() {
  for (const auto& [place, digest] : digests_) TRY(Look(digest));
  digests_.clear();
  BeginUpdate();
  if (!Dense()) {
    for (std::size_t b = 0; b < gradient_.blocks.size(); ++b)
      effort_.rows += BytesOf(b, gradient_.blocks[b].touched().size());
    model_.Apply(parameters_, gradient_, weight_, *optimizer_, workspace_);
  } else {
    const float factor = weight_ > 0 ? static_cast<float>(1 / weight_) : 1.0f;
    optimizer_->BeginStep();
    for (const auto& [begin, last] : added_to_) {
      const auto [b, first] = begin;
      const std::uint64_t width = parameters_.width(b);
      effort_.applied += (last - first) * width * sizeof(float);
      if (Hollow()) continue;
      const float* const sum = gradient_.blocks[b].memory().data() + first * width;
      optimizer_->ApplyDense(parameters_, b, first, last, sum, factor);
    }
    added_to_.clear();
  }
  gradient_.Clear();
  EndUpdate();
  return {};
}

}  // namespace freshet::strategy::server
