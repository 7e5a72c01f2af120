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
// LeavingGradient that learns is filled; then Again, and Backward, after which EnteringGradient may be read.
//
// Who recomputes has one program for all micro-batches, keeps what enters and what leaves of each, and Again runs it forward
// once more where another micro-batch has come between.
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
    bool recompute = false;
  };
  // What one of the graph's heads made of a micro-batch, and where its deltas go.
  struct HeadOutput {
    std::size_t head = 0;
    std::span<const float> made;
    std::span<float> deltas;
  };

  // kInvalid when its layers cannot be run on micro-batches of so many rows.
  static Result<Stage> Make(const model::network::Graph& graph, Options options, std::size_t rows);

  LayerRange layers() const { return options_.cut.layers(); }
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
  // True when it had to compute: the deltas of its heads are to be made again, too.
  bool Again(std::size_t micro, const optimize::Parameters& parameters, const float* input,
             const model::network::Draw& draw);
  void Backward(std::size_t micro, const optimize::Parameters& parameters, optimize::Gradient& gradient);
  std::span<const float> EnteringGradient(std::size_t micro, std::size_t i) const;

  // Measures from now on what its layers take; nothing any more by a null clock.
  void Measure(const base::Clock* clock);
  void AddSeconds(std::vector<double>& by_layer) const;  // forward and backward, since then

  std::size_t bytes() const;  // of its memory when as many micro-batches are under way as there is room for

 private:
  using Memory = std::vector<std::vector<float>>;                        // by tensor
  using Programs = std::list<std::unique_ptr<model::network::Program>>;  // of few sizes, the last used first
  struct Slot {
    Programs programs;
    model::network::Program* program = nullptr;  // of the micro-batch it is used for
    std::size_t rows = 0;                        // of that
    Memory entering;
    Memory leaving;  // of who recomputes
    Memory added;  // gradients by what leaves: of heads that others read, too, until they are added; of who recomputes
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
  void Run(Slot& slot, const optimize::Parameters& parameters, const float* input, const model::network::Draw& draw);
  // Does the gradient of what leaves lie in memory of its own until Backward?
  bool Apart(const Source& source) const { return source.head || (options_.recompute && !source.passes); }
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
  Programs shared_;                 // of who recomputes
  const Slot* computed_ = nullptr;  // whose micro-batch was run last
  std::vector<Memory> gradients_;   // of what entered
  std::vector<float> unwanted_;     // gradient of the rows
  const base::Clock* clock_ = nullptr;
};

}  // namespace freshet::strategy::ring
