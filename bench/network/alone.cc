#include "alone.h"

#include <algorithm>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "model/network/backend.h"

namespace freshet::bench {
namespace {

using model::network::Facts;
using model::network::Graph;
using model::network::Op;
using model::network::Shape;
using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Arguments = std::unordered_map<int, dnnl::memory>;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

Desc Any(const Dims& dims) { return {dims, kFloat, Tag::any}; }
Dims WithRows(std::size_t rows, const Shape& shape) {
  Dims dims{static_cast<std::int64_t>(rows)};
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

class OneDnnAlone final : public Alone {
 public:
  OneDnnAlone(const Graph& graph, const std::vector<Facts>& facts, std::size_t rows, int threads)
      : Alone(threads), rows_(rows) {
    for (std::size_t number = 0; number < graph.layers.size(); ++number) {
      const model::network::Layer& layer = graph.layers[number];
      if (layer.op != Op::kConvolution && layer.op != Op::kDense) continue;
      const bool first = layer.inputs[0] == 0;
      const Facts& input = facts[static_cast<std::size_t>(layer.inputs[0])];
      layers_.emplace_back().number = number;
      layers_.back().flops = facts[number].flops * static_cast<double>(rows) * (first ? 2 : 3);
      if (layer.op == Op::kConvolution)
        AddConvolution(layer, input.shape, facts[number].shape, first);
      else
        AddDense(input.elements(), layer.outputs, first);
    }
  }

  bool Plausible() const override {
    return std::all_of(results_.begin(), results_.end(), [](const dnnl::memory& result) {
      const auto* const values = static_cast<const float*>(result.get_data_handle());
      double sum = 0;
      for (std::size_t i = 0; i < result.get_desc().get_size() / sizeof(float); ++i) sum += std::fabs(values[i]);
      return std::isfinite(sum) && sum > 0;
    });
  }

 private:
  // Small numbers of both signs.
  dnnl::memory Filled(const Desc& desc) {
    dnnl::memory memory(desc, engine_);
    auto* const values = static_cast<float*>(memory.get_data_handle());
    for (std::size_t i = 0; i < desc.get_size() / sizeof(float); ++i)
      values[i] = static_cast<float>(static_cast<std::uint32_t>(i) * 2654435761u >> 8) * 0x1p-24f - 0.5f;
    return memory;
  }
  dnnl::memory Output(const Desc& desc) { return results_.emplace_back(Filled(desc)); }

  void Call(const dnnl::primitive& primitive, const Arguments& arguments) {
    layers_.back().calls.emplace_back([this, primitive, arguments] { primitive.execute(stream_, arguments); });
  }

  void AddConvolution(const model::network::Layer& layer, const Shape& input, const Shape& output, bool first) {
    const std::int64_t groups = layer.groups;
    const Dims source = WithRows(rows_, input), result = WithRows(rows_, output);
    Dims weights{layer.outputs / groups, input[0] / groups, layer.kernel[0], layer.kernel[1]};
    if (groups > 1) weights.insert(weights.begin(), groups);
    const Desc bias({layer.outputs}, kFloat, Tag::a);
    const Dims strides{layer.stride[0], layer.stride[1]}, dilates{layer.dilation[0] - 1, layer.dilation[1] - 1};
    const Dims pad{layer.pad[0], layer.pad[1]}, pad_end{layer.pad_end[0], layer.pad_end[1]};

    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, kDirect, Any(source), Any(weights), bias, Any(result), strides, dilates,
         pad, pad_end},
        engine_);
    Call(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, Filled(forward.src_desc())},
                                              {DNNL_ARG_WEIGHTS, Filled(forward.weights_desc())},
                                              {DNNL_ARG_BIAS, Filled(bias)},
                                              {DNNL_ARG_DST, Output(forward.dst_desc())}});
    const dnnl::convolution_backward_weights::primitive_desc by_weights(
        {kDirect, Any(source), Any(weights), bias, Any(result), strides, dilates, pad, pad_end}, engine_, forward);
    const dnnl::memory deltas = Filled(by_weights.diff_dst_desc());
    Call(dnnl::convolution_backward_weights(by_weights),
         {{DNNL_ARG_SRC, Filled(by_weights.src_desc())},
          {DNNL_ARG_DIFF_DST, deltas},
          {DNNL_ARG_DIFF_WEIGHTS, Output(by_weights.diff_weights_desc())},
          {DNNL_ARG_DIFF_BIAS, Output(bias)}});
    if (first) return;
    const dnnl::convolution_backward_data::primitive_desc by_data(
        {kDirect, Any(source), Any(weights), Any(result), strides, dilates, pad, pad_end}, engine_, forward);
    const bool same = by_data.diff_dst_desc() == by_weights.diff_dst_desc();
    Call(dnnl::convolution_backward_data(by_data),
         {{DNNL_ARG_DIFF_DST, same ? deltas : Filled(by_data.diff_dst_desc())},
          {DNNL_ARG_WEIGHTS, Filled(by_data.weights_desc())},
          {DNNL_ARG_DIFF_SRC, Output(by_data.diff_src_desc())}});
  }

  dnnl::memory Matrix(std::int64_t rows, std::int64_t columns) { return Filled({{rows, columns}, kFloat, Tag::ab}); }
  dnnl::memory OutputMatrix(std::int64_t rows, std::int64_t columns) {
    return Output({{rows, columns}, kFloat, Tag::ab});
  }

  // c := a b, either of them transposed or not; m × n numbers, sums of k products.
  void Multiply(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                const dnnl::memory& a, const dnnl::memory& b) {
    const dnnl::memory c = OutputMatrix(m, n);
    layers_.back().calls.emplace_back([=] {
      const std::int64_t lda = transpose_a == 'N' ? k : m, ldb = transpose_b == 'N' ? n : k;
      const dnnl_status_t status = dnnl_sgemm(
          transpose_a, transpose_b, m, n, k, 1, static_cast<const float*>(a.get_data_handle()), lda,
          static_cast<const float*>(b.get_data_handle()), ldb, 0, static_cast<float*>(c.get_data_handle()), n);
      CHECK(status == dnnl_success);
    });
  }

  // In the orientations that are fastest with few rows: weights first on the way forward.
  void AddDense(std::int64_t inputs, std::int64_t outputs, bool first) {
    const auto rows = static_cast<std::int64_t>(rows_);
    const dnnl::memory input = Matrix(rows, inputs), weights = Matrix(outputs, inputs), deltas = Matrix(rows, outputs);
    Multiply('N', 'T', outputs, rows, inputs, weights, input);
    Multiply('T', 'N', outputs, inputs, rows, deltas, input);
    if (!first) Multiply('N', 'N', rows, inputs, outputs, deltas, weights);
  }

  const std::size_t rows_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<dnnl::memory> results_;
};

}  // namespace

Result<std::unique_ptr<Alone>> Alone::Make(const Graph& graph, std::size_t rows, int threads) {
  const std::vector<Facts> facts = TRY(Infer(graph));
  const model::network::ThreadScope scope(model::network::OneDnn(),
                                          threads);  // kernels are made for a number of threads
  try {
    return std::unique_ptr<Alone>(std::make_unique<OneDnnAlone>(graph, facts, rows, threads));
  } catch (const dnnl::error& error) {
    return Error{Code::kInvalid, Str("oneDNN cannot compute a layer: ", error.what())};
  }
}

double Alone::Run(base::Clock& clock) {
  const model::network::ThreadScope scope(model::network::OneDnn(), threads_);
  const auto begun = clock.Now();
  for (Layer& layer : layers_) {
    const auto before = clock.Now();
    for (const auto& call : layer.calls) call();
    layer.seconds += base::Seconds(clock.Now() - before);
  }
  return base::Seconds(clock.Now() - begun);
}

}  // namespace freshet::bench
