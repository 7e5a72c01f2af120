#include "strategy/neighbours.h"

#include <charconv>
#include <optional>
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

// Those that have names; nothing for a graph that is written.
std::optional<Edges> Named(const std::string& graph, int members) {
  Edges edges(static_cast<std::size_t>(members));
  for (int rank = 0; rank < members; ++rank) {
    if (graph == "ring") {
      Connect(edges, rank, (rank + 1) % members);
    } else if (graph == "random") {
      for (int other = 0; other < rank; ++other) Connect(edges, rank, other);
    } else if (graph == "exponential") {
      for (int away = 1; away < members; away *= 2) Connect(edges, rank, (rank + away) % members);
    } else {
      return std::nullopt;
    }
  }
  return edges;
}

// The first rank of each piece, but for that of rank 0.
std::vector<int> PiecesApart(const Edges& edges) {
  std::vector<int> apart;
  std::set<int> reached;
  for (int first = 0; first < static_cast<int>(edges.size()); ++first) {
    if (!reached.insert(first).second) continue;
    if (first > 0) apart.push_back(first);
    for (std::vector<int> next = {first}; !next.empty();) {
      const int rank = next.back();
      next.pop_back();
      for (const int other : edges[static_cast<std::size_t>(rank)])
        if (reached.insert(other).second) next.push_back(other);
    }
  }
  return apart;
}

std::vector<std::vector<int>> Lists(const Edges& edges) {
  std::vector<std::vector<int>> lists;
  for (const std::set<int>& of_rank : edges) lists.emplace_back(of_rank.begin(), of_rank.end());
  return lists;
}

}  // namespace

Result<std::vector<std::vector<int>>> Neighbours(const std::string& graph, int members) {
  const std::optional<Edges> named = Named(graph, members);
  const Edges edges = named ? *named : TRY(Parse(graph, members));
  if (const std::vector<int> apart = PiecesApart(edges); !apart.empty())
    return Error{Code::kInvalid, Str(Option("neighbours"), ": there is no way from rank 0 to rank ", apart[0],
                                     ", so that they could never learn from each other")};
  return Lists(edges);
}

Result<Remaining> NeighboursOf(const std::string& graph, const std::vector<int>& vertices) {
  Remaining remaining;
  const std::optional<Edges> named = Named(graph, static_cast<int>(vertices.size()));
  Edges edges(vertices.size());
  if (named) {
    edges = *named;
  } else {
    const Edges whole = TRY(Parse(graph, kMostVertices));
    for (std::size_t rank = 0; rank < edges.size(); ++rank)
      for (std::size_t other = 0; other < rank; ++other)
        if (whole[static_cast<std::size_t>(vertices[rank])].contains(vertices[other]))
          Connect(edges, static_cast<int>(rank), static_cast<int>(other));
  }
  for (const int first : PiecesApart(edges)) {
    remaining.added.emplace_back(0, first);
    Connect(edges, 0, first);
  }
  remaining.lists = Lists(edges);
  return remaining;
}

}  // namespace freshet::strategy
