// Concat along the first extent. Where every row of every part is one piece of memory in the same order as in the
// whole (plain, or blocks of channels that no part cuts), it is a copy of pieces; else oneDNN's.

#include <cstring>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class ConcatKernel final : public Kernel {
 public:
  explicit ConcatKernel(const KernelSpec& spec) : rows_(spec.rows) {
    const Dims whole = DimsOf(spec.rows, spec.output);
    needs_input = false;
    pieces_ = InPieces(spec);
    if (pieces_) {
      output = Same(spec, whole);
      for (const Layout& layout : spec.layouts) floats_.push_back(layout.floats() / rows_);
      for (const std::size_t floats : floats_) width_ += floats;
      return;
    }
    std::vector<Desc> parts;
    for (const Layout& layout : spec.layouts) parts.push_back(DescOf(layout));
    const dnnl::concat::primitive_desc forward(Plain(whole), 1, parts, ContextOf(spec)->engine, Attributes());
    output = LayoutOf(forward.dst_desc());
    forward_scratch = forward.scratchpad_desc().get_size();
    forward_ = Primitive(ContextOf(spec), dnnl::concat(forward));
    forward_.Bind(DNNL_ARG_DST, forward.dst_desc());
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    Dims from(whole.size(), 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      forward_.Bind(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]);
      back_.emplace_back(ContextOf(spec), forward.dst_desc().submemory_desc(parts[i].dims(), from), parts[i]);
      from[1] += parts[i].dims()[1];
    }
  }

  void Forward(const Call& call) override {
    if (pieces_) {
      InParallel(rows_, width_, [&](std::size_t first, std::size_t last) {
        for (std::size_t r = first; r < last; ++r) {
          float* to = call.output + r * width_;
          for (std::size_t i = 0; i < floats_.size(); to += floats_[i++])
            std::memcpy(to, call.inputs[i] + r * floats_[i], floats_[i] * sizeof(float));
        }
      });
      return;
    }
    for (std::size_t i = 0; i < back_.size(); ++i)
      forward_.Set(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), call.inputs[i]);
    forward_.Set(DNNL_ARG_DST, call.output);
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch);
    forward_.Run();
  }

  void Backward(const Call& call) override {
    if (!pieces_) {
      for (std::size_t i = 0; i < back_.size(); ++i)
        if (call.input_gradients[i] != nullptr) back_[i].Run(call.output_gradient, call.input_gradients[i]);
      return;
    }
    InParallel(rows_, width_, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) {
        const float* from = call.output_gradient + r * width_;
        for (std::size_t i = 0; i < floats_.size(); from += floats_[i++])
          if (call.input_gradients[i] != nullptr)
            std::memcpy(call.input_gradients[i] + r * floats_[i], from, floats_[i] * sizeof(float));
      }
    });
  }

 private:
  static constexpr Tag kBlocked[] = {Tag::nChw8c, Tag::nChw16c};
  static constexpr std::int64_t kBlock[] = {8, 16};

  // The layout of the whole that has the order of the parts.
  static Layout Same(const KernelSpec& spec, const Dims& whole) {
    if (spec.layouts[0].plain) return LayoutOf(Plain(whole));
    for (const Tag tag : kBlocked)
      if (DescOf(spec.layouts[0]) == Desc(DimsOf(spec.rows, spec.inputs[0]), kFloat, tag))
        return LayoutOf(Desc(whole, kFloat, tag));
    return {};
  }

  static bool InPieces(const KernelSpec& spec) {
    bool plain = true;
    for (const Layout& layout : spec.layouts) plain = plain && layout.plain;
    if (plain) return true;
    for (std::size_t t = 0; t < std::size(kBlocked); ++t) {
      bool all = spec.output.size() == 3;
      for (std::size_t i = 0; i < spec.layouts.size() && all; ++i)
        all = spec.inputs[i][0] % kBlock[t] == 0 &&
              DescOf(spec.layouts[i]) == Desc(DimsOf(spec.rows, spec.inputs[i]), kFloat, kBlocked[t]);
      if (all) return true;
    }
    return false;
  }

  const std::size_t rows_;
  bool pieces_ = false;
  std::vector<std::size_t> floats_;  // of one row, by part
  std::size_t width_ = 0;            // of one row of the whole
  Primitive forward_;
  std::vector<Reorder> back_;
};

}  // namespace

KernelPtr MakeConcat(const KernelSpec& spec) { return std::make_unique<ConcatKernel>(spec); }

}  // namespace freshet::model::network
