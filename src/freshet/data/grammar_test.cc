#include "data/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "data/generate.h"

namespace freshet::data {
namespace {

class StringFile final : public base::OutputFile {
 public:
  Result<void> Write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  Result<void> Sync() override { return {}; }
  std::string text;
};

std::string TextOf(std::uint64_t sentences, std::uint64_t seed) {
  StringFile file;
  EXPECT_TRUE(Generate({.kind = "grammar", .rows = sentences, .seed = seed}, file).ok());
  return std::move(file.text);
}

TEST(Grammar, IsAnAutomatonOfFortyStatesOverTwelveSymbols) {
  const Grammar grammar;
  EXPECT_EQ(grammar.states(), 1u + 3 + 9 + 27);
  std::set<char> symbols;
  for (std::uint32_t state = 0; state < grammar.states(); ++state) {
    double sum = 0;
    std::set<char> here;
    for (const Grammar::Choice& choice : grammar.ChoicesAt(state)) {
      EXPECT_GT(choice.probability, 0);
      EXPECT_LT(choice.next, grammar.states());
      EXPECT_TRUE(here.insert(choice.symbol).second) << "the symbol must decide the next state";
      sum += choice.probability;
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    symbols.insert(here.begin(), here.end());
  }
  EXPECT_EQ(symbols.size(), 12u);
}

TEST(Grammar, VisitsStatesAsOftenAsIsSaid) {
  const Grammar grammar;
  const std::vector<double> visits = grammar.StationaryDistribution();
  double sum = 0;
  std::vector<double> after(visits.size(), 0.0);
  for (std::uint32_t state = 0; state < grammar.states(); ++state) {
    sum += visits[state];
    for (const Grammar::Choice& choice : grammar.ChoicesAt(state))
      after[choice.next] += visits[state] * choice.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  for (std::size_t state = 0; state < visits.size(); ++state) EXPECT_NEAR(after[state], visits[state], 1e-12);
}

// The mean surprise of one who knows the automaton comes near the entropy; of one who sees a single symbol back it
// stays far above.
TEST(Grammar, TextHasTheEntropyThatIsSaidAndNeedsMemory) {
  const Grammar grammar;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const std::string text = TextOf(20'000, seed);
    double bits = 0;
    std::uint32_t state = 0;
    std::map<char, double> once;
    std::map<std::pair<char, char>, double> twice;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto choices = grammar.ChoicesAt(state);
      const auto choice =
          std::find_if(choices.begin(), choices.end(), [&](const auto& c) { return c.symbol == text[i]; });
      ASSERT_NE(choice, choices.end()) << "symbol " << i;
      bits -= std::log2(choice->probability);
      state = choice->next;
      once[text[i]] += 1;
      if (i > 0) twice[{text[i - 1], text[i]}] += 1;
    }
    const auto size = static_cast<double>(text.size());
    EXPECT_NEAR(bits / size, grammar.EntropyRate(), 0.015);
    double of_pairs = 0;
    for (const auto& [pair, count] : twice) of_pairs -= count * std::log2(count / once[pair.first]);
    EXPECT_GT(of_pairs / size, grammar.EntropyRate() + 0.4);
  }
}

TEST(Grammar, SentencesAreALineEachAndNoLongerThanARowMayBe) {
  const std::string text = TextOf(5'000, 9);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5'000);
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LT(end - begin, 1000u);
  EXPECT_EQ(begin, text.size());
}

}  // namespace
}  // namespace freshet::data
