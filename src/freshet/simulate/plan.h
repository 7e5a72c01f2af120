#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulate/simulation.h"

namespace freshet::simulate {

// What may be chosen when training is planned. What would change what is learned (the rows of an update, averaging,
// codecs that lose something) is allowed by who asks, not by the plan.
struct Choices {
  std::vector<std::string> strategies = {"allreduce"};
  std::vector<fabric::Algorithm> topologies = {fabric::Algorithm::kRing,   fabric::Algorithm::kHalving,
                                               fabric::Algorithm::kTree,   fabric::Algorithm::kHierarchical,
                                               fabric::Algorithm::kDirect, fabric::Algorithm::kCentral};
  std::vector<std::string> codecs = {"none"};
  std::vector<std::size_t> buckets = {1 << 20, 4 << 20, 16 << 20};  // bytes
  std::vector<int> workers_per_node = {1, 2};
};

// One way to train, and what would become of it.
struct Candidate {
  Scenario scenario;
  Outcome outcome;

  std::string Name() const;  // "allreduce by ring, fp16, 2 workers a node, buckets of 4.2 MB"
  // What it loses by, beside a better one.
  std::string Why(const Candidate& better) const;
};

enum class Search {
  kStaged,      // who exchanges with whom first; codecs and buckets for the best of these
  kExhaustive,  // everything
};
// All that were tried, the fastest first. `base` says what is not to be chosen. `go_on` is asked before each.
Result<std::vector<Candidate>> Plan(const Scenario& base, const Choices& choices, Search search,
                                    const model::Model& model, const Costs& costs, fabric::sim::Flows& flows,
                                    const std::function<Result<void>()>& go_on);

}  // namespace freshet::simulate
