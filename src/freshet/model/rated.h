#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "data/batch.h"

namespace freshet::model {

// Who has rated what: the ratings that a factorization was trained on, without their values. Kept with the model, so
// that nobody is offered what they know already.
//
// Threads: one at a time. Memory: 8 bytes a rating; beyond kMost the later ones are left out.
class Rated {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // numbers of user and item in the dictionaries
  static constexpr std::size_t kMost = 1 << 26;

  void Add(const data::Batch& ratings);
  const std::vector<Pair>& pairs() const { return pairs_; }
  bool empty() const { return pairs_.empty(); }

  // A byte or two a rating: for user 0, 1, 2 … how many items, and which, in ascending order, each once and as its
  // distance from the one before (LEB128 numbers). So the same ratings give the same bytes, in whatever order they
  // came. kCorrupt for bytes that are no such thing.
  std::string Pack() const;
  static Result<Rated> Unpack(std::string_view bytes);

 private:
  std::vector<Pair> pairs_;
};

}  // namespace freshet::model
