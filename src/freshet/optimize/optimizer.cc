#include "optimize/optimizer.h"

#include <algorithm>
#include <list>

#include "base/check.h"
#include "base/mutex.h"
#include "optimize/own_rule.h"
#include "optimize/rules.h"

namespace freshet::optimize {
namespace {

// The registry: one line for each rule, which has one file of its own.
struct Entry {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options, Memory& memory);
};
constexpr Entry kRegistry[] = {
    {"adaptive", MakeAdaptive}, {"sgd", MakeSgd},   {"momentum", MakeMomentum},
    {"adagrad", MakeAdaGrad},   {"adam", MakeAdam}, {"ftrl", MakeFtrl},
};

// Those that the program added. They stay where they are: what they make borrows its name.
struct OwnRule {
  std::string name;
  RuleMaker make;
};
struct OwnRules {
  base::Mutex mutex;
  std::list<OwnRule> rules GUARDED_BY(mutex);
};
OwnRules& Own() {
  static OwnRules rules;
  return rules;
}

const OwnRule* FindOwn(std::string_view name) {
  const base::Lock lock(Own().mutex);
  for (const OwnRule& rule : Own().rules)
    if (rule.name == name) return &rule;
  return nullptr;
}

}  // namespace

Result<void> RegisterRule(std::string_view name, RuleMaker make) {
  for (const std::string& taken : Optimizer::Kinds())
    if (taken == name) return Error{Code::kInvalid, Str("there is an update rule ", Quoted(name), " already")};
  const base::Lock lock(Own().mutex);
  Own().rules.push_back({std::string(name), make});
  return {};
}

std::vector<std::string> Optimizer::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  const base::Lock lock(Own().mutex);
  for (const OwnRule& rule : Own().rules) names.push_back(rule.name);
  return names;
}

Result<std::unique_ptr<Optimizer>> Optimizer::Make(const OptimizerOptions& options, Memory& memory) {
  TRY(options.schedule.Validate());
  if (!(options.l1 >= 0) || !(options.l2 >= 0)) return Error{Code::kInvalid, "l1 and l2: expected 0 or more"};
  for (const Entry& entry : kRegistry)
    if (entry.name == options.kind) {
      auto optimizer = entry.make(options, memory);
      optimizer->SetStep(0);
      return optimizer;
    }
  if (const OwnRule* const own = FindOwn(options.kind)) {
    auto optimizer = own->make(own->name, options, memory);
    optimizer->SetStep(0);
    return optimizer;
  }
  return Error{Code::kInvalid, Str("optimizer ", Quoted(options.kind), ": expected one of ", Join(Kinds(), ", "))};
}

Optimizer::Optimizer(const OptimizerOptions& options, Memory& memory)
    : options_(options), memory_(memory), factor_(Schedule::FactorOf(options.schedule.kind)) {}

Result<void> Optimizer::Follow(const Parameters& parameters) {
  if (!state_) {
    std::vector<Block> blocks;
    for (std::size_t b = 0; b < parameters.blocks(); ++b) {
      Block block = parameters.block(b);
      block.width *= static_cast<std::uint64_t>(slots());
      if (block.beside > 0) {
        CHECK(block.beside == block.width);  // the state is there already
        block.rows = block.most_rows = 0;
      }
      block.beside = 0;
      block.within.reset();  // slots stand in the way of columns
      blocks.push_back(std::move(block));
    }
    state_ = std::make_shared<Parameters>(TRY(Parameters::Create(std::move(blocks), memory_)));
  }
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    if (parameters.plain(b)) TRY(state_->Grow(b, parameters.rows(b)));
  return {};
}

void Optimizer::SetStep(std::uint64_t step) {
  step_ = step;
  rate_ = scale_ * options_.schedule.At(factor_, step == 0 ? 0 : step - 1, progress_);
  steady_ = step > options_.schedule.warmup_steps && options_.schedule.kind == "constant" && !StepMatters();
  OnStep();
}

void Optimizer::Apply(Parameters& parameters, const Gradient& gradient) {
  for (std::size_t b = 0; b < gradient.blocks.size(); ++b)
    ApplyBlock(parameters, b, gradient.blocks[b], 0, parameters.rows(b));
}

void Optimizer::ApplyBlock(Parameters& parameters, std::size_t b, const BlockGradient& block, std::uint64_t first,
                           std::uint64_t last) {
  if (block.empty()) return;
  const std::uint64_t width = block.width();
  if (block.form() == BlockGradient::Form::kRows) {
    const auto rows = block.touched();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (first <= rows[i] && rows[i] < last) UpdateRow(parameters, b, rows[i], block.Values(i));
  } else if (block.form() == BlockGradient::Form::kFactors) {
    CHECK(block.examples() == 1);  // more than one is for Expand
    for (std::uint64_t row = first; row < last; ++row)
      if (block.deltas()[row] != 0)
        UpdateScaled(parameters, b, row, block.inputs(), block.scale() * block.deltas()[row], Sharing::kAlone);
  } else {
    ApplyDense(parameters, b, first, last, block.memory().data() + first * width, block.scale());
  }
}

void Optimizer::ApplyDense(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                           const float* values, float factor) {
  const float follow = parameters.follow(b);
  if (!(follow > 0)) return UpdateDense(parameters, b, first, last, values, factor);
  const float step = follow * factor;
  for (std::uint64_t row = first; row < last; ++row)
    for (std::uint64_t k = 0; k < parameters.width(b); ++k) parameters.Row(b, row)[k] -= step * *values++;
}

}  // namespace freshet::optimize
