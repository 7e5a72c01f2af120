#include "model/network/description_fields.h"

#include <cstddef>

namespace freshet::model::network::text {
namespace {

constexpr Field kDense[] = {{"bias", &Layer::bias}, {"per-step", &Layer::per_step}};
constexpr Field kConvolution[] = {
    {"kernel", &Layer::kernel},     {"stride", &Layer::stride}, {"pad", &Layer::pad},  {"pad-end", &Layer::pad_end},
    {"dilation", &Layer::dilation}, {"groups", &Layer::groups}, {"bias", &Layer::bias}};
constexpr Field kAveragePool[] = {{"stride", &Layer::stride},
                                  {"pad", &Layer::pad},
                                  {"pad-end", &Layer::pad_end},
                                  {"ceil", &Layer::ceil},
                                  {"include-padding", &Layer::include_padding}};
constexpr Field kLrn[] = {{"alpha", &Layer::alpha}, {"beta", &Layer::beta}, {"k", &Layer::k}};
constexpr Field kBatchNorm[] = {{"epsilon", &Layer::epsilon}, {"momentum", &Layer::momentum}};
constexpr Field kEmbedding[] = {{"vocabulary", &Layer::vocabulary}};
constexpr Field kRecurrent[] = {{"sequence", &Layer::sequence}};
constexpr Field kClip[] = {{"least", &Layer::least}, {"most", &Layer::most}};
constexpr Field kGelu[] = {{"approximate", &Layer::approximate}};

constexpr Form kForms[] = {
    {Op::kDense, &Layer::outputs, false, kDense},
    {Op::kConvolution, &Layer::outputs, false, kConvolution},
    {Op::kMaxPool, &Layer::kernel, false, std::span(kAveragePool).first<4>()},
    {Op::kAveragePool, &Layer::kernel, false, kAveragePool},
    {Op::kGlobalAveragePool, {}, true, {}},
    {Op::kLrn, &Layer::size, true, kLrn},
    {Op::kBatchNorm, {}, true, kBatchNorm},
    {Op::kRelu, &Layer::slope, true, {}},
    {Op::kTanh, {}, true, {}},
    {Op::kSigmoid, {}, true, {}},
    {Op::kSoftmax, {}, true, {}},
    {Op::kDropout, &Layer::rate, true, {}},
    {Op::kConcat, {}, false, {}},
    {Op::kSum, {}, false, {}},
    {Op::kFlatten, {}, true, {}},
    {Op::kEmbedding, &Layer::outputs, false, kEmbedding},
    {Op::kLstm, &Layer::outputs, false, kRecurrent},
    {Op::kGru, &Layer::outputs, false, kRecurrent},
    {Op::kClip, {}, true, kClip},
    {Op::kHardSwish, {}, true, {}},
    {Op::kGelu, {}, true, kGelu},
    {Op::kErf, {}, true, {}},
    {Op::kLogSoftmax, {}, true, {}},
    {Op::kProduct, {}, false, {}},
    {Op::kAffine, &Layer::shape, false, {}},
    {Op::kReshape, &Layer::shape, false, {}},
    {Op::kTranspose, &Layer::shape, false, {}},
};
static_assert(kForms[static_cast<std::size_t>(kLastOp) - 1].op == kLastOp, "in the order of Op, without the input");

}  // namespace

std::span<const Form> Forms() { return kForms; }
const Form& FormOf(Op op) { return kForms[static_cast<std::size_t>(op) - 1]; }

}  // namespace freshet::model::network::text
