#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace freshet::model::network {

// The extent of one row's tensor, without the batch: channels, height, width of an image; steps, features of a
// sequence; just features.
using Shape = std::vector<std::int64_t>;
using Pair = std::array<std::int64_t, 2>;  // vertical, horizontal

enum class Op {
  kInput,
  kDense,        // fully connected, over all of the input or (per_step) over the features of each step
  kConvolution,  // of images
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,  // each channel's mean: C × H × W to C × 1 × 1
  kLrn,                // local response normalisation across channels
  kBatchNorm,          // per channel (images) or per feature
  kRelu,               // with `slope` for negative values: leaky
  kTanh,
  kSigmoid,
  kSoftmax,    // over the last extent (images: over channels)
  kDropout,    // while training only
  kConcat,     // along the first extent
  kSum,        // element by element
  kFlatten,    // to one extent
  kEmbedding,  // whole numbers 0 … vocabulary-1 to vectors: T to T × outputs
  kLstm,       // T × C to T × outputs, or the last step's outputs
  kGru,        // with the reset gate after the matrix product
  kClip,       // held between `least` and `most`
  kHardSwish,  // x · clip(x / 6 + 1/2, 0, 1)
  kGelu,       // x · Φ(x), of the normal distribution; or (approximate) by a tanh
  kErf,
  kLogSoftmax,  // over what softmax is over
  kProduct,     // of two, element by element; extents of 1 of the second are repeated
  kAffine,      // scale · x + shift, with numbers of `shape`
  kReshape,     // to `shape`, the values in their order
  kTranspose,   // extent d of the output is extent shape[d] of the input
};
inline constexpr Op kLastOp = Op::kTranspose;
std::string_view NameOf(Op op);

// One layer of a network and all it is told. Which fields matter depends on `op`.
struct Layer {
  std::string name = {};  // unique; its blocks of parameters are called name.weight, name.bias, …
  Op op = Op::kInput;
  std::vector<int> inputs = {};  // layers before this one, by number

  std::int64_t outputs = 0;  // units, channels, hidden state, width of an embedding
  bool bias = true;          // dense, convolution
  Pair kernel{1, 1}, stride{1, 1}, pad{0, 0}, pad_end{0, 0}, dilation{1, 1};  // pad: above and left; pad_end: others
  std::int64_t groups = 1;
  bool ceil = false;                        // pools: a last window may hang over the edge
  bool include_padding = false;             // average pool: padding counts as zeros
  bool per_step = false;                    // dense
  bool sequence = false;                    // lstm, gru: outputs of every step
  std::int64_t vocabulary = 0;              // embedding
  double slope = 0;                         // relu
  double rate = 0.5;                        // dropout: share of values dropped
  std::int64_t size = 5;                    // lrn: channels that count together
  double alpha = 1e-4, beta = 0.75, k = 1;  // lrn: x · (k + alpha / size · Σ x²)^-beta
  double epsilon = 1e-5, momentum = 0.1;    // batch norm: share of a new batch in the running statistics
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();  // clip
  bool approximate = false;                                                                                 // gelu
  Shape shape = {};  // affine (each extent 1 or the input's), reshape, transpose

  std::string place = {};  // any but the input: who holds it, where that is laid down (strategy/modules)
};

}  // namespace freshet::model::network
