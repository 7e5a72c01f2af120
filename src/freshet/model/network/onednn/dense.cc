// Fully connected: matrix products by oneDNN's gemm; a single row by loops of
// ours, which cost no call into a library and leave the outer product of the
// gradient to whoever applies it.

#include <algorithm>

#include "model/network/onednn/onednn.h"
#include "model/vector.h"

namespace freshet::model::network {
namespace {

class DenseKernel final : public Kernel {
 public:
  explicit DenseKernel(const KernelSpec& spec) : has_bias_(spec.layer->bias), outputs_(AsSize(spec.layer->outputs)) {
    const Shape& shape = spec.inputs[0];
    const std::size_t steps = spec.layer->per_step ? AsSize(shape[0]) : 1;
    rows_ = spec.rows * steps;
    std::size_t elements = 1;
    for (const std::int64_t extent : shape) elements *= AsSize(extent);
    inputs_ = elements / steps;
    output = PlainLayout(spec.rows, spec.output);
    if (spec.activation != nullptr) {
      activation_ = Activation(ContextOf(spec), *spec.activation, DescOf(output));
      needs_output = true;
    }
    forward_scratch = rows_ == 1 ? 0 : Padded(rows_ * outputs_ * sizeof(float));
    if (spec.layouts[0].plain) return;
    const Desc plain = Plain(DimsOf(spec.rows, shape));
    to_plain_ = Reorder(ContextOf(spec), DescOf(spec.layouts[0]), plain);
    from_plain_ = Reorder(ContextOf(spec), plain, DescOf(spec.layouts[0]));
    const std::size_t bytes = Padded(plain.get_size());
    plain_place_ = spec.training ? 0 : forward_scratch;
    (spec.training ? saved : forward_scratch) += bytes;
    backward_scratch = bytes;
    needs_input = false;
    training_ = spec.training;
  }

  void Forward(const Call& call) override {
    const float* input = call.inputs[0];
    if (to_plain_) {
      auto* const plain = reinterpret_cast<float*>((training_ ? call.saved : call.scratch) + plain_place_);
      to_plain_.Run(input, plain);
      input = plain;
    }
    const float* const weights = call.parameters->Row(call.block, 0);
    if (rows_ == 1) {
      const float* const bias = has_bias_ ? call.parameters->Row(call.block + 1, 0) : nullptr;
      InParallel(outputs_, inputs_, [&](std::size_t first, std::size_t last) {
        for (std::size_t o = first; o < last; ++o)
          call.output[o] = LongDot(weights + o * inputs_, input, inputs_) + (bias == nullptr ? 0 : bias[o]);
      });
    } else {
      // Weights first: with few rows that is several times faster than rows
      // first, and turning the result is cheap.
      auto* const turned = reinterpret_cast<float*>(call.scratch);
      Gemm('N', 'T', outputs_, rows_, inputs_, weights, inputs_, input, inputs_, 0, turned, rows_);
      Turn(turned, has_bias_ ? call.parameters->Row(call.block + 1, 0) : nullptr, call.output);
    }
    if (activation_) activation_.Forward(call.output);
  }

  void Backward(const Call& call) override {
    float* const deltas = call.output_gradient;
    if (activation_) activation_.Backward(call.output, deltas);
    const float* const input = to_plain_ ? reinterpret_cast<const float*>(call.saved) : call.inputs[0];
    WeightGradient(call.gradient->blocks[call.block], input, deltas);
    if (has_bias_) BiasGradient(call.gradient->blocks[call.block + 1], deltas);
    if (call.finished) call.finished();
    if (call.input_gradients[0] == nullptr) return;
    float* const wanted = to_plain_ ? reinterpret_cast<float*>(call.scratch) : call.input_gradients[0];
    const float* const weights = call.parameters->Row(call.block, 0);
    if (rows_ == 1)
      InputGradientOfOne(weights, deltas, wanted);
    else
      Gemm('N', 'N', rows_, inputs_, outputs_, deltas, outputs_, weights, inputs_, 0, wanted, inputs_);
    if (to_plain_) from_plain_.Run(wanted, call.input_gradients[0]);
  }

 private:
  static std::size_t AsSize(std::int64_t number) { return static_cast<std::size_t>(number); }

  // c := a b + beta c, of m × n numbers that are sums of k products. oneDNN would cut the sums too, by the number of
  // threads there are, and roundings would differ with it. So c is cut here, always alike: each piece by one thread. A
  // piece that is too small takes longer to be made ready than to be computed.
  void Gemm(char transpose_a, char transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
            std::size_t lda, const float* b, std::size_t ldb, float beta, float* c, std::size_t ldc) const {
    const bool across = m >= n;                                               // cut m
    constexpr std::size_t kProducts = 8 << 20, kMostPieces = 8, kRound = 48;  // numbers that kernels compute at once
    const std::size_t pieces = std::clamp<std::size_t>(m * n * k / kProducts, 1, kMostPieces);
    const std::size_t whole = across ? m : n, piece = ((whole + pieces - 1) / pieces + kRound - 1) / kRound * kRound;
    const auto as = [](std::size_t number) { return static_cast<dnnl_dim_t>(number); };
    InParallel((whole + piece - 1) / piece, piece * k, [&](std::size_t first, std::size_t last) {
      const ThreadScope alone(OneDnn(), 1);
      for (std::size_t begin = first * piece; begin < std::min(last * piece, whole); begin += piece) {
        const std::size_t size = std::min(piece, whole - begin);
        const float* const from_a = !across ? a : a + begin * (transpose_a == 'N' ? lda : 1);
        const float* const from_b = across ? b : b + begin * (transpose_b == 'N' ? 1 : ldb);
        float* const to = c + begin * (across ? ldc : 1);
        const dnnl_status_t status = dnnl_sgemm(transpose_a, transpose_b, as(across ? size : m), as(across ? n : size),
                                                as(k), 1.0f, from_a, as(lda), from_b, as(ldb), beta, to, as(ldc));
        CHECK(status == dnnl_success);
      }
    });
  }

  void Turn(const float* turned, const float* bias, float* out) const {
    InParallel(rows_, outputs_, [&](std::size_t first, std::size_t last) {
      for (std::size_t o = 0; o < outputs_; ++o) {
        const float add = bias == nullptr ? 0 : bias[o];
        for (std::size_t r = first; r < last; ++r) out[r * outputs_ + o] = turned[o * rows_ + r] + add;
      }
    });
  }

  void WeightGradient(optimize::BlockGradient& block, const float* input, const float* deltas) const {
    if (block.wants_factors()) return block.AddFactors(rows_, {input, rows_ * inputs_}, {deltas, rows_ * outputs_});
    float* const to = block.memory().data();
    const bool empty = block.empty();
    if (rows_ == 1)
      InParallel(outputs_, inputs_, [&](std::size_t first, std::size_t last) {
        for (std::size_t o = first; o < last; ++o) {
          if (empty) std::fill_n(to + o * inputs_, inputs_, 0.0f);
          AddScaled(to + o * inputs_, deltas[o], input, inputs_);
        }
      });
    else
      Gemm('T', 'N', outputs_, inputs_, rows_, deltas, outputs_, input, inputs_, empty ? 0 : 1, to, inputs_);
    block.SetFull();
  }

  void BiasGradient(optimize::BlockGradient& block, const float* deltas) const {
    float* const to = block.memory().data();
    if (block.empty()) std::fill_n(to, outputs_, 0.0f);
    for (std::size_t r = 0; r < rows_; ++r) AddScaled(to, 1, deltas + r * outputs_, outputs_);
    block.SetFull();
  }

  void InputGradientOfOne(const float* weights, const float* deltas, float* wanted) const {
    InParallel(inputs_, outputs_, [&](std::size_t first, std::size_t last) {
      std::fill(wanted + first, wanted + last, 0.0f);
      for (std::size_t o = 0; o < outputs_; ++o)
        if (deltas[o] != 0) AddScaled(wanted + first, deltas[o], weights + o * inputs_ + first, last - first);
    });
  }

  const bool has_bias_;
  const std::size_t outputs_;
  std::size_t rows_ = 1, inputs_ = 0, plain_place_ = 0;
  bool training_ = false;
  Activation activation_;
  Reorder to_plain_, from_plain_;
};

}  // namespace

KernelPtr MakeDense(const KernelSpec& spec) { return std::make_unique<DenseKernel>(spec); }

}  // namespace freshet::model::network
