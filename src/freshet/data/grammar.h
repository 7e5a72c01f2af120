#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace freshet::data {

// A small language made by chance: sentences of letters and of brackets of three kinds, nested at most three deep, each
// sentence ended by a new line. Which letters may stand somewhere depends on the bracket around them, so that whoever
// predicts the next symbol has to remember all brackets that are open, not only the symbols just seen.
//
// It is an automaton whose states are the brackets that are open; the symbol decides the next state, so that the
// entropy of the language follows exactly from how often each state is visited. State 0 is where sentences begin and
// end. The same for ever: constant after construction, for any number of threads.
class Grammar {
 public:
  struct Choice {
    char symbol;
    double probability;
    std::uint32_t next;  // state; after the new line 0
  };

  Grammar();
  std::size_t states() const { return states_.size(); }
  // What may come in a state; probabilities add up to 1. The last choice closes the bracket, in state 0 the sentence.
  std::span<const Choice> ChoicesAt(std::uint32_t state) const { return states_[state]; }

  // How often each state is visited in the long run; adds up to 1.
  std::vector<double> StationaryDistribution() const;
  // Bits per symbol that nobody can predict, given the whole past.
  double EntropyRate() const;

 private:
  std::vector<std::vector<Choice>> states_;
};

}  // namespace freshet::data
