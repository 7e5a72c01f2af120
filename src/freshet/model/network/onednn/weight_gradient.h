#pragma once

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {

// What a convolution is made of, as oneDNN wants to hear it.
struct ConvolutionDims {
  Dims source, weights, bias, result, strides, dilates, pad, pad_end;
  bool has_bias = true;
};

// The gradient of a convolution's weights and bias, which is a sum over the rows of the batch. oneDNN would cut that
// sum by the number of threads there are, and roundings would differ with it. So it is cut here, into parts that depend
// on the shapes alone: each is summed by one thread, and the parts are added in their order.
class WeightGradient {
 public:
  using Backward = dnnl::convolution_backward_weights;

  WeightGradient() = default;
  // Cuts into parts only where `worthwhile`. Takes memory from `places`.
  WeightGradient(const ContextPtr& context, const ConvolutionDims& dims,
                 const dnnl::convolution_forward::primitive_desc& forward, bool worthwhile, Places& places);

  // Adds to the two blocks (the bias's is there where the layer has one). `source` and `deltas` lie as forward's do.
  void Run(const void* source, const void* deltas, std::byte* scratch, optimize::BlockGradient& weights,
           optimize::BlockGradient* bias);

  const char* implementation() const { return implementation_; }

 private:
  struct Part {
    std::size_t source_at, deltas_at;  // bytes, in those of the whole batch
    Wanted source, deltas;
    Primitive primitive;
    std::size_t weights_place, bias_place, scratch_place;
  };

  void AddPart(const ContextPtr& context, const Backward::primitive_desc& chosen, std::int64_t first, Places& places);
  void Sum(Part& part, const void* source, const void* deltas, std::byte* scratch, void* weights);
  void AddParts(std::byte* scratch, std::size_t count, std::size_t Part::*place) const;

  std::vector<Part> parts_;
  Desc from_, to_, plain_, weights_, bias_;  // of the whole batch: source and deltas; of the gradients
  Reorder to_plain_;
  std::size_t plain_place_ = 0;
  const char* implementation_ = "";
};

}  // namespace freshet::model::network
