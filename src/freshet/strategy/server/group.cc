#include "strategy/server/group.h"

#include <algorithm>
#include <utility>

#include "strategy/letterbox.h"

namespace freshet::strategy::server {
namespace {

constexpr fabric::Tag kApart = fabric::Tag{1} << 48;
constexpr std::byte kStop{1};

fabric::Collectives::Options HowWithin(fabric::Collectives::Options how) {
  if (how.algorithm == fabric::Algorithm::kNative) how.algorithm = fabric::Algorithm::kAuto;  // of all members alone
  how.table = {};                                                                             // likewise
  return how;
}

}  // namespace

Group::Group(const Strategy::World& world, const std::vector<int>& ranks)
    : world_(world),
      fabric_(world.collectives.fabric(), ranks, kApart),
      collectives_(fabric_, HowWithin(world.collectives.options())),
      word_tag_(collectives_.NextTag()),
      wish_tag_(collectives_.NextTag()),
      touched_(world.parameters.blocks()) {}

Result<std::unique_ptr<Group>> Group::Make(const StrategyOptions& options, const Strategy::World& world,
                                           const std::vector<int>& ranks) {
  std::unique_ptr<Group> group(new Group(world, ranks));
  StrategyOptions plain = options;  // a codec is for what goes to servers
  plain.codec = "none";
  plain.factors = false;
  plain.overlap = false;  // the fabric's own thread has servers' letters to answer
  group->sum_.emplace(TRY(GradientSum::Make(plain, group->collectives_, world.model, world.trace)));
  for (int from = 1; group->leads() && from < group->size(); ++from) group->quiet_.push_back(from);
  return group;
}

Group::~Group() {
  EndListening();
  if (wish_) (void)fabric_.Wait(*wish_, std::chrono::seconds(1));
}

data::Batch Group::Share(const data::Batch& rows) const {
  return rows.Slice(fabric::ChunkBegin(rows.rows, fabric_.rank(), size()),
                    fabric::ChunkBegin(rows.rows, fabric_.rank() + 1, size()));
}

Result<void> Group::Tell(const Word& word) {
  for (int to = 1; to < size(); ++to) TRY(fabric_.Send(to, word_tag_, std::as_bytes(std::span(&word, 1))));
  return {};
}

Result<Group::Word> Group::Hear() {
  Word word;
  const auto coming = TRY(fabric_.StartReceive(0, word_tag_, std::as_writable_bytes(std::span(&word, 1))));
  TRY(fabric_.Wait(coming, Letterbox::kPatience));
  return word;
}

Result<void> Group::Broadcast(std::span<float> floats) {
  return floats.empty() ? Result<void>() : collectives_.Broadcast(std::as_writable_bytes(floats), 0);
}

// Of dense gradients that is everything; else all members find the same rows, of which only floats travel.
Result<void> Group::ShareRows(const data::Batch& rows, bool dense) {
  if (size() == 1) return {};
  optimize::Parameters& parameters = world_.parameters;
  if (!dense) {
    for (optimize::RowSet& set : touched_) set.Clear();
    world_.model.Touch(parameters, rows, touched_);
    floats_.clear();
    for (std::size_t b = 0; b < touched_.size(); ++b)
      for (const std::uint32_t row : touched_[b].rows())
        floats_.insert(floats_.end(), parameters.Row(b, row), parameters.Row(b, row) + parameters.width(b));
    TRY(Broadcast(floats_));
    const float* from = floats_.data();
    for (std::size_t b = 0; b < touched_.size(); ++b)
      for (const std::uint32_t row : touched_[b].rows()) {
        std::copy_n(from, parameters.width(b), parameters.Row(b, row));
        from += parameters.width(b);
      }
    return {};
  }
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    if (parameters.width(b) > 0 && parameters.rows(b) > 0) TRY(Broadcast(parameters.Values(b)));
  return {};
}

Result<void> Group::Sum(optimize::Gradient& gradient, std::uint64_t step) {
  if (size() == 1) return {};
  sum_->Begin(gradient, step);
  return sum_->Finish(gradient, world_.parameters);
}

Result<void> Group::ShareAll() {
  if (size() == 1) return {};
  std::vector<std::uint64_t> numbers = {world_.optimizer.step()};
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) numbers.push_back(world_.parameters.rows(b));
  TRY(collectives_.Broadcast(std::as_writable_bytes(std::span(numbers)), 0));
  const std::vector<std::uint64_t> rows(numbers.begin() + 1, numbers.end());
  TRY(world_.model.MakeRoom(world_.parameters, rows));
  TRY(world_.optimizer.Follow(world_.parameters));
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    for (optimize::Parameters* each : {&world_.parameters, &world_.optimizer.state()})
      if (each->width(b) > 0 && each->rows(b) > 0) TRY(Broadcast(each->Values(b)));
  world_.optimizer.SetStep(numbers[0]);
  return {};
}

Result<void> Group::WantStop() {
  if (!wish_) wish_ = TRY(fabric_.StartSend(0, wish_tag_, std::span(&kStop, 1)));
  return {};
}

Result<void> Group::Listen() {
  if (!wishes_.empty()) return {};
  for (const int from : quiet_) wishes_[from] = TRY(fabric_.StartBorrow(from, wish_tag_));
  return {};
}

void Group::EndListening() {
  for (const auto& [from, wish] : wishes_) {
    if (!fabric_.Wait(wish, std::chrono::nanoseconds(1)).ok()) continue;
    fabric_.Release(wish);
    stop_wanted_ = true;
    std::erase(quiet_, from);
  }
  wishes_.clear();
}

Result<bool> Group::StopWanted() {
  for (auto wish = wishes_.begin(); wish != wishes_.end();) {
    if (!fabric_.Done(wish->second)) {
      ++wish;
      continue;
    }
    const fabric::Transfer here = wish->second;
    std::erase(quiet_, wish->first);
    wish = wishes_.erase(wish);
    TRY(fabric_.Wait(here));
    fabric_.Release(here);
    stop_wanted_ = true;
  }
  return stop_wanted_;
}

}  // namespace freshet::strategy::server
