#include "deploy/joined_sets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {

using std::uint64_t;

void JoinedSets::Add(uint64_t first, uint64_t rows, bool visited) {
  CHECK(first >= end());
  if (rows > 0) sets_.push_back({first, first + rows, visited});
}

uint64_t JoinedSets::RowsBetween(uint64_t begin, uint64_t end) const {
  uint64_t rows = 0;
  for (const Set& set : sets_) {
    const uint64_t from = std::max(set.first, begin), to = std::min(set.end, end);
    if (from < to) rows += to - from;
  }
  return rows;
}

bool JoinedSets::Holds(uint64_t number) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const Set& set) { return set.Holds(number); });
}

void JoinedSets::Draw(uint64_t begin, uint64_t end, uint64_t count, base::Random& random,
                      std::vector<uint64_t>& numbers) const {
  const uint64_t rows = RowsBetween(begin, end);
  count = std::min(count, rows);
  LazyShuffle shuffle(rows, count);
  for (; count > 0; --count) {
    uint64_t place = shuffle.Next(random);  // among the rows of sets alone
    for (const Set& set : sets_) {
      const uint64_t here = std::max(set.first, begin), to = std::min(set.end, end);
      if (here >= to) continue;
      if (place < to - here) {
        numbers.push_back(here + place);
        break;
      }
      place -= to - here;
    }
  }
}

uint64_t JoinedSets::ObservationBefore(uint64_t end, uint64_t observations) const {
  for (auto set = sets_.rbegin(); set != sets_.rend(); ++set) {
    if (set->first >= end) continue;
    const uint64_t between = end - std::min(end, set->end);
    if (observations <= between) break;
    observations -= between;
    end = set->first;
  }
  return end - std::min(end, observations);
}

uint64_t JoinedSets::unvisited() const {
  uint64_t rows = 0;
  for (const Set& set : sets_) rows += set.visited ? 0 : set.end - set.first;
  return rows;
}

bool JoinedSets::IsUnvisited(uint64_t number) const {
  return std::any_of(sets_.begin(), sets_.end(), [&](const Set& set) { return !set.visited && set.Holds(number); });
}

std::vector<uint64_t> JoinedSets::Unvisited(uint64_t first) const {
  std::vector<uint64_t> numbers;
  for (const Set& set : sets_)
    for (uint64_t number = std::max(set.first, first); !set.visited && number < set.end; ++number)
      numbers.push_back(number);
  return numbers;
}

void JoinedSets::Visited(uint64_t end) {
  for (Set& set : sets_) set.visited = set.visited || set.first < end;
}

nlohmann::ordered_json JoinedSets::Save() const {
  auto json = nlohmann::ordered_json::array();
  for (const Set& set : sets_) json.push_back({{"first", set.first}, {"end", set.end}, {"visited", set.visited}});
  return json;
}

bool JoinedSets::Load(const nlohmann::ordered_json& json) {
  std::vector<Set> sets;
  for (const auto& each : json) {
    const Set set{each.at("first"), each.at("end"), each.at("visited")};
    if (set.first >= set.end || (!sets.empty() && set.first < sets.back().end)) return false;
    sets.push_back(set);
  }
  sets_ = std::move(sets);
  return true;
}

}  // namespace freshet::deploy
