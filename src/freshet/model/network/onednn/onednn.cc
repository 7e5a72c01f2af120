#include "model/network/onednn/onednn.h"

#include <algorithm>

namespace freshet::model::network {

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
  return {std::make_shared<OneDnnLayout>(desc), desc.get_size(), desc == Plain(dims)};
}

Layout PlainLayout(std::size_t rows, const Shape& shape) { return LayoutOf(Plain(DimsOf(rows, shape))); }

Reorder::Reorder(const ContextPtr& context, const Desc& from, const Desc& to)
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

}  // namespace freshet::model::network
