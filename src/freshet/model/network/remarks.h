#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/graph.h"

namespace freshet::model::network {

// What makes sense to Infer but was probably not meant: an answer that ends in the link of its own loss (softmax under
// softmax, sigmoid under logistic), layers that no head depends on, a sum or concat of one. Each is a sentence with
// the line of the text, where `lines` has one for every layer (see GraphFromToml), and what to do.
// `loss` may be empty: then what the number of scores asks for.
std::vector<std::string> Remarks(const Graph& graph, const std::vector<Facts>& facts, std::string_view loss,
                                 const std::vector<std::uint32_t>& lines);

}  // namespace freshet::model::network
