#include "model/network/onednn/weight_gradient.h"

#include <algorithm>

namespace freshet::model::network {
namespace {

// More parts would help machines of more cores only, and each has a gradient of its own in memory, to be added.
constexpr std::int64_t kMostParts = 8, kMostNumbers = std::int64_t{1} << 23;

// The first rows of a batch that lies like `whole`.
Desc Rows(const Desc& whole, std::int64_t rows) {
  Dims dims = whole.dims();
  const Dims begin(dims.size(), 0);
  dims[0] = rows;
  return whole.submemory_desc(dims, begin);
}

std::size_t Bytes(const Desc& whole, std::int64_t rows) {
  return whole.get_size() / static_cast<std::size_t>(whole.dims()[0]) * static_cast<std::size_t>(rows);
}

std::int64_t RowsOfAPart(const ConvolutionDims& dims, bool worthwhile) {
  const std::int64_t rows = dims.source[0];
  std::int64_t numbers = 1, parts = worthwhile ? kMostParts : 1;
  for (const std::int64_t extent : dims.weights) numbers *= extent;
  while (parts > 1 && parts * numbers > kMostNumbers) parts /= 2;
  return (rows + parts - 1) / parts;
}

}  // namespace

WeightGradient::WeightGradient(const ContextPtr& context, const ConvolutionDims& dims,
                               const dnnl::convolution_forward::primitive_desc& forward, bool worthwhile,
                               Places& places)
    : from_(forward.src_desc()),
      to_(forward.dst_desc()),
      plain_(Plain(dims.weights)),
      bias_(dims.has_bias ? Desc(dims.bias, kFloat, Tag::a) : Desc()) {
  const ThreadScope scope(OneDnn(), 1);
  const auto choose = [&](const Desc& from, const Desc& weights, const Desc& to) {
    return Backward::primitive_desc(Backward::desc(dnnl::algorithm::convolution_direct, from, weights, bias_, to,
                                                   dims.strides, dims.dilates, dims.pad, dims.pad_end),
                                    Attributes(), context->engine, forward);
  };
  const std::int64_t rows = dims.source[0], most = RowsOfAPart(dims, worthwhile);
  for (std::int64_t first = 0; first < rows; first += most) {
    const Desc from = Rows(from_, std::min(most, rows - first)), to = Rows(to_, std::min(most, rows - first));
    const Desc weights = first == 0 ? Any(dims.weights) : weights_;  // gradients that are added lie alike
    Backward::primitive_desc chosen = choose(from, weights, to);
    if (IsReference(chosen)) chosen = choose(Any(from.dims()), weights, Any(to.dims()));
    if (first == 0) weights_ = chosen.diff_weights_desc();
    implementation_ = chosen.impl_info_str();
    AddPart(context, chosen, first, places);
  }
  if (weights_ != plain_) {
    to_plain_ = Reorder(context, weights_, plain_);
    plain_place_ = places.Take(plain_.get_size());
  }
}

void WeightGradient::AddPart(const ContextPtr& context, const Backward::primitive_desc& chosen, std::int64_t first,
                             Places& places) {
  // Parts are computed at the same time: each has a stream of its own.
  const auto own = std::make_shared<OneDnnContext>(*context);
  own->stream = dnnl::stream(context->engine);
  const std::int64_t rows = chosen.src_desc().dims()[0];
  Part part;
  part.source_at = Bytes(from_, first);
  part.deltas_at = Bytes(to_, first);
  part.source = Wanted(own, Rows(from_, rows), chosen.src_desc(), places);
  part.deltas = Wanted(own, Rows(to_, rows), chosen.diff_dst_desc(), places);
  part.weights_place = places.Take(chosen.diff_weights_desc().get_size());
  part.bias_place = places.Take(bias_.get_size());
  part.scratch_place = places.Take(chosen.scratchpad_desc().get_size());
  part.primitive = Primitive(own, Backward(chosen));
  part.primitive.Bind(DNNL_ARG_SRC, chosen.src_desc());
  part.primitive.Bind(DNNL_ARG_DIFF_DST, chosen.diff_dst_desc());
  part.primitive.Bind(DNNL_ARG_DIFF_WEIGHTS, chosen.diff_weights_desc());
  if (bias_.get_size() > 0) part.primitive.Bind(DNNL_ARG_DIFF_BIAS, bias_);
  part.primitive.Bind(DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc());
  CHECK(chosen.diff_weights_desc() == weights_);
  parts_.push_back(std::move(part));
}

void WeightGradient::Run(const void* source, const void* deltas, std::byte* scratch, optimize::BlockGradient& weights,
                         optimize::BlockGradient* bias) {
  // Straight into the gradient buffer where layout and emptiness allow.
  const bool direct = parts_.size() == 1 && !to_plain_ && weights.empty();
  float* const memory = weights.memory().data();
  constexpr std::size_t kMuch = 1 << 20;
  InParallel(parts_.size(), kMuch, [&](std::size_t first, std::size_t last) {
    for (std::size_t p = first; p < last; ++p) {
      Part& part = parts_[p];
      Sum(part, source, deltas, scratch, direct ? static_cast<void*>(memory) : scratch + part.weights_place);
    }
  });
  if (bias != nullptr) {
    AddParts(scratch, bias->memory().size(), &Part::bias_place);
    AddGradient(*bias, reinterpret_cast<const float*>(scratch + parts_[0].bias_place));
  }
  if (direct) return weights.SetFull();
  AddParts(scratch, weights_.get_size() / sizeof(float), &Part::weights_place);
  const void* sum = scratch + parts_[0].weights_place;
  if (to_plain_) {
    void* const place = weights.empty() ? static_cast<void*>(memory) : scratch + plain_place_;
    to_plain_.Run(sum, place);
    if (weights.empty()) return weights.SetFull();
    sum = place;
  }
  AddGradient(weights, static_cast<const float*>(sum));
}

void WeightGradient::Sum(Part& part, const void* source, const void* deltas, std::byte* scratch, void* weights) {
  const auto* const from = static_cast<const std::byte*>(source) + part.source_at;
  const auto* const to = static_cast<const std::byte*>(deltas) + part.deltas_at;
  part.primitive.Set(DNNL_ARG_SRC, part.source.Get(from, scratch));
  part.primitive.Set(DNNL_ARG_DIFF_DST, part.deltas.Get(to, scratch));
  part.primitive.Set(DNNL_ARG_DIFF_WEIGHTS, weights);
  if (bias_.get_size() > 0) part.primitive.Set(DNNL_ARG_DIFF_BIAS, scratch + part.bias_place);
  part.primitive.Set(DNNL_ARG_SCRATCHPAD, scratch + part.scratch_place);
  part.primitive.Run();
}

// All into the first.
void WeightGradient::AddParts(std::byte* scratch, std::size_t count, std::size_t Part::*place) const {
  constexpr std::size_t kPiece = 4096;
  InParallel((count + kPiece - 1) / kPiece, kPiece * parts_.size(), [&](std::size_t first, std::size_t last) {
    for (std::size_t begin = first * kPiece; begin < std::min(last * kPiece, count); begin += kPiece) {
      const std::size_t end = std::min(begin + kPiece, count);  // a piece of the first stays in the cache
      auto* const to = reinterpret_cast<float*>(scratch + parts_[0].*place);
      for (std::size_t p = 1; p < parts_.size(); ++p) {
        const auto* const from = reinterpret_cast<const float*>(scratch + parts_[p].*place);
#pragma omp simd
        for (std::size_t i = begin; i < end; ++i) to[i] += from[i];
      }
    }
  });
}

}  // namespace freshet::model::network
