#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/network/graph.h"
#include "model/network/program.h"

// One layer's computation, as a back-end (backend.h) makes it for a program.
namespace freshet::model::network {

// What kernels of one program share, as a library's engine and stream: the back-end's business. Belongs to one thread
// at a time.
struct Context {
  virtual ~Context() = default;
};

// How a batch of tensors lies in memory. What is inside is the back-end's business.
struct Layout {
  struct Inside {
    virtual ~Inside() = default;
  };
  std::shared_ptr<const Inside> inside;
  std::size_t bytes = 0;
  bool plain = true;  // row-major, without gaps
  std::size_t floats() const { return bytes / sizeof(float); }
};

// A layer as it is to be computed. `activation` is a layer that follows it at once and is computed with it, or null.
struct KernelSpec {
  std::shared_ptr<Context> context;
  const Layer* layer = nullptr;
  const Layer* activation = nullptr;
  std::size_t number = 0;  // of the layer in its graph
  std::size_t rows = 1;
  bool training = false;
  bool worthwhile = false;           // there is enough to do for several threads, whether there are any or not
  bool together = false;             // batch norm: statistics of all workers' rows, by Call::meeting
  const Slicing* slicing = nullptr;  // of a fully connected layer that is cut into slices (sliced_dense.h)
  std::vector<Shape> inputs;
  std::vector<Layout> layouts;  // of the inputs
  std::vector<bool> wanted;     // of which inputs the gradient is wanted
  Shape output;
};

// The memory of one call, by the kernel's own demands.
struct Call {
  std::span<const float* const> inputs;
  float* output = nullptr;
  std::span<float* const> input_gradients;  // null where not wanted
  float* output_gradient = nullptr;         // the kernel may use it up
  const optimize::Parameters* parameters = nullptr;
  optimize::Gradient* gradient = nullptr;
  std::size_t block = 0;         // the layer's first block
  std::byte* saved = nullptr;    // what Forward leaves for Backward
  std::byte* scratch = nullptr;  // for this call alone
  const Draw* draw = nullptr;
  const Meeting* meeting = nullptr;  // where KernelSpec::together, or slicing
  // Backward may call it as soon as the gradients of the layer's own blocks are done, before those of its inputs.
  std::function<void()> finished = nullptr;
};

// One layer ready to run. Gradients of tensors have the tensors' own layouts.
class Kernel {
 public:
  virtual ~Kernel() = default;

  Layout output;
  std::size_t saved = 0, forward_scratch = 0, backward_scratch = 0;  // bytes
  bool needs_input = true, needs_output = false;                     // in Backward
  std::vector<std::string> slow;  // what it computes by a kernel that the library has for comparison, not for use

  virtual void Forward(const Call& call) = 0;
  // Writes (not adds) the wanted input gradients; adds to the gradient of the layer's blocks.
  virtual void Backward(const Call& call) = 0;
};

}  // namespace freshet::model::network
