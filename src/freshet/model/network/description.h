#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// What a text may leave to the data it is used with: input = "data", dense = "classes", dense = "input".
struct Fit {
  Shape input = {};          // empty: not known
  std::int64_t classes = 0;  // 0: not known
};

inline constexpr std::size_t kMostTextBytes = 1'000'000;

// A network as TOML, for people to write and to read. docs/networks.md describes the form:
//
//   input = [1, 28, 28]
//   layers = [
//     {convolution = 20, kernel = 5},
//     {max-pool = 2},
//     {dense = 500, activation = "relu"},
//     {dense = 10, place = "b"},
//   ]
//
// GraphFromToml(ToToml(graph)) is the same graph, for every graph that Infer accepts, whose names are UTF-8 and whose
// text stays within kMostTextBytes; fields that do not matter to a layer's operation come back as defaults.
std::string ToToml(const Graph& graph);

// A graph that Infer accepts; `lines`, if given, gets the line of every layer. kInvalid says the line, what was found,
// and what was expected or probably meant.
Result<Graph> GraphFromToml(std::string_view toml, const Fit& fit = {}, std::vector<std::uint32_t>* lines = nullptr);

}  // namespace freshet::model::network
