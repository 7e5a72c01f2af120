#include "model/network/onednn/onednn.h"

#include <algorithm>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace freshet::model::network {

std::shared_ptr<Context> MakeContext() { return std::make_shared<Context>(); }

#ifdef _OPENMP
ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) {
  if (threads != before_) omp_set_num_threads(threads);
}
ThreadScope::~ThreadScope() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}
#else
ThreadScope::ThreadScope(int) {}
ThreadScope::~ThreadScope() = default;
#endif

void InParallel(std::size_t count, std::size_t cost_each, RangeWork work) {
#ifdef _OPENMP
  constexpr std::size_t kWorthIt = 1 << 15;  // floats: waking threads costs some microseconds
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  if (threads > 1 && count > 1 && count * cost_each >= kWorthIt) {
#pragma omp parallel
    {
      const auto team = static_cast<std::size_t>(omp_get_num_threads());
      const auto me = static_cast<std::size_t>(omp_get_thread_num());
      const std::size_t first = count * me / team, last = count * (me + 1) / team;
      if (first < last) work(first, last);
    }
    return;
  }
#endif
  (void)cost_each;
  if (count > 0) work(0, count);
}

void AddInto(float* to, const float* from, std::size_t count) {
  constexpr std::size_t kPiece = 4096;
  InParallel((count + kPiece - 1) / kPiece, kPiece, [&](std::size_t first, std::size_t last) {
    const std::size_t end = std::min(last * kPiece, count);
#pragma omp simd
    for (std::size_t i = first * kPiece; i < end; ++i) to[i] += from[i];
  });
}

Dims DimsOf(std::size_t rows, const Shape& shape) {
  Dims dims{static_cast<std::int64_t>(rows)};
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

Tag PlainTag(std::size_t extents) {
  constexpr Tag kTags[] = {Tag::a, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return kTags[extents];
}

Layout LayoutOf(const Desc& desc) {
  const Dims dims = desc.dims();
  return {std::make_shared<Layout::Inside>(Layout::Inside{desc}), desc.get_size(), desc == Plain(dims)};
}

Layout PlainLayout(std::size_t rows, const Shape& shape) { return LayoutOf(Plain(DimsOf(rows, shape))); }

Reorder::Reorder(const std::shared_ptr<Context>& context, const Desc& from, const Desc& to)
    : primitive_(context, dnnl::reorder(dnnl::reorder::primitive_desc(context->engine, from, context->engine, to))) {
  primitive_.Bind(DNNL_ARG_FROM, from);
  primitive_.Bind(DNNL_ARG_TO, to);
}

void Reorder::Run(const void* from, void* to) {
  primitive_.Set(DNNL_ARG_FROM, from);
  primitive_.Set(DNNL_ARG_TO, to);
  primitive_.Run();
}

void AddGradient(optimize::BlockGradient& block, const float* values) {
  const std::span<float> memory = block.memory();
  if (block.empty())
    std::copy_n(values, memory.size(), memory.data());
  else
    AddInto(memory.data(), values, memory.size());
  block.SetFull();
}

bool CanFuse(const Layer& layer, const Layer& activation) {
  if (!IsActivation(activation.op)) return false;
  return layer.op == Op::kDense || layer.op == Op::kConvolution || layer.op == Op::kSum ||
         (layer.op == Op::kBatchNorm && activation.op == Op::kRelu && activation.slope == 0);
}

Result<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) {
  try {  // oneDNN's own errors end here
    switch (spec.layer->op) {
      case Op::kDense:
        return MakeDense(spec);
      case Op::kConvolution:
        return MakeConvolution(spec);
      case Op::kMaxPool:
      case Op::kAveragePool:
      case Op::kGlobalAveragePool:
        return MakePool(spec);
      case Op::kLrn:
        return MakeLrn(spec);
      case Op::kBatchNorm:
        return MakeBatchNorm(spec);
      case Op::kRelu:
      case Op::kTanh:
      case Op::kSigmoid:
        return MakeElementwise(spec);
      case Op::kSoftmax:
        return MakeSoftmax(spec);
      case Op::kDropout:
        return MakeDropout(spec);
      case Op::kConcat:
        return MakeConcat(spec);
      case Op::kSum:
        return MakeSum(spec);
      case Op::kFlatten:
        return MakeCopy(spec);
      case Op::kEmbedding:
        return MakeEmbedding(spec);
      case Op::kLstm:
      case Op::kGru:
        return MakeRecurrent(spec);
      case Op::kInput:
        break;
    }
  } catch (const dnnl::error& problem) {
    return Error{Code::kInvalid,
                 Str("network, layer ", Quoted(spec.layer->name), ": oneDNN cannot compute it (", problem.what(), ")")};
  }
  return Error{Code::kInvalid, Str("network, layer ", Quoted(spec.layer->name), " is no computation")};
}

Result<std::unique_ptr<Kernel>> MakePlain(const KernelSpec& spec) {
  try {
    return MakeCopy(spec);
  } catch (const dnnl::error& problem) {
    return Error{Code::kInvalid, Str("network, layer ", Quoted(spec.layer->name), ": ", problem.what())};
  }
}

}  // namespace freshet::model::network
