#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/network/program.h"
#include "strategy/ring/cut.h"

namespace freshet::strategy::ring {

// A stage of a network as the member that holds it runs it: a program for each micro-batch that is forward and not yet
// backward, and the memory of the tensors that enter it and of their gradients. What leaves is the next stage's `enters`,
// in that order: made here, or only passing through. It knows nothing of how tensors travel.
//
// For each micro-batch, in their order: Begin, then Entering is filled, Forward; what is Leaving may be read, and each
// LeavingGradient that learns is filled; then Backward, after which EnteringGradient may be read.
//
// Micro-batches share memory: what belongs to one is used again for the `depth`-th after it, gradients of what entered for
// the `depth_before`-th.
//
// Ownership: borrows graph and facts. Threads: one at a time.
class Stage {
 public:
  struct Options {
    StageCut cut;
    std::vector<Crossing> leaves;
    int threads = 1;
    const model::network::Backend* backend = nullptr;
  };
  // What one of the graph's heads made of a micro-batch, and where its deltas go.
  struct HeadOutput {
    std::size_t head = 0;
    std::span<const float> made;
    std::span<float> deltas;
  };

  // kInvalid when its layers cannot be run on micro-batches of so many rows.
  static Result<Stage> Make(const model::network::Graph& graph, Options options, std::size_t rows);

  bool reads_rows() const { return reads_rows_; }
  const std::vector<Crossing>& enters() const { return options_.cut.enters; }
  const std::vector<Crossing>& leaves() const { return options_.leaves; }

  // Makes room for what follows: so many micro-batches are under way at once, here and in the stage before, of at most so
  // many rows. Called when none is.
  void MakeRoom(std::size_t depth, std::size_t depth_before, std::size_t rows);
  Result<void> Begin(std::size_t micro, std::size_t rows);
  std::span<float> Entering(std::size_t micro, std::size_t i);
  // `input` are the micro-batch's rows, where the stage reads them.
  void Forward(std::size_t micro, const optimize::Parameters& parameters, const float* input,
               const model::network::Draw& draw);
  std::span<const float> Leaving(std::size_t micro, std::size_t i) const;
  std::vector<HeadOutput> Heads(std::size_t micro) const;
  std::span<float> LeavingGradient(std::size_t micro, std::size_t i);
  void Backward(std::size_t micro, const optimize::Parameters& parameters, optimize::Gradient& gradient);
  std::span<const float> EnteringGradient(std::size_t micro, std::size_t i) const;

  std::size_t bytes() const;  // of its memory when as many micro-batches are under way as there is room for

 private:
  using Memory = std::vector<std::vector<float>>;  // by tensor
  struct Slot {
    std::list<std::unique_ptr<model::network::Program>> programs;  // of few sizes, the last used first
    std::size_t rows = 0;                                          // of the micro-batch it is used for
    Memory entering;
    Memory added;  // by what leaves: gradients of heads that others read, too, until they are added
  };
  // Where a tensor that leaves comes from.
  struct Source {
    std::size_t index = 0;  // of the program's outputs, or of what enters
    bool passes = false;    // it enters
    bool head = false;      // it is one, too
  };

  Stage(const model::network::Graph& graph, Options options) : graph_(graph), options_(std::move(options)) {}
  void FindSources(const model::network::Program& program);
  Result<void> UseProgram(Slot& slot, std::size_t rows);
  Slot& At(std::size_t micro) { return slots_[micro % depth_]; }
  const Slot& At(std::size_t micro) const { return slots_[micro % depth_]; }

  const model::network::Graph& graph_;
  Options options_;
  bool reads_rows_ = false;
  std::vector<std::optional<std::size_t>> inputs_;  // of the program: which of what enters; none: the rows
  std::vector<Source> sources_;                     // by what leaves
  std::vector<std::size_t> heads_;                  // outputs of the program that are
  std::size_t depth_ = 1, depth_before_ = 1;
  std::vector<Slot> slots_;
  std::vector<Memory> gradients_;  // of what entered
  std::vector<float> unwanted_;    // gradient of the rows
};

}  // namespace freshet::strategy::ring
