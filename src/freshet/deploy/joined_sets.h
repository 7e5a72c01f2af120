#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/random.h"

namespace freshet::deploy {

// Which rows of the history came as registered data sets, and which of those no iteration has visited yet. Such rows
// were chosen by a person: they are all visited once, and a drift does not take them out of the history.
//
// Threads: one at a time.
class JoinedSets {
 public:
  // A set with the numbers first … first + rows - 1, after all that are known.
  void Add(std::uint64_t first, std::uint64_t rows, bool visited);
  std::uint64_t end() const { return sets_.empty() ? 0 : sets_.back().end; }

  // Rows of sets among the numbers begin … end - 1.
  std::uint64_t RowsBetween(std::uint64_t begin, std::uint64_t end) const;
  bool Holds(std::uint64_t number) const;
  // Appends `count` different ones of those numbers, or all when there are fewer.
  void Draw(std::uint64_t begin, std::uint64_t end, std::uint64_t count, base::Random& random,
            std::vector<std::uint64_t>& numbers) const;
  // The number of the observation that came `observations` before `end`; 0 when there were fewer.
  std::uint64_t ObservationBefore(std::uint64_t end, std::uint64_t observations) const;

  std::uint64_t unvisited() const;  // rows
  bool IsUnvisited(std::uint64_t number) const;
  // From `first` on, in order.
  std::vector<std::uint64_t> Unvisited(std::uint64_t first) const;
  // All sets that begin before this number have been.
  void Visited(std::uint64_t end);

  nlohmann::ordered_json Save() const;
  // False, and nothing has changed, when this cannot come from Save; may throw what the JSON library throws.
  [[nodiscard]] bool Load(const nlohmann::ordered_json& json);

 private:
  struct Set {
    std::uint64_t first, end;
    bool visited;
    bool Holds(std::uint64_t number) const { return number >= first && number < end; }
  };
  std::vector<Set> sets_;  // by number
};

}  // namespace freshet::deploy
