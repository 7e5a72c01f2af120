// The product of two tensors, element by element. The second may have extents of 1, which are repeated (a gate for each
// channel of an image).

#include "model/network/onednn/broadcast.h"

namespace freshet::model::network {
namespace {

class ProductKernel final : public Kernel {
 public:
  explicit ProductKernel(const KernelSpec& spec)
      : rows_(spec.rows), places_(Repeated(spec.inputs[0], spec.inputs[1])), first_(spec, 0), second_(spec, 1) {
    output = PlainLayout(spec.rows, spec.output);
    small_ = 1;
    for (const std::int64_t extent : spec.inputs[1]) small_ *= static_cast<std::size_t>(extent);
    forward_scratch = first_.bytes() + second_.bytes();
    backward_scratch = 2 * forward_scratch;
  }

  void Forward(const Call& call) override {
    const float* const a = first_.Read(call.inputs[0], call.scratch);
    const float* const b = second_.Read(call.inputs[1], call.scratch + first_.bytes());
    EachRow([&](std::size_t row, std::size_t i, std::uint32_t k) { call.output[i] = a[i] * b[row * small_ + k]; });
  }

  void Backward(const Call& call) override {
    std::byte* const gradients = call.scratch + forward_scratch;
    const float* const a = first_.Read(call.inputs[0], call.scratch);
    const float* const b = second_.Read(call.inputs[1], call.scratch + first_.bytes());
    const float* const dy = call.output_gradient;
    if (float* const da = first_.Place(call.input_gradients[0], gradients); da != nullptr)
      EachRow([&](std::size_t row, std::size_t i, std::uint32_t k) { da[i] = dy[i] * b[row * small_ + k]; });
    if (float* const db = second_.Place(call.input_gradients[1], gradients + first_.bytes()); db != nullptr) {
      std::fill_n(db, rows_ * small_, 0.0f);
      EachRow([&](std::size_t row, std::size_t i, std::uint32_t k) { db[row * small_ + k] += dy[i] * a[i]; });
    }
    first_.Give(gradients, call.input_gradients[0]);
    second_.Give(gradients + first_.bytes(), call.input_gradients[1]);
  }

 private:
  // Calls visit(row, place in the larger tensor, place in the row of the smaller). Rows do not touch one another.
  template <class Visit>
  void EachRow(const Visit& visit) const {
    InParallel(rows_, places_.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t row = first; row < last; ++row)
        for (std::size_t p = 0; p < places_.size(); ++p) visit(row, row * places_.size() + p, places_[p]);
    });
  }

  const std::size_t rows_;
  const std::vector<std::uint32_t> places_;
  PlainTensor first_, second_;
  std::size_t small_ = 1;  // numbers in a row of the second
};

}  // namespace

KernelPtr MakeProduct(const KernelSpec& spec) { return std::make_unique<ProductKernel>(spec); }

}  // namespace freshet::model::network
