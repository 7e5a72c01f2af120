#include "train/choice.h"

#include <thread>

#include "data/generate.h"
#include "data/world_testing.h"
#include "fabric/threads/threads_fabric.h"
#include "train/job.h"

namespace freshet::train {
namespace {

using fabric::Algorithm;

model::ModelConfig Perceptron() {
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.features = 64;
  config.classes = 10;
  config.network = "input = [64]\nlayers = [{dense = 128, activation = \"relu\"}, {dense = 10}]\n";
  return config;
}

// What every member of a group of threads that has no all-reduce of its own to prefer is told.
std::vector<Result<Choice>> ChooseAmong(int workers, const model::ModelConfig& config, Algorithm named) {
  data::World world(1);
  base::SystemClock clock;  // what is measured takes time
  const auto model = model::Model::Make(config).value();
  fabric::ThreadsGroup group(workers, clock);
  std::vector<Result<Choice>> choices(static_cast<std::size_t>(workers), Choice{});
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < workers; ++rank)
    threads.emplace_back([&, rank] {
      fabric::Collectives collectives(group.member(rank), {.algorithm = named});
      ChoiceWishes wishes;
      wishes.strategy.batch = 64;
      wishes.seconds = 0.002;
      choices[static_cast<std::size_t>(rank)] = ChooseStrategy(world.posix, clock, collectives, *model, wishes);
    });
  threads.clear();
  return choices;
}

TEST(Choice, IsTheSameForAllAndSaysHowItWasMade) {
  const auto choices = ChooseAmong(3, Perceptron(), Algorithm::kAuto);
  for (const auto& choice : choices) {
    ASSERT_TRUE(choice.ok()) << choice.error().text;
    EXPECT_EQ(choice.value().ToText(), choices[0].value().ToText());
    EXPECT_EQ(choice.value().how, choices[0].value().how);
  }
  EXPECT_EQ(choices[0].value().algorithm, Algorithm::kNative);  // which threads prefer
  EXPECT_NE(choices[0].value().how.find("ms an update"), std::string::npos) << choices[0].value().how;
}

TEST(Choice, LeavesATopologyThatWasNamed) {
  const auto choices = ChooseAmong(2, Perceptron(), Algorithm::kTree);
  ASSERT_TRUE(choices[0].ok()) << choices[0].error().text;
  EXPECT_EQ(choices[0].value().algorithm, Algorithm::kTree);
}

TEST(Choice, ThereIsNoneForTouchedRows) {
  model::ModelConfig config;
  config.features = 100;
  const auto choices = ChooseAmong(2, config, Algorithm::kAuto);
  ASSERT_TRUE(choices[1].ok()) << choices[1].error().text;
  EXPECT_EQ(choices[1].value().algorithm, Algorithm::kAuto);
}

TEST(Choice, IsReadAsItWasWritten) {
  const Choice choice{.algorithm = Algorithm::kHalving, .bucket_bytes = 12345, .how = {}};
  const auto again = Choice::FromText(choice.ToText());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().algorithm, choice.algorithm);
  EXPECT_EQ(again.value().bucket_bytes, choice.bucket_bytes);
  for (const std::string text : {"", "ring", "ring ", "ring 0", "ring 7x", "rang 7"})
    EXPECT_FALSE(Choice::FromText(text).ok()) << text;
}

// A run that is resumed keeps what it chose, whatever would be chosen now, and ends with the same bytes.
TEST(Choice, IsKeptByTheCheckpoint) {
  data::World world(2);
  base::SystemClock clock;
  const base::Env around_it = world.env();
  const base::Env env{around_it.files, clock, around_it.log, around_it.executor, around_it.faults};
  optimize::HeapMemory memory;
  base::StringFile file;
  ASSERT_TRUE(data::Generate({.kind = "sea", .rows = 600}, file).ok());
  Job job;
  job.input.paths = {world.Write("sea.csv", file.text)};
  job.learning.model =
      world.Write("net.toml", "input = \"data\"\nlayers = [{dense = 8, activation = \"relu\"}, {dense = 1}]\n");
  job.together.workers = 2;
  job.together.strategy.kind = "auto";
  job.epochs = 3;
  job.batch = 20;
  const auto whole = train::Run(env, memory, job);
  ASSERT_TRUE(whole.ok()) << whole.error().text;
  ASSERT_TRUE(whole.value().choice.has_value());
  EXPECT_EQ(whole.value().job.together.strategy.kind, "allreduce");
  EXPECT_EQ(whole.value().topology.chosen, "simulated");

  job.checkpoint = world.Path("run.ckpt");
  std::atomic<bool> stop = false;
  Around around;
  around.stop = &stop;
  around.progress = [&](const Progress& progress) { stop = progress.rows > 700; };
  const auto stopped = train::Run(env, memory, job, std::move(around));
  ASSERT_FALSE(stopped.ok());
  ASSERT_EQ(stopped.error().code, Code::kStopped) << stopped.error().text;
  const auto resumed = train::Run(env, memory, job);
  ASSERT_TRUE(resumed.ok()) << resumed.error().text;
  EXPECT_NE(resumed.value().choice->how.find("resumed"), std::string::npos) << resumed.value().choice->how;
  if (resumed.value().choice->ToText() == whole.value().choice->ToText()) {  // buckets are measured
    EXPECT_EQ(resumed.value().trained.parameters.Checksum(), whole.value().trained.parameters.Checksum());
  }
}

}  // namespace
}  // namespace freshet::train
