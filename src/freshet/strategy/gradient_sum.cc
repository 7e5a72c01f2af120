#include "strategy/gradient_sum.h"

#include <algorithm>
#include <utility>

#include "base/hollow.h"
#include "base/option.h"
#include "fabric/collectives/factors.h"
#include "fabric/collectives/power.h"
#include "fabric/collectives/sparse.h"
#include "strategy/make_codec.h"
#include "strategy/touched_rows.h"

namespace freshet::strategy {
namespace {

using fabric::CompressedAllReduce;
using fabric::PowerAllReduce;
using optimize::BlockGradient;

constexpr std::size_t kBuckets = 8, kLeastBytes = 64 << 10;

// Neighbouring dense blocks that travel together.
struct Bucket {
  std::size_t first = 0, last = 0;                  // blocks
  std::span<float> values;                          // from the begin of the first to the end of the last
  std::unique_ptr<CompressedAllReduce> compressed;  // one of these, or neither
  std::unique_ptr<PowerAllReduce> power;
  std::size_t unfinished = 0;
  bool started = false;  // in this update
  std::optional<fabric::Collectives::Pending> pending;
};

void FillIfEmpty(BlockGradient& block) {
  if (block.empty() && !base::IsHollow(block.memory())) std::fill(block.memory().begin(), block.memory().end(), 0.0f);
  block.SetFull();
}

}  // namespace

struct GradientSum::Inside {
  StrategyOptions options;
  fabric::Collectives& collectives;
  base::Trace* const trace;
  std::vector<optimize::Block> shapes;
  std::vector<bool> gives_factors, left_out;
  bool planned = false;
  std::uint64_t step = 0;                                             // of the optimizer
  bool plain = false;                                                 // this update travels uncompressed
  std::vector<Bucket> buckets;                                        // in the order in which backward finishes them
  std::vector<std::size_t> bucket_of;                                 // by block; buckets.size(): none
  std::vector<bool> as_factors;                                       // by block
  std::vector<std::unique_ptr<CompressedAllReduce>> rows_compressed;  // by block, of models that touch rows
  std::uint64_t bytes_dense = 0;

  Inside(const StrategyOptions& o, fabric::Collectives& c, const model::Model& model, base::Trace* t)
      : options(o), collectives(c), trace(t), shapes(model.Blocks()), rows_compressed(shapes.size()) {
    for (std::size_t b = 0; b < shapes.size(); ++b) gives_factors.push_back(model.GivesFactors(b));
    left_out.resize(shapes.size(), false);
  }

  // What travels reads and writes our memory: an update that failed half way has left it on its way.
  ~Inside() { (void)WaitForAll(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // The first failure; nothing is on its way any more.
  Result<void> WaitForAll() {
    Result<void> all;
    for (Bucket& bucket : buckets) {
      if (!bucket.pending) continue;
      const Result<void> one = collectives.Wait(*std::exchange(bucket.pending, std::nullopt));
      if (all.ok() && !one.ok()) all = one;
    }
    return all;
  }

  int workers() const { return collectives.fabric().size(); }

  void CountDense(std::size_t floats) {
    const auto n = static_cast<std::uint64_t>(workers());
    bytes_dense += 2 * (n - 1) * floats * sizeof(float) / n;
  }

  Result<void> Plan(const optimize::Gradient& gradient) {
    planned = true;
    const std::size_t share = std::max<std::size_t>(options.batch / static_cast<std::size_t>(workers()), 1);
    as_factors.assign(shapes.size(), false);
    bucket_of.assign(shapes.size(), shapes.size());
    bool open = false;
    // So many that some can travel beside compute, though each costs a message.
    std::size_t total = 0;
    for (std::size_t b = 0; b < shapes.size(); ++b)
      if (!left_out[b]) total += gradient.blocks[b].memory().size_bytes();
    const std::size_t enough = std::min(options.bucket_bytes, std::max(total / kBuckets, kLeastBytes));
    for (std::size_t b = shapes.size(); b-- > 0;) {
      const BlockGradient& block = gradient.blocks[b];
      if (block.memory().empty()) continue;
      if (left_out[b]) {
        open = false;  // a bucket has no gaps
        continue;
      }
      as_factors[b] =
          options.factors && gives_factors[b] && fabric::FactorsPay(workers(), share, shapes[b].rows, shapes[b].width);
      const bool power = options.codec == "power" && shapes[b].rows > 1 && shapes[b].width > 1 &&
                         PowerAllReduce::Pays(shapes[b].rows, shapes[b].width, Rank());
      if (!open || as_factors[b] || power) buckets.emplace_back().last = b;
      if (as_factors[b]) {
        buckets.pop_back();
        open = false;
        continue;
      }
      Bucket& bucket = buckets.back();
      bucket.first = b;
      ++bucket.unfinished;
      bucket_of[b] = buckets.size() - 1;
      const BlockGradient& end = gradient.blocks[bucket.last];
      const float* const begin = block.memory().data();
      bucket.values = {const_cast<float*>(begin), end.memory().data() + end.memory().size()};
      if (power)
        bucket.power =
            std::make_unique<PowerAllReduce>(shapes[b].rows, shapes[b].width, Rank(), b, base::IsHollow(bucket.values));
      open = !power && bucket.values.size_bytes() < enough;
    }
    for (Bucket& bucket : buckets)
      if (options.codec != "none" && options.codec != "power")
        bucket.compressed = std::make_unique<CompressedAllReduce>(TRY(MakeCodec(options)), bucket.values.size(),
                                                                  base::IsHollow(bucket.values));
    return {};
  }
  std::size_t Rank() const { return static_cast<std::size_t>(options.power_rank); }

  void Prepare(Bucket& bucket, optimize::Gradient& gradient) {
    float* end = bucket.values.data();
    for (std::size_t b = bucket.first; b <= bucket.last; ++b) {
      BlockGradient& block = gradient.blocks[b];
      if (block.memory().empty()) continue;
      FillIfEmpty(block);
      // Blocks are aligned. What a codec made of the gap before one would be summed again, and grow with every step.
      if (!base::IsHollow(end)) std::fill(end, block.memory().data(), 0.0f);
      end = block.memory().data() + block.memory().size();
    }
    CountDense(bucket.values.size());
  }
  Result<void> Travel(Bucket& bucket, fabric::Tag tag, std::uint32_t track) {
    const bool dense = plain || (!bucket.compressed && !bucket.power);
    const std::uint64_t bytes = bucket.values.size_bytes();
    const base::Span span(trace, "exchange bucket", track, HowSent(bytes, dense, &bucket - buckets.data()));
    if (dense) return collectives.AllReduceWithin(tag, bucket.values);
    return bucket.power ? bucket.power->Run(collectives.fabric(), tag, bucket.values)
                        : bucket.compressed->Run(collectives.fabric(), tag, bucket.values);
  }
  base::Trace::Details HowSent(std::uint64_t bytes, bool dense, std::ptrdiff_t bucket) const {
    if (trace == nullptr) return {};
    return {.step = step,
            .bucket = static_cast<std::uint64_t>(bucket),
            .bytes = bytes,
            .algorithm = dense ? std::string(NameOf(collectives.AlgorithmFor(bytes))) : options.codec};
  }
  void Start(Bucket& bucket, optimize::Gradient& gradient) {
    Prepare(bucket, gradient);
    bucket.started = true;
    bucket.pending =
        collectives.Start([this, &bucket](fabric::Tag tag) { return Travel(bucket, tag, base::Trace::kFabric); });
  }
  Result<void> Run(Bucket& bucket, optimize::Gradient& gradient) {
    Prepare(bucket, gradient);
    return Travel(bucket, collectives.NextTag(), base::Trace::kTraining);
  }

  Result<void> SumFactors(BlockGradient& block, std::size_t b) {
    const base::Span span(trace, "exchange factors", base::Trace::kTraining,
                          {.bytes = block.inputs().size_bytes() + block.deltas().size_bytes()});
    const auto all = TRY(fabric::GatherFactors(collectives.fabric(), collectives.NextTag(), block.inputs(),
                                               shapes[b].width, block.deltas(), shapes[b].rows));
    CountDense(shapes[b].rows * shapes[b].width);
    const bool wanted = block.wants_factors();
    block.Clear();
    block.WantFactors(wanted);
    for (const fabric::Factors& part : all) block.AddFactors(part.examples, part.inputs, part.deltas);
    return {};
  }

  Result<void> SumRows(BlockGradient& block, std::size_t b, std::uint64_t rows) {
    fabric::SparseRows touched = TouchedRows(block);
    const std::size_t mine = touched.rows.size();
    const base::Span span(
        trace, "exchange rows", base::Trace::kTraining,
        {.bytes = touched.rows.size() * sizeof(std::uint32_t) + touched.values.size() * sizeof(float)});
    const std::size_t width = shapes[b].width;
    const bool grows = shapes[b].most_rows > shapes[b].rows;
    const std::size_t most = options.whole || !grows ? rows : shapes[b].most_rows;
    CountDense(rows * width);
    if (plain || options.codec == "none" || options.codec == "power") {
      TRY(fabric::SparseAllReduce(most, width).Run(collectives.fabric(), collectives.NextTag(), touched));
    } else {
      TRY(SumCompressed(touched, b, rows));
    }
    block.Clear();
    for (std::size_t i = 0; i < touched.rows.size(); ++i)
      std::copy_n(&touched.values[i * width], width, block.Touch(touched.rows[i]));
    collectives.fabric().Spend("rows", (mine + touched.rows.size()) * (width + 1) * sizeof(float));
    return {};
  }

  // Touched rows through a codec: as the whole block, since what a codec held back belongs to rows not touched now.
  Result<void> SumCompressed(fabric::SparseRows& touched, std::size_t b, std::uint64_t rows) {
    const std::size_t width = shapes[b].width;
    std::vector<float> all(rows * width, 0.0f);
    for (std::size_t i = 0; i < touched.rows.size(); ++i)
      std::copy_n(&touched.values[i * width], width, &all[touched.rows[i] * width]);
    std::unique_ptr<CompressedAllReduce>& compressed = rows_compressed[b];
    if (!compressed || compressed->length() != all.size()) {
      auto larger = std::make_unique<CompressedAllReduce>(TRY(MakeCodec(options)), all.size());
      if (compressed && !compressed->residual().empty()) {
        std::vector<float> residual(compressed->residual().begin(), compressed->residual().end());
        residual.resize(all.size(), 0.0f);
        TRY(larger->Restore(residual));
      }
      compressed = std::move(larger);
    }
    TRY(compressed->Run(collectives.fabric(), collectives.NextTag(), all));
    touched = {};
    for (std::uint32_t row = 0; row < rows; ++row) {
      const float* const values = &all[row * width];
      if (std::all_of(values, values + width, [](float value) { return value == 0; })) continue;
      touched.rows.push_back(row);
      touched.values.insert(touched.values.end(), values, values + width);
    }
    return {};
  }
};

GradientSum::GradientSum(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
GradientSum::GradientSum(GradientSum&&) noexcept = default;
GradientSum::~GradientSum() = default;

Result<GradientSum> GradientSum::Make(const StrategyOptions& options, fabric::Collectives& collectives,
                                      const model::Model& model, base::Trace* trace,
                                      const std::vector<bool>& left_out) {
  if (options.codec != "power") TRY(MakeCodec(options));  // refuses what cannot be
  auto inside = std::make_unique<Inside>(options, collectives, model, trace);
  if (!left_out.empty()) inside->left_out = left_out;
  const bool codec = options.codec != "none" && options.codec != "power";
  for (const optimize::Block& block : inside->shapes)
    if (codec && !options.whole && block.most_rows > block.rows)
      return Error{Code::kInvalid, Str(Option("codec"), " ", options.codec, " needs ", Option("split"),
                                       " rows for a model that grows")};
  return GradientSum(std::move(inside));
}

void GradientSum::Begin(optimize::Gradient& gradient, std::uint64_t step) {
  if (!inside_->planned) CHECK(inside_->Plan(gradient).ok());  // the codec was made once before
  inside_->step = step;
  inside_->plain = step < inside_->options.warm_start;
  (void)inside_->WaitForAll();
  for (Bucket& bucket : inside_->buckets) {
    bucket.unfinished = bucket.last - bucket.first + 1;
    bucket.started = false;
  }
  for (std::size_t b = 0; b < gradient.blocks.size(); ++b)
    if (!inside_->left_out[b]) gradient.blocks[b].WantFactors(inside_->as_factors[b]);
}

void GradientSum::Finished(optimize::Gradient& gradient, std::size_t block) {
  Inside& in = *inside_;
  if (!in.options.overlap || in.bucket_of[block] == in.shapes.size()) return;
  Bucket& bucket = in.buckets[in.bucket_of[block]];
  // The last one has nothing left to travel beside: Finish sends it at once, without the fabric's thread.
  if (--bucket.unfinished == 0 && &bucket != &in.buckets.back()) in.Start(bucket, gradient);
}

Result<void> GradientSum::Finish(optimize::Gradient& gradient, const optimize::Parameters& parameters) {
  Inside& in = *inside_;
  TRY(in.WaitForAll());
  for (Bucket& bucket : in.buckets)
    if (!bucket.started) TRY(in.Run(bucket, gradient));
  for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
    BlockGradient& block = gradient.blocks[b];
    if (in.as_factors[b])
      TRY(in.SumFactors(block, b));
    else if (block.memory().empty() && !in.left_out[b])
      TRY(in.SumRows(block, b, parameters.rows(b)));
  }
  return {};
}

std::uint64_t GradientSum::bytes_dense() const { return inside_->bytes_dense; }

void GradientSum::Save(std::vector<data::Tensor>& tensors, Whose whose) const {
  const auto add = [&](std::string name, std::span<const float> values) {
    if (!values.empty())
      tensors.push_back({std::move(name), data::DType::kF32, {values.size()}, std::as_bytes(values)});
  };
  const Inside& in = *inside_;
  for (std::size_t i = 0; i < in.buckets.size(); ++i) {
    const Bucket& bucket = in.buckets[i];
    if (bucket.compressed && whose == Whose::kOwn) add(Str("residual.", i), bucket.compressed->residual());
    if (!bucket.power) continue;
    const PowerAllReduce::State& state = bucket.power->state();
    if (whose == Whose::kOwn) add(Str("power.", i, ".error"), state.error);
    add(Str("power.", i, ".q"), state.q);
    tensors.push_back({Str("power.", i, ".position"),
                       data::DType::kU64,
                       {1},
                       std::as_bytes(std::span<const std::uint64_t>(&state.position, 1))});
  }
  if (whose == Whose::kShared) return;
  for (std::size_t b = 0; b < in.rows_compressed.size(); ++b)
    if (in.rows_compressed[b]) add(Str("residual.rows.", b), in.rows_compressed[b]->residual());
}

Result<void> GradientSum::Load(const data::TensorFile& file, Whose whose) {
  Inside& in = *inside_;
  CHECK(in.planned);
  const bool own = whose == Whose::kOwn;
  for (std::size_t i = 0; i < in.buckets.size(); ++i) {
    Bucket& bucket = in.buckets[i];
    if (own && bucket.compressed && !bucket.compressed->residual().empty())
      TRY(bucket.compressed->Restore(TRY(file.Values<float>(Str("residual.", i)))));
    if (!bucket.power) continue;
    PowerAllReduce::State state = bucket.power->state();
    if (own) state.error = TRY(file.Values<float>(Str("power.", i, ".error")));
    state.q = TRY(file.Values<float>(Str("power.", i, ".q")));
    const auto position = TRY(file.Values<std::uint64_t>(Str("power.", i, ".position")));
    state.position = position.empty() ? 0 : position[0];
    TRY(bucket.power->Restore(std::move(state)));
  }
  for (std::size_t b = 0; own && b < in.rows_compressed.size(); ++b) {
    if (file.Find(Str("residual.rows.", b)) == nullptr) continue;
    const auto residual = TRY(file.Values<float>(Str("residual.rows.", b)));
    in.rows_compressed[b] = std::make_unique<CompressedAllReduce>(TRY(MakeCodec(in.options)), residual.size());
    TRY(in.rows_compressed[b]->Restore(residual));
  }
  return {};
}

Result<void> GradientSum::Merge(const data::TensorFile& file) {
  Inside& in = *inside_;
  CHECK(in.planned);
  // The sum of what is here and what the file has by this name, which may be of fewer rows.
  const auto sum = [&](std::span<const float> mine, const std::string& name) -> Result<std::vector<float>> {
    std::vector<float> all = TRY(file.Values<float>(name));
    all.resize(std::max(all.size(), mine.size()), 0.0f);
    for (std::size_t k = 0; k < mine.size(); ++k) all[k] += mine[k];
    return all;
  };
  for (std::size_t i = 0; i < in.buckets.size(); ++i) {
    Bucket& bucket = in.buckets[i];
    if (bucket.compressed && !bucket.compressed->residual().empty())
      TRY(bucket.compressed->Restore(TRY(sum(bucket.compressed->residual(), Str("residual.", i)))));
    if (!bucket.power) continue;
    PowerAllReduce::State state = bucket.power->state();
    state.error = TRY(sum(state.error, Str("power.", i, ".error")));
    TRY(bucket.power->Restore(std::move(state)));
  }
  for (std::size_t b = 0; b < in.rows_compressed.size(); ++b) {
    const std::string name = Str("residual.rows.", b);
    if (file.Find(name) == nullptr) continue;
    const auto residual =
        TRY(sum(in.rows_compressed[b] ? in.rows_compressed[b]->residual() : std::span<const float>(), name));
    in.rows_compressed[b] = std::make_unique<CompressedAllReduce>(TRY(MakeCodec(in.options)), residual.size());
    TRY(in.rows_compressed[b]->Restore(residual));
  }
  return {};
}

}  // namespace freshet::strategy
