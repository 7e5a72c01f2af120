#include "model/network/sliced_dense.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace freshet::model::network {
namespace {

using Cut = Slicing::Cut;

// Parts of one memory, each aligned.
class Parts {
 public:
  std::size_t Take(std::size_t bytes) { return std::exchange(bytes_, bytes_ + (bytes + 63) / 64 * 64); }
  std::size_t TakeFloats(std::size_t count) { return Take(count * sizeof(float)); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// Rows of all workers, of which every one has as many numbers; or of one worker, of which each other has a range.
class SlicedDense final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Make(const Backend& backend, const KernelSpec& spec) {
    std::unique_ptr<SlicedDense> kernel(new SlicedDense(backend, spec));
    TRY(kernel->MakeParts(spec));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  void Forward(const Call& call) override {
    const float* input = call.inputs[0];
    if (to_plain_) {
      auto* const plain = Floats(call.scratch, plain_);
      Call copy = call;
      copy.output = plain;
      copy.saved = nullptr;
      copy.scratch = call.scratch + inner_scratch_;
      to_plain_->Forward(copy);
      input = plain;
    }
    float* const entering = Floats(call.saved, entering_);
    float* const made = Floats(call.scratch, made_);
    Bring(call, input, inputs_, cut_ == Cut::kInputs, entering, Floats(call.scratch, packed_));
    Call inner = call;
    const float* const inputs[] = {entering};
    inner.inputs = inputs;
    inner.output = made;
    inner.saved = call.saved + inner_saved_;
    inner.scratch = call.scratch + inner_scratch_;
    product_->Forward(inner);
    Return(call, made, outputs_, cut_ == Cut::kOutputs, call.output, Floats(call.scratch, packed_));
    if (!has_bias_) return;
    const float* const bias = call.parameters->Row(call.block + 1, 0);
    backend_.InParallel(own(), outputs_, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r)
        for (std::size_t o = 0; o < outputs_; ++o) call.output[r * outputs_ + o] += bias[o];
    });
  }

  void Backward(const Call& call) override {
    if (has_bias_) AddBiasGradient(call.gradient->blocks[call.block + 1], call.output_gradient);
    float* const deltas = Floats(call.scratch, deltas_);
    Bring(call, call.output_gradient, outputs_, cut_ == Cut::kOutputs, deltas, Floats(call.scratch, packed_));
    const bool wanted = call.input_gradients[0] != nullptr;
    float* const before = Floats(call.scratch, made_);
    Call inner = call;
    const float* const inputs[] = {Floats(call.saved, entering_)};
    float* const gradients[] = {wanted ? before : nullptr};
    inner.inputs = inputs;
    inner.output = nullptr;
    inner.output_gradient = deltas;
    inner.input_gradients = gradients;
    inner.saved = call.saved + inner_saved_;
    inner.scratch = call.scratch + inner_scratch_;
    product_->Backward(inner);
    if (!wanted) return;
    float* const plain = to_plain_ ? Floats(call.scratch, plain_) : call.input_gradients[0];
    Return(call, before, inputs_, cut_ == Cut::kInputs, plain, Floats(call.scratch, packed_));
    if (!to_plain_) return;
    Call copy = call;
    copy.output_gradient = plain;
    copy.scratch = call.scratch + inner_scratch_;
    to_plain_->Backward(copy);
  }

 private:
  using To = std::vector<std::span<const float>>;
  using From = std::vector<std::span<float>>;

  SlicedDense(const Backend& backend, const KernelSpec& spec)
      : backend_(backend),
        slicing_(*spec.slicing),
        cut_(slicing_.cuts[spec.number]),
        has_bias_(spec.layer->bias),
        outputs_(static_cast<std::size_t>(spec.layer->outputs)),
        rows_(spec.rows) {
    for (const std::int64_t extent : spec.inputs[0]) inputs_ *= static_cast<std::size_t>(extent);
    for (const std::size_t rows : slicing_.rows) all_ += rows;
    CHECK(own() == rows_ || own() == 0);
  }

  Result<void> MakeParts(const KernelSpec& spec) {
    const auto share = [&](std::size_t count, bool cut) { return cut ? SizeOf(count, slicing_.rank) : count; };
    const std::size_t in = share(inputs_, cut_ == Cut::kInputs), out = share(outputs_, cut_ == Cut::kOutputs);
    layer_ = *spec.layer;
    layer_.outputs = static_cast<std::int64_t>(out);
    layer_.bias = false;
    KernelSpec inner = spec;
    inner.layer = &layer_;
    inner.slicing = nullptr;
    inner.rows = all_;
    inner.inputs = {{static_cast<std::int64_t>(in)}};
    inner.layouts = {backend_.PlainLayout(all_, inner.inputs[0])};
    inner.output = {layer_.outputs};
    product_ = TRY(backend_.MakeKernel(inner));
    slow = product_->slow;
    if (!spec.layouts[0].plain) to_plain_ = TRY(backend_.MakePlain(spec));
    output = backend_.PlainLayout(rows_, spec.output);
    needs_input = false;

    Parts kept, forward, backward;
    entering_ = kept.TakeFloats(all_ * in);
    inner_saved_ = kept.Take(product_->saved);
    saved = kept.bytes();
    // Forward and Backward have the same places where they have the same parts.
    const std::size_t most = std::max(all_ * in, all_ * out), packed = PackedFloats();
    made_ = forward.TakeFloats(most);
    packed_ = forward.TakeFloats(packed);
    plain_ = forward.TakeFloats(to_plain_ ? rows_ * inputs_ : 0);
    backward = forward;
    const auto scratch_of = [](const KernelPtr& kernel) {
      return kernel ? std::max(kernel->forward_scratch, kernel->backward_scratch) : 0;
    };
    deltas_ = backward.TakeFloats(all_ * out);
    const std::size_t scratch = std::max(scratch_of(product_), scratch_of(to_plain_));
    inner_scratch_ = backward.Take(scratch);
    forward_scratch = backward_scratch = backward.bytes();
    return {};
  }

  std::size_t own() const { return slicing_.rows[static_cast<std::size_t>(slicing_.rank)]; }
  std::size_t SizeOf(std::size_t count, int worker) const {
    return SliceBegin(count, worker + 1, slicing_.size) - SliceBegin(count, worker, slicing_.size);
  }
  // What is packed for others, or comes from them: own rows of all columns, or of what each makes of all outputs.
  std::size_t PackedFloats() const {
    const std::size_t widest = std::max(inputs_, outputs_);
    return own() * widest * static_cast<std::size_t>(slicing_.size);
  }

  static float* Floats(std::byte* memory, std::size_t place) { return reinterpret_cast<float*>(memory + place); }

  // Own rows of so many columns, to all (BringRows). `to` then has the rows of all workers, with all columns or this
  // worker's.
  void Bring(const Call& call, const float* own_rows, std::size_t columns, bool cut, float* to, float* packed) const {
    const Amounts amounts = BringRows(slicing_, columns, cut);
    To outgoing;
    From incoming;
    for (std::size_t w = 0; w < amounts.to.size(); ++w) {
      incoming.emplace_back(std::exchange(to, to + amounts.from[w]), amounts.from[w]);
      if (!cut) {
        outgoing.emplace_back(own_rows, amounts.to[w]);
      } else {
        const auto worker = static_cast<int>(w);
        const std::size_t size = SizeOf(columns, worker);
        CopyColumns(own_rows + SliceBegin(columns, worker, slicing_.size), columns, packed, size, size);
        outgoing.emplace_back(std::exchange(packed, packed + amounts.to[w]), amounts.to[w]);
      }
    }
    Exchange(call, outgoing, incoming);
  }

  // What was made of the rows of all workers, to whose rows they are: of each row this worker's columns, or what is to
  // be added up. `to` then has own rows of all columns.
  void Return(const Call& call, const float* made, std::size_t columns, bool cut, float* to, float* packed) const {
    const Amounts amounts = BringRows(slicing_, columns, cut).Back();
    To outgoing;
    From incoming;
    for (std::size_t w = 0; w < amounts.to.size(); ++w) {
      outgoing.emplace_back(std::exchange(made, made + amounts.to[w]), amounts.to[w]);
      incoming.emplace_back(std::exchange(packed, packed + amounts.from[w]), amounts.from[w]);
    }
    Exchange(call, outgoing, incoming);
    if (own() == 0) std::fill_n(to, rows_ * columns, 0.0f);
    for (int worker = 0; worker < slicing_.size; ++worker) {
      const float* const came = incoming[static_cast<std::size_t>(worker)].data();
      if (cut) {
        const std::size_t first = SliceBegin(columns, worker, slicing_.size), size = SizeOf(columns, worker);
        CopyColumns(came, size, to + first, columns, size);
      } else if (worker == 0) {
        std::copy_n(came, own() * columns, to);
      } else {
        backend_.AddInto(to, came, own() * columns);
      }
    }
  }

  void CopyColumns(const float* from, std::size_t from_width, float* to, std::size_t to_width,
                   std::size_t count) const {
    backend_.InParallel(own(), count, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) std::copy_n(from + r * from_width, count, to + r * to_width);
    });
  }

  void Exchange(const Call& call, const To& outgoing, const From& incoming) const {
    const auto me = static_cast<std::size_t>(slicing_.rank);
    std::copy(outgoing[me].begin(), outgoing[me].end(), incoming[me].begin());
    call.meeting->exchange(outgoing, incoming);
  }

  // Of this worker's own rows: biases are whole, and their gradients are summed as those of other layers.
  void AddBiasGradient(optimize::BlockGradient& block, const float* deltas) const {
    const std::span<float> to = block.memory();
    if (block.empty()) std::fill(to.begin(), to.end(), 0.0f);
    for (std::size_t r = 0; r < own(); ++r)
      for (std::size_t o = 0; o < outputs_; ++o) to[o] += deltas[r * outputs_ + o];
    block.SetFull();
  }

  using KernelPtr = std::unique_ptr<Kernel>;
  const Backend& backend_;
  const Slicing slicing_;
  const Cut cut_;
  const bool has_bias_;
  const std::size_t outputs_, rows_;  // of its program: one, which does not count, where it has none of its own
  std::size_t inputs_ = 1;
  std::size_t all_ = 0;  // rows of all workers
  Layer layer_;          // the slice as a layer
  KernelPtr product_, to_plain_;
  std::size_t entering_ = 0, inner_saved_ = 0;
  std::size_t made_ = 0, packed_ = 0, plain_ = 0, deltas_ = 0, inner_scratch_ = 0;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeSlicedDense(const Backend& backend, const KernelSpec& spec) {
  return SlicedDense::Make(backend, spec);
}

}  // namespace freshet::model::network
