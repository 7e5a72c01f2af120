// LSTM and GRU by oneDNN's recurrent primitives, left to right from a state of zeros. Gates in our blocks: input,
// forget, candidate, output; and update, reset, candidate (its bias for the state apart, as the fourth).

#include <algorithm>
#include <cstring>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {
namespace {

using Lstm = dnnl::lstm_forward;
using LstmBack = dnnl::lstm_backward;
using Gru = dnnl::lbr_gru_forward;
using GruBack = dnnl::lbr_gru_backward;
constexpr auto kLeftToRight = dnnl::rnn_direction::unidirectional_left2right;

class RecurrentKernel final : public Kernel {
 public:
  explicit RecurrentKernel(const KernelSpec& spec)
      : rows_(spec.rows),
        steps_(static_cast<std::size_t>(spec.inputs[0][0])),
        hidden_(static_cast<std::size_t>(spec.layer->outputs)),
        lstm_(spec.layer->op == Op::kLstm),
        sequence_(spec.layer->sequence),
        training_(spec.training) {
    const auto n = static_cast<std::int64_t>(rows_), t = spec.inputs[0][0], c = spec.inputs[0][1],
               h = spec.layer->outputs;
    const std::int64_t gates = lstm_ ? 4 : 3;
    // The library wants steps outermost; ours are inside the row.
    ours_in_ = Desc({t, n, c}, kFloat, Dims{c, t * c, 1});
    ours_out_ = Desc({t, n, h}, kFloat, Dims{h, t * h, 1});
    in_ = Desc({t, n, c}, kFloat, Tag::tnc);
    out_ = Desc({t, n, h}, kFloat, Tag::tnc);
    weights_ = Desc({1, 1, c, gates, h}, kFloat, Tag::ldgoi);
    iterated_ = Desc({1, 1, h, gates, h}, kFloat, Tag::ldgoi);
    state_ = Desc({1, 1, n, h}, kFloat, Tag::ldnc);  // lstm: without one, oneDNN 2.6 gets a gradient wrong
    bias_ = Desc({1, 1, 4, h}, kFloat, Tag::ldgo);
    const Desc any_weights({1, 1, c, gates, h}, kFloat, Tag::any), any_iterated({1, 1, h, gates, h}, kFloat, Tag::any);
    const auto prop = training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    output = PlainLayout(spec.rows, spec.output);
    needs_input = false;
    if (lstm_) {
      const Lstm::primitive_desc forward(
          Lstm::desc(prop, kLeftToRight, in_, state_, state_, any_weights, any_iterated, bias_, out_, {}, {}),
          Attributes(), ContextOf(spec)->engine);
      SetForward(spec, forward, Lstm(forward));
      if (training_)
        SetBackward(
            spec, forward,
            LstmBack::primitive_desc(LstmBack::desc(dnnl::prop_kind::backward, kLeftToRight, in_, state_, state_,
                                                    any_weights, any_iterated, bias_, out_, {}, {}, in_, state_, state_,
                                                    any_weights, any_iterated, bias_, out_, {}, {}),
                                     Attributes(), ContextOf(spec)->engine, forward));
    } else {
      const Gru::primitive_desc forward(
          Gru::desc(prop, kLeftToRight, in_, {}, any_weights, any_iterated, bias_, out_, {}), Attributes(),
          ContextOf(spec)->engine);
      SetForward(spec, forward, Gru(forward));
      if (training_)
        SetBackward(spec, forward,
                    GruBack::primitive_desc(
                        GruBack::desc(dnnl::prop_kind::backward, kLeftToRight, in_, {}, any_weights, any_iterated,
                                      bias_, out_, {}, in_, {}, any_weights, any_iterated, bias_, out_, {}),
                        Attributes(), ContextOf(spec)->engine, forward));
    }
  }

  void Forward(const Call& call) override {
    std::byte* const kept = training_ ? call.saved : call.scratch;
    arrange_in_.Run(call.inputs[0], kept + in_place_);
    weights_to_.Run(call.parameters->Row(call.block, 0), call.scratch + weights_place_);
    iterated_to_.Run(call.parameters->Row(call.block + 1, 0), call.scratch + iterated_place_);
    forward_.Set(DNNL_ARG_SRC_LAYER, kept + in_place_);
    if (lstm_) {
      std::memset(call.scratch + state_place_, 0, state_.get_size());
      forward_.Set(DNNL_ARG_SRC_ITER, call.scratch + state_place_);
      forward_.Set(DNNL_ARG_SRC_ITER_C, call.scratch + state_place_);
    }
    forward_.Set(DNNL_ARG_WEIGHTS_LAYER, call.scratch + weights_place_);
    forward_.Set(DNNL_ARG_WEIGHTS_ITER, call.scratch + iterated_place_);
    forward_.Set(DNNL_ARG_BIAS, call.parameters->Row(call.block + 2, 0));
    forward_.Set(DNNL_ARG_DST_LAYER, kept + out_place_);
    forward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + scratch_place_);
    if (training_) forward_.Set(DNNL_ARG_WORKSPACE, call.saved + workspace_place_);
    forward_.Run();
    if (sequence_)
      arrange_out_.Run(kept + out_place_, call.output);
    else
      std::memcpy(call.output, kept + out_place_ + LastStep(), rows_ * hidden_ * sizeof(float));
  }

  void Backward(const Call& call) override {
    if (sequence_) {
      take_out_.Run(call.output_gradient, call.scratch + back_out_);
    } else {
      std::memset(call.scratch + back_out_, 0, LastStep());
      std::memcpy(call.scratch + back_out_ + LastStep(), call.output_gradient, rows_ * hidden_ * sizeof(float));
    }
    weights_back_.Run(call.parameters->Row(call.block, 0), call.scratch + back_weights_);
    iterated_back_.Run(call.parameters->Row(call.block + 1, 0), call.scratch + back_iterated_);
    std::memset(call.scratch + gradients_begin_, 0, gradients_end_ - gradients_begin_);  // the library adds to them
    backward_.Set(DNNL_ARG_SRC_LAYER, call.saved + in_place_);
    if (lstm_) {
      std::memset(call.scratch + back_state_, 0, state_.get_size());
      backward_.Set(DNNL_ARG_SRC_ITER, call.scratch + back_state_);
      backward_.Set(DNNL_ARG_SRC_ITER_C, call.scratch + back_state_);
      backward_.Set(DNNL_ARG_DIFF_SRC_ITER, call.scratch + state_gradient_);
      backward_.Set(DNNL_ARG_DIFF_SRC_ITER_C, call.scratch + cell_gradient_);
    }
    backward_.Set(DNNL_ARG_WEIGHTS_LAYER, call.scratch + back_weights_);
    backward_.Set(DNNL_ARG_WEIGHTS_ITER, call.scratch + back_iterated_);
    backward_.Set(DNNL_ARG_BIAS, call.parameters->Row(call.block + 2, 0));
    backward_.Set(DNNL_ARG_DST_LAYER, call.saved + out_place_);
    backward_.Set(DNNL_ARG_WORKSPACE, call.saved + workspace_place_);
    backward_.Set(DNNL_ARG_DIFF_SRC_LAYER, call.scratch + back_in_);
    backward_.Set(DNNL_ARG_DIFF_WEIGHTS_LAYER, call.scratch + weights_gradient_);
    backward_.Set(DNNL_ARG_DIFF_WEIGHTS_ITER, call.scratch + iterated_gradient_);
    backward_.Set(DNNL_ARG_DIFF_BIAS, call.scratch + bias_gradient_);
    backward_.Set(DNNL_ARG_DIFF_DST_LAYER, call.scratch + back_out_);
    backward_.Set(DNNL_ARG_SCRATCHPAD, call.scratch + back_scratch_);
    backward_.Run();
    auto& blocks = call.gradient->blocks;
    auto* const plain = reinterpret_cast<float*>(call.scratch + plain_place_);
    weights_plain_.Run(call.scratch + weights_gradient_, plain);
    AddGradient(blocks[call.block], plain);
    iterated_plain_.Run(call.scratch + iterated_gradient_, plain);
    AddGradient(blocks[call.block + 1], plain);
    AddGradient(blocks[call.block + 2], reinterpret_cast<const float*>(call.scratch + bias_gradient_));
    if (call.input_gradients[0] != nullptr) give_in_.Run(call.scratch + back_in_, call.input_gradients[0]);
  }

 private:
  std::size_t LastStep() const { return (steps_ - 1) * rows_ * hidden_ * sizeof(float); }

  template <class Described>
  void SetForward(const KernelSpec& spec, const Described& forward, dnnl::primitive primitive) {
    Places keep, here;
    Places& kept = training_ ? keep : here;
    in_place_ = kept.Take(in_.get_size());
    out_place_ = kept.Take(out_.get_size());
    workspace_place_ = keep.Take(training_ ? forward.workspace_desc().get_size() : 0);
    weights_place_ = here.Take(forward.weights_layer_desc().get_size());
    iterated_place_ = here.Take(forward.weights_iter_desc().get_size());
    state_place_ = here.Take(state_.get_size());
    scratch_place_ = here.Take(forward.scratchpad_desc().get_size());
    saved = keep.bytes();
    forward_scratch = here.bytes();
    arrange_in_ = Reorder(ContextOf(spec), ours_in_, in_);
    arrange_out_ = Reorder(ContextOf(spec), out_, ours_out_);
    weights_to_ = Reorder(ContextOf(spec), weights_, forward.weights_layer_desc());
    iterated_to_ = Reorder(ContextOf(spec), iterated_, forward.weights_iter_desc());
    forward_ = Primitive(ContextOf(spec), std::move(primitive));
    forward_.Bind(DNNL_ARG_SRC_LAYER, in_);
    if (lstm_)
      for (const int argument : {DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C}) forward_.Bind(argument, state_);
    forward_.Bind(DNNL_ARG_WEIGHTS_LAYER, forward.weights_layer_desc());
    forward_.Bind(DNNL_ARG_WEIGHTS_ITER, forward.weights_iter_desc());
    forward_.Bind(DNNL_ARG_BIAS, bias_);
    forward_.Bind(DNNL_ARG_DST_LAYER, out_);
    forward_.Bind(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
    if (training_) forward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
  }

  template <class Forward_, class Described>
  void SetBackward(const KernelSpec& spec, const Forward_& forward, const Described& backward) {
    Places back;
    back_in_ = back.Take(in_.get_size());
    back_out_ = back.Take(out_.get_size());
    back_weights_ = back.Take(backward.weights_layer_desc().get_size());
    back_iterated_ = back.Take(backward.weights_iter_desc().get_size());
    gradients_begin_ = back.bytes();
    weights_gradient_ = back.Take(backward.diff_weights_layer_desc().get_size());
    iterated_gradient_ = back.Take(backward.diff_weights_iter_desc().get_size());
    bias_gradient_ = back.Take(bias_.get_size());
    gradients_end_ = back.bytes();
    plain_place_ = back.Take(std::max(weights_.get_size(), iterated_.get_size()));
    back_state_ = back.Take(state_.get_size());
    state_gradient_ = back.Take(state_.get_size());
    cell_gradient_ = back.Take(state_.get_size());
    back_scratch_ = back.Take(backward.scratchpad_desc().get_size());
    backward_scratch = back.bytes();
    take_out_ = Reorder(ContextOf(spec), ours_out_, out_);
    give_in_ = Reorder(ContextOf(spec), in_, ours_in_);
    weights_back_ = Reorder(ContextOf(spec), weights_, backward.weights_layer_desc());
    iterated_back_ = Reorder(ContextOf(spec), iterated_, backward.weights_iter_desc());
    weights_plain_ = Reorder(ContextOf(spec), backward.diff_weights_layer_desc(), weights_);
    iterated_plain_ = Reorder(ContextOf(spec), backward.diff_weights_iter_desc(), iterated_);
    backward_ = Primitive(ContextOf(spec), BackwardOf(backward));
    backward_.Bind(DNNL_ARG_SRC_LAYER, in_);
    if (lstm_)
      for (const int argument :
           {DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C, DNNL_ARG_DIFF_SRC_ITER, DNNL_ARG_DIFF_SRC_ITER_C})
        backward_.Bind(argument, state_);
    backward_.Bind(DNNL_ARG_WEIGHTS_LAYER, backward.weights_layer_desc());
    backward_.Bind(DNNL_ARG_WEIGHTS_ITER, backward.weights_iter_desc());
    backward_.Bind(DNNL_ARG_BIAS, bias_);
    backward_.Bind(DNNL_ARG_DST_LAYER, out_);
    backward_.Bind(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    backward_.Bind(DNNL_ARG_DIFF_SRC_LAYER, in_);
    backward_.Bind(DNNL_ARG_DIFF_WEIGHTS_LAYER, backward.diff_weights_layer_desc());
    backward_.Bind(DNNL_ARG_DIFF_WEIGHTS_ITER, backward.diff_weights_iter_desc());
    backward_.Bind(DNNL_ARG_DIFF_BIAS, bias_);
    backward_.Bind(DNNL_ARG_DIFF_DST_LAYER, out_);
    backward_.Bind(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
  }
  static dnnl::primitive BackwardOf(const LstmBack::primitive_desc& described) { return LstmBack(described); }
  static dnnl::primitive BackwardOf(const GruBack::primitive_desc& described) { return GruBack(described); }

  const std::size_t rows_, steps_, hidden_;
  const bool lstm_, sequence_, training_;
  Desc ours_in_, ours_out_, in_, out_, weights_, iterated_, state_, bias_;
  Primitive forward_, backward_;
  Reorder arrange_in_, arrange_out_, weights_to_, iterated_to_;
  Reorder take_out_, give_in_, weights_back_, iterated_back_, weights_plain_, iterated_plain_;
  std::size_t in_place_ = 0, out_place_ = 0, workspace_place_ = 0, weights_place_ = 0, iterated_place_ = 0,
              state_place_ = 0, scratch_place_ = 0;
  std::size_t back_in_ = 0, back_out_ = 0, back_weights_ = 0, back_iterated_ = 0, gradients_begin_ = 0,
              weights_gradient_ = 0, iterated_gradient_ = 0, bias_gradient_ = 0, gradients_end_ = 0, plain_place_ = 0,
              back_state_ = 0, state_gradient_ = 0, cell_gradient_ = 0, back_scratch_ = 0;
};

}  // namespace

KernelPtr MakeRecurrent(const KernelSpec& spec) { return std::make_unique<RecurrentKernel>(spec); }

}  // namespace freshet::model::network
