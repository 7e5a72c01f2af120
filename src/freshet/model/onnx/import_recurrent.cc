// LSTM and GRU, forward from a state of zeros. Gates there: input, output, forget, candidate; and update, reset,
// candidate. Steps are outermost there, unless the layout says otherwise.

#include <algorithm>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Op;
using network::Shape;

namespace {

// Blocks of gates in our order.
std::vector<float> Ordered(const std::vector<float>& values, const std::vector<std::size_t>& order) {
  const auto size = static_cast<std::ptrdiff_t>(values.size() / order.size());
  std::vector<float> out;
  for (const std::size_t gate : order) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(gate) * size;
    out.insert(out.end(), first, first + size);
  }
  return out;
}

}  // namespace

Result<void> ImportGraph::Recurrent() {
  const bool lstm = node_->op == "LSTM";
  const std::vector<std::size_t> order =
      lstm ? std::vector<std::size_t>{0, 2, 3, 1} : std::vector<std::size_t>{0, 1, 2};
  const auto gates = static_cast<std::int64_t>(order.size());
  const Seen x = TRY(In());
  const Tensor &weight = *TRY(Weights(1, "weights")), &recurrent = *TRY(Weights(2, "recurrent weights"));
  const std::int64_t layout = TRY(Int("layout", 0));
  if (Text("direction", "forward") != "forward")
    return Wrong(Str("direction ", Quoted(Text("direction", "")), "; only forward is known here"));
  for (const char* const odd : {"activation_alpha", "activation_beta", "clip"})
    if (node_->Find(odd) != nullptr) return Wrong(Str("its own ", odd, " is not known here"));
  const std::vector<std::string> usual =
      lstm ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh"};
  if (const Attribute* const activations = node_->Find("activations");
      activations != nullptr && activations->strings != usual)
    return Wrong("activations of its own are not known here");
  if (TRY(Int("input_forget", 0)) != 0) return Wrong("input_forget is not known here");
  const std::size_t step_axis = layout == 0 ? 0 : 1;
  const bool whole = !x.batch().has_value() && x.dims.size() == 3 && x.dims[1 - step_axis] == 1;
  if (x.dims.size() != 3 || (x.batch() != 1 - step_axis && !whole))
    return Wrong("its input must be steps, batch and features (with layout 1 the batch first)");
  const std::int64_t steps = x.dims[step_axis], features = x.dims[2];
  const std::int64_t hidden = recurrent.dims.size() == 3 ? recurrent.dims[2] : 0;
  if (hidden < 1 || weight.dims != Dims{1, gates * hidden, features} ||
      recurrent.dims != Dims{1, gates * hidden, hidden})
    return Wrong("its weights must be of one direction: [1, gates x hidden, features] and [1, gates x hidden, hidden]");
  if (TRY(Int("hidden_size", hidden)) != hidden) return Wrong("hidden_size differs from the shape of its weights");
  if (Has(4)) {  // sequence_lens
    const Tensor* const lengths = ConstantAt(4);
    const Dims numbers = lengths != nullptr && lengths->IsWhole() ? lengths->Ints() : Dims{-1};
    if (std::any_of(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n != steps; }))
      return Wrong("sequence_lens: only whole sequences are known here");
  }
  for (const std::size_t i : lstm ? std::vector<std::size_t>{5, 6, 7} : std::vector<std::size_t>{5}) {
    if (!Has(i) || zeros_.contains(node_->inputs[i])) continue;
    const std::vector<float> values = TRY(Weights(i, i == 7 ? "peepholes" : "initial state"))->Floats();
    if (std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }))
      return Wrong(i == 7 ? "peepholes are not known here" : "its initial state must be zeros");
  }

  // Ours: lstm has one bias for each gate; gru a fourth, of the state's part of the candidate.
  const auto count = static_cast<std::size_t>(gates * hidden), each = static_cast<std::size_t>(hidden);
  std::vector<float> given(2 * count, 0.0f), bias;
  if (Has(3)) given = TRY(Weights(3, "bias"))->Floats();
  if (given.size() != 2 * count) return Wrong(Str("its bias has ", given.size(), " numbers; expected ", 2 * count));
  for (std::size_t i = 0; i < count; ++i) {
    const bool apart = !lstm && i >= 2 * each && TRY(Int("linear_before_reset", 0)) != 0;
    bias.push_back(apart ? given[i] : given[i] + given[count + i]);
  }
  if (lstm) {
    bias = Ordered(bias, order);
  } else if (TRY(Int("linear_before_reset", 0)) != 0) {
    bias.insert(bias.end(), given.end() - static_cast<std::ptrdiff_t>(each), given.end());
  } else {
    if (steps != 1) return Wrong("linear_before_reset 0: only the form after the matrix product (1) is known here");
    bias.resize(4 * each, 0.0f);  // the state is zero in the one step there is, so that both forms are the same
  }

  const auto used = [&](std::size_t i) {
    return i < node_->outputs.size() && !node_->outputs[i].empty() && readers_.contains(node_->outputs[i]);
  };
  if (used(2)) return Wrong("its output of cells is used; only those of the state are known here");
  if (used(0) == used(1)) return Wrong("either all its steps or its last state can be used here, not both");
  const bool sequence = used(0);
  const int from = TRY(Shaped(x.layer, {steps, features}));
  const int layer =
      TRY(Put({.op = lstm ? Op::kLstm : Op::kGru, .inputs = {from}, .outputs = hidden, .sequence = sequence}));
  TRY(Keep(layer, "weight", Ordered(weight.Floats(), order)));
  TRY(Keep(layer, "recurrent", Ordered(recurrent.Floats(), order)));
  TRY(Keep(layer, "bias", std::move(bias)));
  const std::int64_t batch = x.dims[1 - step_axis];
  Seen seen{.layer = layer};
  if (sequence)
    seen.dims = layout == 0 ? Dims{steps, 1, batch, hidden} : Dims{batch, steps, 1, hidden};
  else
    seen.dims = layout == 0 ? Dims{1, batch, hidden} : Dims{batch, 1, hidden};
  Give(std::move(seen), sequence ? 0 : 1);
  return {};
}

}  // namespace freshet::model::onnx
