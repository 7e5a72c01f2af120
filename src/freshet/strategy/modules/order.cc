#include "strategy/modules/order.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "base/option.h"

namespace freshet::strategy::modules {
namespace {

constexpr double kForward = 1.0 / 3;  // of a module's cost

// By module: how many follow each other from there to an end of the network, itself included.
std::vector<std::size_t> LengthsToTheEnd(const Assembly& assembly) {
  std::vector<std::size_t> lengths(assembly.modules.size(), 1);
  for (std::size_t m = assembly.modules.size(); m-- > 0;)
    for (const std::size_t link : assembly.modules[m].leaves)
      for (const std::size_t reader : assembly.links[link].to) lengths[m] = std::max(lengths[m], lengths[reader] + 1);
  return lengths;
}

// All members at work, in estimated time.
class Rehearsal {
 public:
  Rehearsal(const Assembly& assembly, bool flush, std::size_t micros)
      : assembly_(assembly), flush_(flush), micros_(micros), free_(assembly.places.size(), 0) {
    schedule_.actions.resize(assembly.places.size());
    const auto lengths = LengthsToTheEnd(assembly);
    for (std::size_t m = 0; m < assembly.modules.size(); ++m)
      schedule_.depth.push_back(flush ? micros : std::min(micros, lengths[m]));
    done_.resize(assembly.modules.size());
  }

  ring::Schedule Run() {
    for (std::size_t left = 2 * micros_ * assembly_.modules.size(); left > 0; --left) {
      std::optional<Choice> best;
      for (std::size_t m = 0; m < assembly_.modules.size(); ++m)
        for (const bool backward : {true, false})
          if (const auto choice = Next(m, backward); choice && (!best || choice->Before(*best))) best = choice;
      CHECK(best.has_value());  // the first micro-batch that is not back can always go on
      Do(*best);
    }
    return std::move(schedule_);
  }

 private:
  struct Done {
    std::vector<double> forward, backward;  // when each micro-batch was
  };
  struct Choice {
    double begins = 0;
    bool backward = false;
    std::size_t module = 0, micro = 0;
    bool Before(const Choice& other) const {
      return std::tuple(begins, !backward, micro, module) <
             std::tuple(other.begins, !other.backward, other.micro, other.module);
    }
  };

  // What a module could do next, if anything.
  std::optional<Choice> Next(std::size_t m, bool backward) const {
    const Module& module = assembly_.modules[m];
    const Done& own = done_[m];
    const std::size_t micro = backward ? own.backward.size() : own.forward.size();
    double ready = free_[static_cast<std::size_t>(module.member)];
    if (backward) {
      if (micro >= own.forward.size() || (flush_ && own.forward.size() < micros_)) return std::nullopt;
      for (const std::size_t link : module.leaves)
        for (const std::size_t reader : assembly_.links[link].to) {
          if (done_[reader].backward.size() <= micro) return std::nullopt;
          ready = std::max(ready, done_[reader].backward[micro]);
        }
    } else {
      if (micro >= micros_ || micro - own.backward.size() >= schedule_.depth[m]) return std::nullopt;
      for (const std::size_t link : module.enters) {
        const std::vector<double>& made = done_[assembly_.links[link].from].forward;
        if (made.size() <= micro) return std::nullopt;
        ready = std::max(ready, made[micro]);
      }
    }
    return Choice{ready, backward, m, micro};
  }

  void Do(const Choice& choice) {
    const Module& module = assembly_.modules[choice.module];
    const auto member = static_cast<std::size_t>(module.member);
    free_[member] = choice.begins + module.cost * (choice.backward ? 1 - kForward : kForward);
    Done& own = done_[choice.module];
    (choice.backward ? own.backward : own.forward).push_back(free_[member]);
    schedule_.actions[member].push_back({choice.backward, static_cast<int>(choice.module), choice.micro});
  }

  const Assembly& assembly_;
  const bool flush_;
  const std::size_t micros_;
  std::vector<double> free_;  // by member, from when on
  std::vector<Done> done_;    // by module
  ring::Schedule schedule_;
};

}  // namespace

Result<ring::Schedule> MakeOrder(const Assembly& assembly, ring::Order order, std::size_t micros) {
  if (order != ring::Order::kFlush && order != ring::Order::kOneByOne)
    return Error{Code::kInvalid, Str(Option("strategy"), " modules goes with ", Option("pipeline"),
                                     " flush or 1f1b: others are for ", Option("strategy"), " ring")};
  return Rehearsal(assembly, order == ring::Order::kFlush, micros).Run();
}

}  // namespace freshet::strategy::modules
