#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/network/graph.h"

namespace freshet::bench {

// The convolutions and matrix products of one training step by themselves: each in the layouts the library likes best,
// on memory of its own, without anything between them. What a step takes beyond this is ours to answer for.
//
// Threads: one at a time; the library uses as many as Make was told.
class Alone {
 public:
  struct Layer {
    std::size_t number = 0;  // in the graph
    double flops = 0;        // of the batch: forward, and the gradients by weights and, but for the first, by data
    double seconds = 0;      // of all runs since Make
    std::vector<std::function<void()>> calls;
  };
  // kInvalid when the library cannot compute one of the layers.
  static Result<std::unique_ptr<Alone>> Make(const model::network::Graph& graph, std::size_t rows, int threads);
  virtual ~Alone() = default;

  // All of them once; the seconds that took.
  double Run(base::Clock& clock);
  const std::vector<Layer>& layers() const { return layers_; }
  // Whether every result is a finite number, and not all are zero.
  virtual bool Plausible() const = 0;

 protected:
  explicit Alone(int threads) : threads_(threads) {}

  const int threads_;
  std::vector<Layer> layers_;
};

}  // namespace freshet::bench
