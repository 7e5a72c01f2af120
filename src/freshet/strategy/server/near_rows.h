#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/batch.h"
#include "model/model.h"

namespace freshet::strategy::server {

// The rows of a large model that a worker has near: those that its batches name, under numbers of their own, in the
// order in which they were met. Far rows are those of the whole model. Blocks that do not grow are near as they are.
//
// Threads: one. Ownership: borrows model and memory, which outlive it.
class NearRows {
 public:
  static Result<std::unique_ptr<NearRows>> Make(const model::Model& model, optimize::Memory& memory);

  // The batch by near numbers, with room for what it names. Good until the next call.
  Result<data::Batch> Show(const data::Batch& far);
  // Forgets all, so that numbers begin anew.
  void Forget();

  optimize::Parameters& parameters() { return parameters_; }
  std::uint32_t Far(std::size_t b, std::uint32_t near) const { return grows_[b] ? far_[near] : near; }
  // The same of many. Good until the next call.
  std::span<const std::uint32_t> Far(std::size_t b, std::span<const std::uint32_t> near);
  // More than a few batches need?
  bool many() const { return far_.size() > kLeast && far_.size() > 4 * most_met_; }

 private:
  static constexpr std::size_t kLeast = 1 << 16;

  NearRows(const model::Model& model, optimize::Parameters parameters);
  std::uint32_t Number(std::uint64_t key);
  void Rehash(std::size_t slots);

  const bool ratings_;  // then an entry is a user or an item, whose numbers are not the same thing
  optimize::Parameters parameters_;
  std::vector<bool> grows_;         // by block
  std::vector<std::uint32_t> far_;  // by near number
  std::size_t most_met_ = 0;        // by one batch
  // A table with open addressing: what is near, by a hash of its key.
  struct Slot {
    std::uint64_t key = 0;   // the far number; of items with a bit more
    std::uint32_t near = 0;  // one more than the near number; 0: empty
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> indices_, named_;
};

}  // namespace freshet::strategy::server
