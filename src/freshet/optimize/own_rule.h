#pragma once

#include "optimize/rule_optimizer.h"

namespace freshet::optimize {

// Update rules of a program's own, beside those of rules.h:
//
//   struct Mine { … };                      a Rule, as rule_optimizer.h describes it
//   TRY(RegisterRule<Mine>("mine"));        before anything asks for it by name
//
// From then on "mine" is a rule like any other, for every way of training: servers of parameters make its updates, too,
// and checkpoints remember it. All processes of a job register it; it stays until the process ends. Where train::Job says
// no rate it is 0.1 (of factorization 0.05).
//
// Threads: any. Failure: kInvalid for a name that is taken.
using RuleMaker = std::unique_ptr<Optimizer> (*)(std::string_view name, const OptimizerOptions& options,
                                                 Memory& memory);
Result<void> RegisterRule(std::string_view name, RuleMaker make);

template <class Rule>
Result<void> RegisterRule(std::string_view name) {
  return RegisterRule(
      name, [](std::string_view as, const OptimizerOptions& options, Memory& memory) -> std::unique_ptr<Optimizer> {
        return std::make_unique<RuleOptimizer<Rule>>(as, options, memory);
      });
}

}  // namespace freshet::optimize
