// What a network computes does not depend on how many threads compute it. Recurrent layers are not among these: oneDNN
// cuts the sums in them by the number of threads.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "model/network/program.h"
#include "model/network/zoo.h"

namespace freshet::model::network {
namespace {

// Scores and gradients of one batch.
struct Computed {
  std::vector<float> scores;
  std::vector<std::pair<std::string, std::vector<float>>> gradients;  // by block
};

class OneBatch {
 public:
  OneBatch(Graph graph, std::size_t rows) : graph_(std::move(graph)), rows_(rows), facts_(Infer(graph_).value()) {
    base::Random random(7, "one batch");
    for (std::size_t b = 0; b < parameters_.blocks(); ++b) {
      const double reach = 1 / std::sqrt(static_cast<double>(parameters_.width(b)));
      for (float& value : parameters_.Values(b)) value = static_cast<float>(random.Uniform(-reach, reach));
    }
    for (std::size_t i = 0; i < rows_ * static_cast<std::size_t>(facts_[0].elements()); ++i)
      input_.push_back(static_cast<float>(random.Uniform(0, 1)));
  }

  Computed By(int threads) {
    auto program = Program::Compile(graph_, {.rows = rows_, .training = true, .threads = threads}).value();
    optimize::Gradient gradient = optimize::Gradient::Dense(Blocks(facts_), memory_).value();
    const float* const input = input_.data();
    program->Forward(parameters_, {&input, 1}, {});
    Computed computed;
    for (std::size_t i = 0; i < program->outputs().size(); ++i) {
      const std::span<const float> scores = program->Output(i);
      computed.scores.insert(computed.scores.end(), scores.begin(), scores.end());
      base::Random random(i, "deltas");
      for (float& delta : program->OutputGradient(i)) delta = static_cast<float>(random.Uniform(-1, 1));
    }
    program->Backward(parameters_, gradient, {}, {});
    for (std::size_t b = 0; b < gradient.blocks.size(); ++b) {
      const std::span<const float> values = gradient.blocks[b].memory();
      computed.gradients.emplace_back(parameters_.block(b).name, std::vector<float>(values.begin(), values.end()));
    }
    return computed;
  }

 private:
  const Graph graph_;
  const std::size_t rows_;
  const std::vector<Facts> facts_;
  optimize::HeapMemory memory_;
  optimize::Parameters parameters_ = optimize::Parameters::Create(Blocks(facts_), memory_).value();
  std::vector<float> input_;
};

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Threads : public ::testing::TestWithParam<std::string> {};

TEST_P(Threads, DoNotChangeWhatANetworkOfTheZooComputes) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot see how OpenMP's threads hand over to each other";
#endif
  for (const ZooEntry& entry : Zoo()) {
    if (entry.name != GetParam()) continue;
    OneBatch batch(MakeZoo(entry.name, entry.input, entry.classes, {}).value(), 32);
    const Computed alone = batch.By(1);
    for (const int threads : {2, 3, 4}) {
      const Computed together = batch.By(threads);
      EXPECT_TRUE(Same(alone.scores, together.scores)) << "scores by " << threads;
      for (std::size_t b = 0; b < alone.gradients.size(); ++b)
        EXPECT_TRUE(Same(alone.gradients[b].second, together.gradients[b].second))
            << alone.gradients[b].first << " by " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Threads, ::testing::Values("mlp", "lenet5", "cifar-quick", "resnet20", "autoencoder"));

}  // namespace
}  // namespace freshet::model::network
