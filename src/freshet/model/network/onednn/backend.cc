// oneDNN as a back-end of networks: which of this folder's kernels computes a layer.

#include "model/network/backend.h"

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

class OneDnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "oneDNN"; }
  std::shared_ptr<Context> MakeContext() const override { return std::make_shared<OneDnnContext>(); }
  Layout PlainLayout(std::size_t rows, const Shape& shape) const override { return network::PlainLayout(rows, shape); }

  bool CanFuse(const Layer& layer, const Layer& activation) const override {
    if (!IsActivation(activation.op)) return false;
    return layer.op == Op::kDense || layer.op == Op::kConvolution || layer.op == Op::kSum ||
           (layer.op == Op::kBatchNorm && activation.op == Op::kRelu && activation.slope == 0);
  }

  Result<std::unique_ptr<Kernel>> MakeKernel(const KernelSpec& spec) const override {
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
      return Error{Code::kInvalid, Str("network, layer ", Quoted(spec.layer->name), ": oneDNN cannot compute it (",
                                       problem.what(), ")")};
    }
    return Error{Code::kInvalid, Str("network, layer ", Quoted(spec.layer->name), " is no computation")};
  }

  Result<std::unique_ptr<Kernel>> MakePlain(const KernelSpec& spec) const override {
    try {
      return MakeCopy(spec);
    } catch (const dnnl::error& problem) {
      return Error{Code::kInvalid, Str("network, layer ", Quoted(spec.layer->name), ": ", problem.what())};
    }
  }

  int UseThreads(int threads) const override { return UseTeam(threads); }
  void InParallel(std::size_t count, std::size_t cost_each, RangeWork work) const override {
    network::InParallel(count, cost_each, work);
  }
  void AddInto(float* to, const float* from, std::size_t count) const override { network::AddInto(to, from, count); }
};

}  // namespace

const Backend& OneDnn() {
  static const OneDnnBackend backend;  // has no state
  return backend;
}

}  // namespace freshet::model::network
