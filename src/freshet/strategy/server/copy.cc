#include "strategy/server/copy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace freshet::strategy::server {

Copy::Copy(const Options& options, const model::Model& model, optimize::Parameters& parameters, double rate,
           Placement& placement, optimize::Gradient& gradient)
    : options_(options),
      model_(model),
      parameters_(parameters),
      rate_(rate),
      placement_(placement),
      gradient_(gradient),
      encoding_(options.codec, parameters),
      saved_(servers(), 0),
      last_(servers(), Lists(parameters.blocks())),
      versions_(servers(), 0),
      stamps_(parameters.blocks()),
      dense_stamps_(servers(), 0),
      complete_(parameters.blocks()),
      stretches_(servers()),
      touched_(parameters.blocks()),
      sorted_(servers()),
      held_(parameters.blocks()) {
  if (options.near != nullptr) settled_ = 0;
  FindStretches();
}

void Copy::FindStretches() {
  for (auto& stretches : stretches_) stretches.clear();
  for (std::size_t b = 0; Dense() && b < parameters_.blocks(); ++b)
    for (std::uint64_t first = 0; first < parameters_.rows(b);) {
      const Placement::Stretch stretch = placement_.StretchFrom(b, first, parameters_.rows(b));
      stretches_[static_cast<std::size_t>(stretch.server)].push_back(
          {.block = static_cast<std::uint32_t>(b), .first = first, .count = stretch.last - first});
      first = stretch.last;
    }
}

void Copy::Moved() {
  CHECK(HoldsNothing());
  FindStretches();
  for (Lists& lists : last_)
    for (auto& list : lists) list.clear();
}

// A stamp is one more than the worker's clock when it asked. It then asked for what is good for as long as it is used.
bool Copy::Fresh(std::uint64_t stamp, std::uint64_t clock) const {
  return stamp > 0 && stamp + options_.fetch_every > clock + 1;
}

std::uint64_t Copy::Needs(std::uint64_t clock) const {
  return options_.synchrony.Needs(clock + options_.fetch_every - 1);
}

std::uint64_t Copy::StampOf(std::size_t b, std::uint32_t row) const {
  return std::max<std::uint64_t>(row < stamps_[b].size() ? stamps_[b][row] : 0, settled_);
}

bool Copy::MayRead(std::uint64_t clock) {
  if (!Bounded()) return true;
  std::erase_if(old_, [&](const auto& row) { return NewEnough(CompleteOf(row.first, row.second), clock); });
  return old_.empty();
}

Copy::Letters Copy::Ask(const data::Batch& rows, std::uint64_t clock) {
  return Dense() ? AskDense(clock) : AskRows(rows, clock);
}

Copy::Letters Copy::AskDense(std::uint64_t clock) {
  Letters letters(servers());
  for (std::size_t s = 0; s < servers(); ++s) {
    if (stretches_[s].empty() || Fresh(std::max(dense_stamps_[s], settled_), clock)) continue;
    Writer writer(PullHead{
        .parcels = static_cast<std::uint32_t>(stretches_[s].size()), .needs = Needs(clock), .request = ++requests_});
    for (const Parcel& parcel : stretches_[s]) writer.Begin(parcel);
    Remember(asked_[requests_] = {static_cast<int>(s), clock, {}, {}});
    letters[s] = writer.Take();
  }
  return letters;
}

Copy::Letters Copy::AskRows(const data::Batch& rows, std::uint64_t clock) {
  for (optimize::RowSet& set : touched_) set.Clear();
  model_.Touch(parameters_, rows, touched_);
  std::vector<Lists> wanted(servers(), Lists(parameters_.blocks()));
  old_.clear();
  for (std::size_t b = 0; b < touched_.size(); ++b)
    for (const std::uint32_t row : touched_[b].rows()) {
      if (!Fresh(StampOf(b, row), clock)) wanted[ServerOf(b, row)][b].push_back(row);
      if (Bounded() && !NewEnough(CompleteOf(b, row), clock)) old_.emplace_back(b, row);
    }
  Letters letters(servers());
  for (std::size_t s = 0; s < servers(); ++s) {
    PullHead head{.needs = Needs(clock), .request = requests_ + 1};
    for (const auto& list : wanted[s]) head.parcels += list.empty() ? 0 : 1;
    if (head.parcels == 0) continue;
    ++requests_;
    Writer writer(head);
    for (std::size_t b = 0; b < wanted[s].size(); ++b)
      if (!wanted[s][b].empty())
        writer.Begin(
            {.block = static_cast<std::uint32_t>(b), .form = Parcel::Form::kRows, .count = wanted[s][b].size()},
            Far(b, wanted[s][b]));
    last_[s] = wanted[s];
    Remember(asked_[requests_] = {static_cast<int>(s), clock, std::move(wanted[s]), {}});
    letters[s] = writer.Take();
  }
  return letters;
}

// Of who does not wait: what it has asked for is not asked for again, and is moved on meanwhile.
void Copy::Remember(Question& question) {
  if (!options_.ahead) return;
  const auto s = static_cast<std::size_t>(question.server);
  const auto remember = [&](const float* from, std::size_t count) {
    if (!Hollow()) question.had.insert(question.had.end(), from, from + count);
  };
  for (std::size_t b = 0; b < question.rows.size(); ++b) {
    if (!question.rows[b].empty() && stamps_[b].size() < parameters_.rows(b)) stamps_[b].resize(parameters_.rows(b), 0);
    for (const std::uint32_t row : question.rows[b]) {
      remember(parameters_.Row(b, row), parameters_.width(b));
      stamps_[b][row] = kAsked;
    }
  }
  if (!Dense()) return;
  dense_stamps_[s] = kAsked;
  for (const Parcel& parcel : stretches_[s]) {
    const std::size_t floats = parcel.count * parameters_.width(parcel.block);
    remember(parameters_.Row(parcel.block, parcel.first), floats);
    effort_.copied += floats * sizeof(float);
  }
}

void Copy::Put(std::span<const float> from, float* to, const float*& had) const {
  if (!options_.ahead) {
    std::copy(from.begin(), from.end(), to);
    return;
  }
  for (const float value : from) {
    *to = value + (*to - *had++);
    ++to;
  }
}

void Copy::Learn(double weight, optimize::Optimizer& optimizer, model::Workspace& workspace) {
  if (Dense()) effort_.applied += parameters_.size() * sizeof(float);
  for (std::size_t b = 0; !Dense() && b < gradient_.blocks.size(); ++b)
    effort_.rows += gradient_.blocks[b].touched().size() * (parameters_.width(b) + 1) * sizeof(float);
  model_.Apply(parameters_, gradient_, weight, optimizer, workspace);
}

Copy::Letters Copy::Away() {
  Letters letters(servers());
  for (std::size_t s = 0; s < servers(); ++s) {
    letters[s] = Writer(AwayHead{.request = ++requests_}).Take();
    asked_[requests_] = {static_cast<int>(s), 0, {}, {}};
  }
  return letters;
}

Copy::Letters Copy::AskHave(const std::vector<bool>& whom) {
  Letters letters(servers());
  for (std::size_t s = 0; s < servers(); ++s) {
    if (!whom[s]) continue;
    letters[s] = Writer(PullHead{.request = ++requests_}).Take();
    asked_[requests_] = {static_cast<int>(s), 0, {}, {}};
    for (auto& list : last_[s]) list.clear();
  }
  return letters;
}

void Copy::Forget() {
  asked_.clear();
  for (Lists& lists : last_)
    for (auto& list : lists) list.clear();
}

Result<AnswerHead> Copy::Take(int server, std::span<const std::byte> letter) {
  if (reinterpret_cast<std::uintptr_t>(letter.data()) % 8 != 0) {
    const std::vector<std::byte> copy(letter.begin(), letter.end());
    return Take(server, copy);
  }
  Reader reader(letter);
  const auto head = TRY(reader.Take<AnswerHead>());
  const auto found = asked_.find(head.request);
  if (head.kind != Kind::kAnswer || found == asked_.end() || found->second.server != server) return Reader::Damaged();
  const Question question = std::move(found->second);
  asked_.erase(found);
  const auto s = static_cast<std::size_t>(server);
  const std::uint64_t stamp = question.clock + 1;
  versions_[s] = head.version;
  const float* had = question.had.data();
  for (std::size_t b = 0; b < question.rows.size(); ++b) {
    const auto& rows = question.rows[b];
    if (rows.empty()) continue;
    const std::uint64_t width = parameters_.width(b);
    const float* from = TRY(reader.Numbers<float>(rows.size() * width)).data();
    effort_.rows += rows.size() * (width + 1) * sizeof(float);
    if (stamps_[b].size() < parameters_.rows(b)) stamps_[b].resize(parameters_.rows(b), 0);
    if (Bounded() && complete_[b].size() < parameters_.rows(b)) complete_[b].resize(parameters_.rows(b), 0);
    for (const std::uint32_t row : rows) {
      Put({from, width}, parameters_.Row(b, row), had);
      stamps_[b][row] = static_cast<std::uint32_t>(stamp);
      if (Bounded()) complete_[b][row] = static_cast<std::uint32_t>(head.clock + 1);
      from += width;
    }
  }
  if (!Dense() || reader.left() + head.hollow == 0) return head;
  for (const Parcel& parcel : stretches_[s]) {
    effort_.copied += parcel.count * parameters_.width(parcel.block) * sizeof(float);
    if (Hollow()) continue;
    const auto values = TRY(reader.Numbers<float>(parcel.count * parameters_.width(parcel.block)));
    Put(values, parameters_.Row(parcel.block, parcel.first), had);
  }
  dense_stamps_[s] = stamp;
  return head;
}

void Copy::SetSynchrony(const Synchrony& synchrony, bool ahead) {
  CHECK(HoldsNothing());
  options_.synchrony = synchrony;
  options_.ahead = ahead;
}

void Copy::Settled(std::uint64_t clock) {
  if (options_.near == nullptr)
    settled_ = clock + 1;
  else
    for (auto& stamps : stamps_) stamps.clear();
}

bool Copy::HoldsNothing() const {
  return asked_.empty() &&
         std::all_of(held_.begin(), held_.end(), [](const Held& each) { return each.rows.rows().empty(); });
}

void Copy::ForgetNear() {
  CHECK(HoldsNothing());
  for (auto& stamps : stamps_) stamps.clear();
  for (Lists& lists : last_)
    for (auto& list : lists) list.clear();
}

Copy::Letters Copy::Push(PushHead head, std::span<const std::byte> digest, const Telling& telling) {
  encoding_.SetPlain(head.clock < options_.warm_start);
  if (!Holds()) return Dense() ? PushDense(head, digest) : PushRows(head, digest, telling.by_name);
  const bool all = (head.clock + 1) % options_.push_every == 0 && options_.push_every > 1;
  if (Hollow()) return PushHollow(head, all, digest);
  Hold(head.weight, telling.had);
  return PushHeld(head, all, digest, telling.had);
}

Copy::Letters Copy::PushRest(PushHead head) {
  if (!Holds()) return {};
  bool any = false;
  for (const Held& each : held_) any = any || !each.rows.rows().empty();
  return any ? PushHeld(head, true, {}, {}) : Letters();
}

Copy::Letters Copy::Finish(std::vector<Writer>& writers, std::vector<PushHead>& heads,
                           std::span<const std::byte> digest) const {
  Letters letters;
  for (std::size_t s = 0; s < writers.size(); ++s) {
    heads[s].digest = digest.size();
    heads[s].hollow = writers[s].hollow();
    heads[s].version = versions_[s];
    writers[s].SetHead(heads[s]);
    writers[s].Put(digest.data(), digest.size());
    letters.push_back(writers[s].Take());
  }
  return letters;
}

// Of a push, and of the question that mostly stands behind it.
std::size_t Copy::RoomForDense(std::size_t server) const {
  std::size_t room = 2 * sizeof(std::uint64_t) + sizeof(PullHead);
  for (const Parcel& parcel : stretches_[server])
    room += 2 * sizeof parcel + parcel.count * parameters_.width(parcel.block) * sizeof(float) + 8;
  return room;
}

Copy::Letters Copy::PushDense(const PushHead& head, std::span<const std::byte> digest) {
  std::vector<PushHead> heads(servers(), head);
  std::vector<Writer> writers;
  for (std::size_t s = 0; s < servers(); ++s) {
    writers.emplace_back(head, Hollow() || encoding_.encodes() ? 0 : RoomForDense(s) + digest.size());
    for (const Parcel& parcel : stretches_[s]) {
      const optimize::BlockGradient& block = gradient_.blocks[parcel.block];
      if (block.empty()) continue;
      const std::size_t count = parcel.count * block.width();
      const float* const from = block.memory().data() + parcel.first * block.width();
      const float scale = block.scale();
      effort_.copied += count * sizeof(float);
      ++heads[s].parcels;
      if (Hollow()) {
        writers[s].Begin(parcel);
        writers[s].Put(from, options_.codec == nullptr ? count * sizeof(float) : options_.codec->EncodedBytes(count));
        continue;
      }
      float* const out = encoding_.Begin(writers[s], parcel);
      std::transform(from, from + count, out, [scale](float value) { return scale * value; });
      saved_[s] += encoding_.End(writers[s]);
    }
  }
  return Finish(writers, heads, digest);
}

void Copy::Sort(std::size_t b, std::span<const std::uint32_t> rows) {
  for (auto& list : sorted_) list.clear();
  for (const std::uint32_t row : rows) sorted_[ServerOf(b, row)].push_back(row);
}

Copy::Letters Copy::PushRows(const PushHead& head, std::span<const std::byte> digest, bool by_name) {
  std::vector<PushHead> heads(servers(), head);
  std::vector<Writer> writers(servers(), Writer(head));
  for (std::size_t b = 0; b < gradient_.blocks.size(); ++b) {
    const optimize::BlockGradient& block = gradient_.blocks[b];
    Sort(b, block.touched());
    for (std::size_t s = 0; s < servers(); ++s) {
      if (sorted_[s].empty()) continue;
      // Mostly these are the rows that were asked for: then their numbers need not travel again.
      const auto& asked = last_[s][b];
      const bool same = !by_name && asked.size() == sorted_[s].size() &&
                        std::all_of(asked.begin(), asked.end(), [&](std::uint32_t row) { return block.Find(row); });
      const auto& rows = same ? asked : sorted_[s];
      const Parcel parcel{.block = static_cast<std::uint32_t>(b),
                          .form = same ? Parcel::Form::kSame : Parcel::Form::kRows,
                          .count = rows.size()};
      effort_.rows += rows.size() * (block.width() + 1) * sizeof(float);
      float* out = encoding_.Begin(writers[s], parcel, Far(b, rows));
      for (const std::uint32_t row : rows) out = std::copy_n(block.Find(row), block.width(), out);
      saved_[s] += encoding_.End(writers[s]);
      ++heads[s].parcels;
    }
  }
  return Finish(writers, heads, digest);
}

// Which rows matter is not to be known of numbers that are not there: all do.
Copy::Letters Copy::PushHollow(const PushHead& head, bool all, std::span<const std::byte> digest) {
  if (all || options_.synchrony.kind == Synchrony::Kind::kApproximate) return PushDense(head, digest);
  std::vector<PushHead> heads(servers(), head);
  std::vector<Writer> writers(servers(), Writer(head));
  return Finish(writers, heads, digest);
}

bool Copy::Had(const std::vector<bool>& had, std::size_t b, std::uint32_t row) const {
  return !had.empty() && had[ServerOf(b, row)];
}

void Copy::Hold(double weight, const std::vector<bool>& had) {
  const float factor = weight > 0 ? static_cast<float>(1 / weight) : 1.0f;
  for (std::size_t b = 0; b < held_.size(); ++b) {
    const optimize::BlockGradient& block = gradient_.blocks[b];
    const std::uint64_t width = block.width();
    Held& held = held_[b];
    if (held.values.size() < parameters_.rows(b) * width) held.values.resize(parameters_.rows(b) * width, 0.0f);
    const auto add = [&](std::uint32_t row, const float* from, float by) {
      if (Had(had, b, row)) return;
      float* const to = held.values.data() + row * width;
      for (std::uint64_t k = 0; k < width; ++k) to[k] += by * from[k];
      held.rows.Add(row);
    };
    if (Dense() && !block.empty())
      for (std::uint32_t row = 0; row < parameters_.rows(b); ++row)
        add(row, block.memory().data() + row * width, factor * block.scale());
    for (std::size_t i = 0; i < block.touched().size(); ++i) add(block.touched()[i], block.Values(i).data(), factor);
  }
}

// Does what is held back of a row move it by enough? As a step of plain SGD would.
bool Copy::Matters(std::size_t b, std::uint32_t row, std::uint64_t clock) const {
  const std::uint64_t width = parameters_.width(b);
  const auto length = [width](const float* values) {
    return std::sqrt(std::inner_product(values, values + width, values, 0.0));
  };
  const double least = options_.synchrony.significance / std::sqrt(static_cast<double>(clock) + 1);
  return rate_ * length(held_[b].values.data() + row * width) >= least * length(parameters_.Row(b, row));
}

Copy::Letters Copy::PushHeld(PushHead head, bool all, std::span<const std::byte> digest, const std::vector<bool>& had) {
  head.weight = 1;
  std::vector<PushHead> heads(servers(), head);
  std::vector<Writer> writers(servers(), Writer(head));
  const bool by_significance = options_.synchrony.kind == Synchrony::Kind::kApproximate;
  for (std::size_t b = 0; b < held_.size(); ++b) {
    Held& held = held_[b];
    const std::uint64_t width = parameters_.width(b);
    std::vector<std::uint32_t> told, kept;
    for (const std::uint32_t row : held.rows.rows())
      (!Had(had, b, row) && (all || (by_significance && Matters(b, row, head.clock))) ? told : kept).push_back(row);
    held.rows.Clear();
    for (const std::uint32_t row : kept) held.rows.Add(row);
    Sort(b, told);
    for (std::size_t s = 0; s < servers(); ++s) {
      if (sorted_[s].empty()) continue;
      const Parcel parcel{
          .block = static_cast<std::uint32_t>(b), .form = Parcel::Form::kRows, .count = sorted_[s].size()};
      effort_.rows += sorted_[s].size() * (width + 1) * sizeof(float);
      float* out = encoding_.Begin(writers[s], parcel, Far(b, sorted_[s]));
      for (const std::uint32_t row : sorted_[s]) {
        float* const values = held.values.data() + row * width;
        out = std::copy_n(values, width, out);
        std::fill_n(values, width, 0.0f);
      }
      saved_[s] += encoding_.End(writers[s]);
      ++heads[s].parcels;
    }
  }
  return Finish(writers, heads, digest);
}

}  // namespace freshet::strategy::server
