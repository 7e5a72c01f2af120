#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/platform.h"
#include "model/network/graph.h"

namespace freshet::simulate {

// What a batch costs one worker, in seconds on its cores.
struct StepCost {
  std::vector<double> finished;  // by block: from the begin until its gradient is complete
  double compute = 0;            // until all are, and the loss
  double apply = 0;              // of the update that follows
};

class Costs {
 public:
  virtual ~Costs() = default;
  virtual StepCost Of(std::size_t rows, int cores) const = 0;
  // Of one layer of a network, where that is known.
  struct OfLayer {
    double forward = 0, backward = 0;
  };
  virtual std::optional<OfLayer> OfOneLayer(std::size_t layer, std::size_t rows, int cores) const {
    (void)layer, (void)rows, (void)cores;
    return std::nullopt;
  }
};

// Of a network, by what the cores of a platform can do: layers that multiply reach the platform's share of its best
// speed, which grows with the rows; the others are as fast as memory. Backward takes as long as forward for the weights
// and again for the inputs, where these are not the data; an update is five passes over the parameters.
class DescribedCosts final : public Costs {
 public:
  // kInvalid when the graph makes no sense.
  static Result<DescribedCosts> Make(const model::network::Graph& graph, const fabric::sim::Platform& platform);
  StepCost Of(std::size_t rows, int cores) const override;
  std::optional<OfLayer> OfOneLayer(std::size_t layer, std::size_t rows, int cores) const override;

 private:
  struct Layer {
    double flops = 0, bytes = 0;  // of a row, forward; bytes that are read and written
    double weight_bytes = 0;      // of its parameters, whatever the rows
    std::size_t blocks = 0;
    int backward = 2;  // as much as so many times forward
  };
  explicit DescribedCosts(const fabric::sim::Platform& platform) : platform_(platform) {}
  double Seconds(const Layer& layer, std::size_t rows, int cores) const;

  fabric::sim::Platform platform_;
  std::vector<Layer> layers_;
};

// Of a linear model of sparse rows: each entry is a place of its own in memory, read to score a row, written to its gradient
// and twice with the update.
class DescribedSparseCosts final : public Costs {
 public:
  DescribedSparseCosts(std::size_t entries, std::size_t blocks, const fabric::sim::Platform& platform)
      : entries_(static_cast<double>(entries)), blocks_(blocks), platform_(platform) {}
  StepCost Of(std::size_t rows, int cores) const override;

 private:
  const double entries_;  // of a row
  const std::size_t blocks_;
  const fabric::sim::Platform platform_;
};

}  // namespace freshet::simulate
