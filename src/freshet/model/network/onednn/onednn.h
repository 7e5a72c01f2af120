#pragma once

// What all kernels over oneDNN share. Included by the files of this folder only.

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "model/network/backend.h"
#include "model/network/onednn/team.h"

namespace freshet::model::network {

struct OneDnnContext final : Context {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};
using ContextPtr = std::shared_ptr<OneDnnContext>;
inline ContextPtr ContextOf(const KernelSpec& spec) { return std::static_pointer_cast<OneDnnContext>(spec.context); }

struct OneDnnLayout final : Layout::Inside {
  explicit OneDnnLayout(dnnl::memory::desc of) : desc(std::move(of)) {}
  const dnnl::memory::desc desc;
};

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
inline constexpr auto kFloat = dnnl::memory::data_type::f32;

Dims DimsOf(std::size_t rows, const Shape& shape);
Tag PlainTag(std::size_t extents);  // of a tensor with so many extents, the batch included
inline Desc Plain(const Dims& dims) { return {dims, kFloat, PlainTag(dims.size())}; }
inline Desc Any(const Dims& dims) { return {dims, kFloat, Tag::any}; }
Layout LayoutOf(const Desc& desc);
Layout PlainLayout(std::size_t rows, const Shape& shape);
inline const Desc& DescOf(const Layout& layout) { return static_cast<const OneDnnLayout&>(*layout.inside).desc; }
inline std::size_t Padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Primitives keep their own scratch in memory we plan.
inline dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// A primitive with its arguments: bound once, pointed at memory for every call.
class Primitive {
 public:
  Primitive() = default;
  Primitive(const ContextPtr& context, dnnl::primitive primitive)
      : context_(context), primitive_(std::move(primitive)) {}
  void Bind(int argument, const Desc& desc) {
    arguments_.emplace(argument, dnnl::memory(desc, context_->engine, DNNL_MEMORY_NONE));
  }
  void Set(int argument, const void* at) { arguments_.at(argument).set_data_handle(const_cast<void*>(at)); }
  void Run() { primitive_.execute(context_->stream, arguments_); }
  explicit operator bool() const { return context_ != nullptr; }

 private:
  ContextPtr context_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Copies between two layouts of the same tensor.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const ContextPtr& context, const Desc& from, const Desc& to);
  void Run(const void* from, void* to);
  explicit operator bool() const { return static_cast<bool>(primitive_); }

 private:
  Primitive primitive_;
};

// A function of one number, computed in place; its derivative follows from its result.
class Activation {
 public:
  Activation() = default;
  Activation(const ContextPtr& context, const Layer& layer, const Desc& desc);
  void Forward(float* data);
  void Backward(const float* result, float* gradient);
  explicit operator bool() const { return layer_ != nullptr; }

 private:
  const Layer* layer_ = nullptr;
  std::size_t count_ = 0;
  Primitive forward_, backward_;
};
bool IsActivation(Op op);
float LeastOf(const Layer& layer);  // of clip; the library knows no infinite bounds
float MostOf(const Layer& layer);

// Gives every part of `saved` or scratch its place.
class Places {
 public:
  std::size_t Take(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += Padded(bytes);
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// A tensor in the layout a primitive wants, made from another when they differ.
struct Wanted {
  Desc desc;
  Reorder reorder;  // none when nothing is to be done
  std::size_t at = 0;

  Wanted() = default;
  Wanted(const ContextPtr& context, const Desc& have, const Desc& want, Places& places) : desc(want) {
    if (have == want) return;
    reorder = Reorder(context, have, want);
    at = places.Take(want.get_size());
  }
  const void* Get(const void* have, std::byte* places) {
    if (!reorder) return have;
    reorder.Run(have, places + at);
    return places + at;
  }
};

// Has oneDNN nothing for this but the kernel by which it tests the others?
inline bool IsReference(const dnnl::primitive_desc_base& chosen) {
  return std::string_view(chosen.impl_info_str()).starts_with("ref");
}

// Puts `values` into the gradient of a block: overwrites when it is empty, else adds.
void AddGradient(optimize::BlockGradient& block, const float* values);

using KernelPtr = std::unique_ptr<Kernel>;
KernelPtr MakeDense(const KernelSpec& spec);
KernelPtr MakeConvolution(const KernelSpec& spec);
KernelPtr MakePool(const KernelSpec& spec);
KernelPtr MakeLrn(const KernelSpec& spec);
KernelPtr MakeBatchNorm(const KernelSpec& spec);
KernelPtr MakeElementwise(const KernelSpec& spec);  // activations
KernelPtr MakeFunction(const KernelSpec& spec);     // others of one number
KernelPtr MakeAffine(const KernelSpec& spec);
KernelPtr MakeProduct(const KernelSpec& spec);
KernelPtr MakeTranspose(const KernelSpec& spec);
KernelPtr MakeSoftmax(const KernelSpec& spec);
KernelPtr MakeDropout(const KernelSpec& spec);
KernelPtr MakeConcat(const KernelSpec& spec);
KernelPtr MakeSum(const KernelSpec& spec);
KernelPtr MakeCopy(const KernelSpec& spec);  // to the plain layout
KernelPtr MakeEmbedding(const KernelSpec& spec);
KernelPtr MakeRecurrent(const KernelSpec& spec);

}  // namespace freshet::model::network
