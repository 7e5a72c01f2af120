#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "data/description.h"
#include "deploy/state.h"
#include "model/model.h"

namespace freshet::deploy {

// What predictions read: weights and input description of one moment.
struct Edition {
  Edition(const model::Model& m, optimize::Parameters p, data::Description d)
      : model(&m), parameters(std::move(p)), description(std::move(d)) {}
  const model::Model* model;  // whose weights these are: a model may get more classes
  optimize::Parameters parameters;
  data::Description description;          // with dictionaries and moments of the same moment
  std::uint64_t version = 0;              // the last sequence it has learned
  std::shared_ptr<const void> companion;  // what the door keeps with it, see Publisher
  optimize::RowSets stale;                // rows that the learning state has changed since: the writer's
};

// Lets many threads predict by a version that does not change under them while one thread goes on learning.
//
// There are a few editions of the weights. One is current; readers use it. To publish, the writer brings another one up
// to date, which costs the rows that have changed since that edition was last current, and makes it current.
//
// Memory model. `current_` and the readers' slots are sequentially consistent atomics. A reader stores the edition it
// found current in its own slot and then looks again: if it is still current, the writer cannot have begun to change
// it, because the writer changes an edition only after (1) another was made current and (2) no slot named it, read in
// that order; in the total order of these operations either the reader's second look sees (1), and it tries again, or
// the writer's look at the slots sees the reader. Writes to an edition happen before the store that makes it current,
// so before any read by a reader that finds it; reads happen before the reader empties its slot, so before the writes
// that follow the writer's look. Readers never wait: they try again only if a publication came between, which has then
// moved on. The writer never waits either: an edition still in use is left alone, and there are up to kMostEditions.
//
// Threads: Read by any number of threads, each with a slot of its own; everything else by the writer.
class Publisher {
 public:
  static constexpr std::size_t kMostEditions = 4;
  // Makes what the door wants to keep beside each edition, once; the edition stays where it is.
  using Companion = std::function<std::shared_ptr<const void>(const Edition& edition)>;

  Publisher(const model::Model& model, optimize::Memory& memory, int readers, Companion companion);
  ~Publisher();

  // An edition in use; ends with this object.
  class Reading {
   public:
    Reading(std::atomic<const Edition*>* slot, const Edition* edition) : slot_(slot), edition_(edition) {}
    ~Reading() {
      if (slot_ != nullptr) slot_->store(nullptr);
    }
    Reading(Reading&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), edition_(other.edition_) {}
    Reading& operator=(Reading&&) = delete;
    const Edition& operator*() const { return *edition_; }
    const Edition* operator->() const { return edition_; }

   private:
    std::atomic<const Edition*>* slot_;
    const Edition* edition_;
  };
  Reading Read(int slot) const;

  // An edition of this state of a model, made at full cost by any thread that has the state to itself.
  Result<std::unique_ptr<Edition>> NewEdition(const model::Model& model, const State& state,
                                              const data::Description& description) const;
  // From here on it is another model, which outlives this; Replace follows before anything is published.
  void SetModel(const model::Model& model) { model_ = &model; }
  // Editions that take the place of those there are, after another state took over; they may lack `touched` rows.
  void Replace(std::vector<std::unique_ptr<Edition>> editions, const optimize::RowSets& touched);

  // These rows of the state have changed.
  void Touch(const optimize::RowSets& touched);
  // Makes the state as it is now current. False when every other edition is in use: try again soon.
  Result<bool> Publish(const State& state, const data::Description& description, std::uint64_t version);

 private:
  struct alignas(64) Slot {
    std::atomic<const Edition*> edition{nullptr};
  };
  bool InUse(const Edition& edition) const;
  Result<Edition*> Standby(const State& state, const data::Description& description);
  void BringUpToDate(Edition& edition, const State& state, const data::Description& description) const;

  const model::Model* model_;  // the writer's
  optimize::Memory& memory_;
  const Companion companion_;
  mutable std::vector<Slot> slots_;
  std::atomic<const Edition*> current_{nullptr};
  std::vector<std::unique_ptr<Edition>> editions_, retired_;  // the writer's
};

}  // namespace freshet::deploy
