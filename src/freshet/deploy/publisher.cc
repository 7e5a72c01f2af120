#include "deploy/publisher.h"

#include <algorithm>

namespace freshet::deploy {
namespace {

// Dictionaries only grow, so that what is missing is at the end.
void BringUpToDate(data::Dictionary& dictionary, const data::Dictionary& from) {
  for (std::uint32_t number = dictionary.size(); number < from.size(); ++number) dictionary.Add(from.Name(number));
}

void AddAll(optimize::RowSets& to, const optimize::RowSets& from) {
  to.resize(from.size());
  for (std::size_t b = 0; b < from.size(); ++b)
    for (const std::uint32_t row : from[b].rows()) to[b].Add(row);
}

}  // namespace

Publisher::Publisher(const model::Model& model, optimize::Memory& memory, int readers, Companion companion)
    : model_(&model), memory_(memory), companion_(std::move(companion)), slots_(static_cast<std::size_t>(readers)) {}

Publisher::~Publisher() {
  for (const auto& edition : editions_) CHECK(!InUse(*edition));
}

Publisher::Reading Publisher::Read(int slot) const {
  std::atomic<const Edition*>& place = slots_[static_cast<std::size_t>(slot)].edition;
  while (true) {
    const Edition* const edition = current_.load();
    place.store(edition);
    if (current_.load() == edition) return {&place, edition};
  }
}

bool Publisher::InUse(const Edition& edition) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.edition.load() == &edition; });
}

Result<std::unique_ptr<Edition>> Publisher::NewEdition(const model::Model& model, const State& state,
                                                       const data::Description& description) const {
  auto edition = std::make_unique<Edition>(model, TRY(model.NewParameters(memory_)), description);
  edition->parameters.CopyFrom(state.parameters);
  edition->description.moments = state.moments;
  edition->description.target = state.target;
  edition->stale.resize(state.parameters.blocks());
  if (companion_) edition->companion = companion_(*edition);
  return edition;
}

void Publisher::Replace(std::vector<std::unique_ptr<Edition>> editions, const optimize::RowSets& touched) {
  std::move(editions_.begin(), editions_.end(), std::back_inserter(retired_));
  editions_ = std::move(editions);
  Touch(touched);
}

void Publisher::Touch(const optimize::RowSets& touched) {
  for (const auto& edition : editions_) AddAll(edition->stale, touched);
}

Result<Edition*> Publisher::Standby(const State& state, const data::Description& description) {
  const Edition* const current = current_.load();
  for (const auto& edition : editions_)
    if (edition.get() != current && !InUse(*edition)) return edition.get();
  if (editions_.size() >= kMostEditions) return static_cast<Edition*>(nullptr);
  editions_.push_back(TRY(NewEdition(*model_, state, description)));
  return editions_.back().get();
}

void Publisher::BringUpToDate(Edition& edition, const State& state, const data::Description& description) const {
  const optimize::Parameters& from = state.parameters;
  for (std::size_t b = 0; b < from.blocks(); ++b) {
    const std::uint64_t known = edition.parameters.rows(b);
    edition.parameters.CopyRows(from, b, known, std::max(known, from.rows(b)));
    for (const std::uint32_t row : edition.stale[b].rows())
      if (row < known) edition.parameters.CopyRows(from, b, row, row + 1);
    edition.stale[b].Clear();
  }
  for (std::size_t d = 0; d < description.dictionaries.size(); ++d)
    deploy::BringUpToDate(edition.description.dictionaries[d], description.dictionaries[d]);
  edition.description.moments = state.moments;
  edition.description.target = state.target;
}

Result<bool> Publisher::Publish(const State& state, const data::Description& description, std::uint64_t version) {
  Edition* const standby = TRY(Standby(state, description));
  if (standby == nullptr) return false;
  BringUpToDate(*standby, state, description);
  standby->version = version;
  current_.store(standby);
  std::erase_if(retired_, [&](const auto& edition) { return !InUse(*edition); });
  return true;
}

}  // namespace freshet::deploy
