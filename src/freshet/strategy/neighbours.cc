#include "strategy/neighbours.h"

#include <charconv>
#include <set>

#include "base/option.h"
#include "base/str.h"

namespace freshet::strategy {
namespace {

using Edges = std::vector<std::set<int>>;  // by rank

void Connect(Edges& edges, int one, int other) {
  if (one == other) return;
  edges[static_cast<std::size_t>(one)].insert(other);
  edges[static_cast<std::size_t>(other)].insert(one);
}

std::optional<int> RankIn(std::string_view text) {
  int rank = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (problem != std::errc() || end != text.data() + text.size() || rank < 0) return std::nullopt;
  return rank;
}

Result<Edges> Parse(const std::string& graph, int members) {
  Edges edges(static_cast<std::size_t>(members));
  for (const std::string_view pair : Split(graph, ',')) {
    const std::size_t dash = pair.find('-');
    const auto one = RankIn(pair.substr(0, dash));
    const auto other = dash == std::string_view::npos ? std::nullopt : RankIn(pair.substr(dash + 1));
    if (!one || !other)
      return Error{Code::kInvalid, Str(Option("neighbours"), ": found ", Quoted(graph),
                                       ", expected ring, random, exponential, or pairs of ranks as 0-1,1-2,2-0")};
    for (const int rank : {*one, *other})
      if (rank >= members)
        return Error{Code::kInvalid, Str(Option("neighbours"), ": there is no rank ", rank, " among ", members,
                                         " workers; the last is ", members - 1)};
    Connect(edges, *one, *other);
  }
  return edges;
}

}  // namespace

Result<std::vector<std::vector<int>>> Neighbours(const std::string& graph, int members) {
  Edges edges(static_cast<std::size_t>(members));
  if (graph == "ring") {
    for (int rank = 0; rank < members; ++rank) Connect(edges, rank, (rank + 1) % members);
  } else if (graph == "random") {
    for (int rank = 0; rank < members; ++rank)
      for (int other = 0; other < rank; ++other) Connect(edges, rank, other);
  } else if (graph == "exponential") {
    for (int rank = 0; rank < members; ++rank)
      for (int away = 1; away < members; away *= 2) Connect(edges, rank, (rank + away) % members);
  } else {
    edges = TRY(Parse(graph, members));
  }
  std::set<int> reached = {0};
  for (std::vector<int> next = {0}; !next.empty();) {
    const int rank = next.back();
    next.pop_back();
    for (const int other : edges[static_cast<std::size_t>(rank)])
      if (reached.insert(other).second) next.push_back(other);
  }
  for (int rank = 0; rank < members; ++rank)
    if (!reached.contains(rank))
      return Error{Code::kInvalid, Str(Option("neighbours"), ": there is no way from rank 0 to rank ", rank,
                                       ", so that they could never learn from each other")};
  std::vector<std::vector<int>> lists;
  for (const std::set<int>& of_rank : edges) lists.emplace_back(of_rank.begin(), of_rank.end());
  return lists;
}

}  // namespace freshet::strategy
