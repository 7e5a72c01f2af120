#include "model/network/onednn/onednn.h"

#include <algorithm>

namespace freshet::model::network {

std::shared_ptr<Context> MakeContext() { return std::make_shared<Context>(); }

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
      case Op::kClip:
        return MakeElementwise(spec);
      case Op::kHardSwish:
      case Op::kGelu:
      case Op::kErf:
        return MakeFunction(spec);
      case Op::kSoftmax:
      case Op::kLogSoftmax:
        return MakeSoftmax(spec);
      case Op::kDropout:
        return MakeDropout(spec);
      case Op::kConcat:
        return MakeConcat(spec);
      case Op::kSum:
        return MakeSum(spec);
      case Op::kProduct:
        return MakeProduct(spec);
      case Op::kAffine:
        return MakeAffine(spec);
      case Op::kTranspose:
        return MakeTranspose(spec);
      case Op::kFlatten:
      case Op::kReshape:
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
