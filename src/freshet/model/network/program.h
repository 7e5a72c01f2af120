#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/network/graph.h"
#include "model/network/slicing.h"
#include "optimize/gradient.h"
#include "optimize/parameters.h"
#include "optimize/portion.h"

namespace freshet::model::network {

class Backend;

// What draws the dropped values: the same for a row whatever batch it stands in.
struct Draw {
  std::uint64_t seed = 1, step = 0;
  const std::uint64_t* samples = nullptr;  // of the rows, there until Backward is done; null: 0, 1, …
};

// How layers meet those of other workers, who run the same ones.
struct Meeting {
  std::function<void(std::span<float> values)> sum;  // batch norm: over all workers, in place
  bool counts = true;      // false: these rows only keep company, for a worker that has none; nothing of them is summed
  Exchange exchange = {};  // slices
};

// Some layers of a network made ready to run on batches of one size: kernels chosen, layouts settled, all memory
// planned as one arena, in which tensors that are never needed at the same time share a place.
//
// A program runs the layers first … last-1 of a graph (all of them, or a stage of a pipeline). What crosses the cut is
// a port: a tensor of `rows` rows in plain row-major order. Input ports are the layers before `first` that are read
// here; output ports the layers here that are heads or are read from `last` on.
//
// Parameters and gradients: of the whole graph, block after block in the order of layers (made from Blocks), or of a
// portion that holds the blocks of these layers (BlocksOf). Only plain copies of parameters are kept: kernels that like
// another order make it anew in every call, so that no copy is ever stale.
//
// Threads: a program belongs to one thread at a time; its kernels use `threads` of the back-end's, those that have
// little to do one.
class Program {
 public:
  struct Options {
    std::size_t rows = 1;
    bool training = false;                // else Forward only, and dropout and batch norm as for predictions
    bool together = false;                // batch norm by the rows of all workers, who Meet
    std::optional<Slicing> slicing = {};  // while training: fully connected layers in slices, of workers who Meet
    int threads = 1;
    const Backend* backend = nullptr;  // what computes the layers; outlives the program. Null: oneDNN
    int first = 0, last = 0;           // 0 … 0: all layers
    bool input_gradients = false;      // Backward fills them
    bool auxiliary = true;             // keep heads other than the first
  };
  struct Port {
    int layer = 0;
    std::int64_t elements = 0;             // of one row
    std::optional<std::size_t> head = {};  // of the graph's heads, the one whose output it is
    bool read_later = false;               // an input that layers from `last` on read, too
  };
  // Called when the gradient of a block is complete, in backward order.
  using Finished = std::function<void(std::size_t block)>;
  // Asked before every layer, where it is given: false ends the call, and what it wrote is worth nothing.
  using GoesOn = std::function<bool()>;

  static Result<std::unique_ptr<Program>> Compile(const Graph& graph, const Options& options);
  virtual ~Program() = default;

  virtual const Options& options() const = 0;
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  virtual std::size_t arena_bytes() const = 0;
  // What is computed a hundred times slower than it could be, since the library has no better kernel for it:
  // "layer 'conv2': the gradient of its weights (ref:any)".
  virtual const std::vector<std::string>& slow() const = 0;

  // Said before Forward where options.together; holds until it is said again.
  virtual void Meet(Meeting meeting) = 0;
  // `inputs` must stay as they are until Backward is done. What is in Output(i) holds until the next call. False when
  // it was ended by `goes_on`.
  virtual bool Forward(const optimize::Parameters& parameters, std::span<const float* const> inputs, const Draw& draw,
                       const GoesOn& goes_on = {}) = 0;
  virtual std::span<const float> Output(std::size_t i) const = 0;
  // Where the loss's derivative by Output(i) is to be put before Backward; empty where nothing here learns by it.
  virtual std::span<float> OutputGradient(std::size_t i) = 0;
  // Adds to the gradient of the parameters; with options.input_gradients, writes those of the input ports, or adds to
  // what has come back from later layers where these read a port, too: what is added then is added in the order of the
  // whole graph.
  virtual bool Backward(const optimize::Parameters& parameters, optimize::Gradient& gradient,
                        std::span<float* const> input_gradients, const Finished& finished,
                        const GoesOn& goes_on = {}) = 0;

  // Seconds spent in each layer since Measure, forward and backward, for benchmarks. What was fused counts for the
  // layer that took it in. Null: measures nothing.
  struct Seconds {
    double forward = 0, backward = 0;
  };
  virtual void Measure(const base::Clock* clock) = 0;
  virtual std::vector<Seconds> seconds() const = 0;  // by layer of the graph
};

// The blocks of all layers, in order.
std::vector<optimize::Block> Blocks(const std::vector<Facts>& facts);
// Those of the layers first … last-1: what a stage holds.
optimize::Portion BlocksOf(const std::vector<Facts>& facts, int first, int last);

}  // namespace freshet::model::network
