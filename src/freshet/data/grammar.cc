#include "data/grammar.h"

#include <array>
#include <cmath>

namespace freshet::data {
namespace {

constexpr int kDeepest = 3;
constexpr double kClose = 0.35, kOpen = 0.25;       // inside a bracket; the rest are letters
constexpr double kTopOpen = 0.5, kTopLetter = 0.2;  // outside; the rest is the end of the sentence
constexpr char kTopSymbol = 'e';

struct Bracket {
  char open, close;
  double share;  // of brackets that are opened
  char usual, other;
  double usual_share;  // of the letters inside
};
constexpr std::array<Bracket, 3> kBrackets = {{
    {'(', ')', 0.5, 'a', 'b', 0.75},
    {'[', ']', 0.3, 'c', 'a', 0.75},
    {'{', '}', 0.2, 'd', 'b', 0.75},
}};

}  // namespace

// States are numbered as they are found, level by level: those reached by opening a bracket come after all that were
// found before.
Grammar::Grammar() {
  struct Found {
    int depth, bracket;
    std::uint32_t outer;
  };
  std::vector<Found> found = {{0, -1, 0}};
  for (std::uint32_t state = 0; state < found.size(); ++state) {
    const auto [depth, bracket, outer] = found[state];
    std::vector<Choice> choices;
    if (depth < kDeepest)
      for (int kind = 0; kind < 3; ++kind) {
        const Bracket& inner = kBrackets[static_cast<std::size_t>(kind)];
        choices.push_back(
            {inner.open, (depth == 0 ? kTopOpen : kOpen) * inner.share, static_cast<std::uint32_t>(found.size())});
        found.push_back({depth + 1, kind, state});
      }
    if (depth == 0) {
      choices.push_back({kTopSymbol, kTopLetter, state});
      choices.push_back({'\n', 1 - kTopOpen - kTopLetter, 0});
    } else {
      const Bracket& around = kBrackets[static_cast<std::size_t>(bracket)];
      const double letters = 1 - kClose - (depth < kDeepest ? kOpen : 0);
      choices.push_back({around.usual, letters * around.usual_share, state});
      choices.push_back({around.other, letters * (1 - around.usual_share), state});
      choices.push_back({around.close, kClose, outer});
    }
    states_.push_back(std::move(choices));
  }
}

// Letters leave a state as it is, so that the distribution after n symbols settles, and does so like a geometric row.
std::vector<double> Grammar::StationaryDistribution() const {
  constexpr int kRounds = 5'000;
  std::vector<double> now(states(), 0.0), after;
  now[0] = 1;
  for (int round = 0; round < kRounds; ++round) {
    after.assign(states(), 0.0);
    for (std::size_t state = 0; state < states(); ++state)
      for (const Choice& choice : states_[state]) after[choice.next] += now[state] * choice.probability;
    now.swap(after);
  }
  return now;
}

double Grammar::EntropyRate() const {
  const std::vector<double> visits = StationaryDistribution();
  double bits = 0;
  for (std::size_t state = 0; state < states(); ++state)
    for (const Choice& choice : states_[state])
      bits -= visits[state] * choice.probability * std::log2(choice.probability);
  return bits;
}

}  // namespace freshet::data
