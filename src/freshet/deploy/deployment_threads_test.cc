// Deployments as a server uses them: one thread writes, one trains, others post and predict.

#include <atomic>
#include <bit>
#include <thread>

#include "base/clock.h"
#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

using std::chrono::milliseconds;

// The threads of a server around one deployment.
class Server {
 public:
  Server(World& world, DeploymentOptions options, model::TrainedModel start, int readers)
      : deployment_(world.Open(std::move(options), std::move(start), {readers, nullptr, &writer_, &trainer_}).value()) {
    threads_.emplace_back([this] {
      while (true) {
        const bool last = stop_.load();
        if (deployment_->Turn()) continue;
        if (last) break;
        writer_.Wait(milliseconds(5));
      }
    });
    threads_.emplace_back([this] {
      while (!stop_.load())
        if (!deployment_->background().RunOne()) trainer_.Wait(milliseconds(5));
    });
    threads_.emplace_back([this] {
      while (!stop_.load()) {
        deployment_->Sync();
        (void)deployment_->stats();
        std::this_thread::yield();
      }
    });
  }
  Deployment& deployment() { return *deployment_; }
  void Stop() {
    stop_ = true;
    writer_.Ring();
    trainer_.Ring();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  ~Server() { Stop(); }

 private:
  const base::SystemClock clock_;
  base::Bell writer_{clock_}, trainer_{clock_};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Deployment> deployment_;
  std::vector<std::thread> threads_;
};

// Everything a prediction could depend on.
std::uint64_t Checksum(const Edition& edition) {
  std::uint64_t sum = edition.parameters.Checksum() ^ (edition.version << 32);
  for (const double value : edition.description.moments.Save())
    sum = base::Hash64(sum ^ std::bit_cast<std::uint64_t>(value));
  for (const auto& dictionary : edition.description.dictionaries) sum ^= base::Hash64(dictionary.Serialize());
  return sum;
}

// Reads until told to stop: an edition does not change while it is read, and they only get newer.
void ReadOn(const Deployment& deployment, int slot, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& read) {
  std::uint64_t newest = 0;
  while (!stop) {
    const auto edition = deployment.Read(slot);
    const std::uint64_t before = Checksum(*edition);
    if (edition->version < newest) ADD_FAILURE() << "version " << edition->version << " after " << newest;
    newest = edition->version;
    std::this_thread::yield();
    if (Checksum(*edition) != before) ADD_FAILURE() << "version " << newest << " changed under its reader";
    ++read;
  }
}

class DeploymentThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EveryModel, DeploymentThreads, testing::Values(0, 1, 2));

TEST_P(DeploymentThreads, LiveAndRebuiltAreTheSameWhateverRanAtOnce) {
  constexpr int kPosters = 2, kReaders = 2;
  constexpr std::uint64_t kRows = 400;
  World world;
  DeploymentOptions options = world.Options("a");
  options.schedule.max_buffer_size = 30;
  options.version_rows = 100;
  options.versions_kept = 3;
  options.journal.segment_bytes = 8000;
  options.data.remembered_ids = 10'000;
  const auto start = [&] {
    return GetParam() == 0 ? world.Dense() : GetParam() == 1 ? world.Sparse() : world.Ratings();
  };
  std::vector<double> expected;
  {
    Server server(world, options, start(), kReaders);
    Deployment& deployment = server.deployment();
    base::SystemClock clock;
    const auto deadline = clock.Now() + std::chrono::seconds(60);
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> acknowledged{0}, read{0};
    std::vector<std::thread> posters, readers;
    for (int r = 0; r < kReaders; ++r) readers.emplace_back([&, r] { ReadOn(deployment, r, stop, read); });
    for (std::uint64_t p = 0; p < kPosters; ++p)
      posters.emplace_back([&, p] {
        for (std::uint64_t n = 0; n < kRows; ++n) {
          std::vector<data::NewName> names;
          data::Rows rows = World::Row(deployment.model(), p * kRows + n, &names);
          deployment.PostLearn(std::move(rows), std::move(names), {Str(p, " ", n)},
                               [&](const Result<LearnReply>& reply) {
                                 if (reply.ok()) acknowledged += reply.value().accepted;
                               });
          if (n == 300 && p == 0) deployment.PostRollBack(0, {}, true, [](const auto&) {});
          while (n % 100 == 50 && deployment.stats().iterations < n / 50 && clock.Now() < deadline) {
            deployment.PostIterate([](const auto&) {});  // so that there are some, however slow this machine is
            std::this_thread::sleep_for(milliseconds(1));
          }
        }
      });
    for (std::thread& poster : posters) poster.join();
    // What was acknowledged is soon seen.
    while ((acknowledged < kPosters * kRows || deployment.stats().learned < kPosters * kRows ||
            deployment.stats().version < deployment.stats().learned || deployment.stats().training) &&
           clock.Now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(acknowledged, kPosters * kRows);
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_GT(read, 0u);
    EXPECT_GT(deployment.stats().iterations, 3u);
    EXPECT_EQ(deployment.stats().roll_backs, 1u);
    server.Stop();
    deployment.Settle();  // what the trainer left
    expected = World::Fingerprint(deployment);
  }
  EXPECT_FALSE(world.Said("ERROR")) << Join(world.lines, "\n");
  EXPECT_EQ(World::Fingerprint(*world.Open(options, start()).value()), expected);
  world.KeepOnlyTheFirstVersion(options.directory);
  EXPECT_EQ(World::Fingerprint(*world.Open(options, start()).value()), expected);
}

TEST(DeploymentServer, AClientSoonSeesWhatItWasToldIsKept) {
  World world;
  Server server(world, world.Options("a"), world.Dense(), 1);
  Deployment& deployment = server.deployment();
  base::SystemClock clock;
  for (std::uint64_t n = 0; n < 150; ++n) {
    std::atomic<std::uint64_t> sequence{0};
    deployment.PostLearn(World::Row(deployment.model(), n), {}, {},
                         [&](const Result<LearnReply>& reply) { sequence = reply.value().last_sequence; });
    const auto deadline = clock.Now() + std::chrono::seconds(30);
    while ((sequence == 0 || deployment.Read(0)->version < sequence) && clock.Now() < deadline)
      std::this_thread::yield();
    ASSERT_GE(deployment.Read(0)->version, sequence);
  }
}

TEST(DeploymentServer, RefusesRowsWhenTooManyWait) {
  World world;
  DeploymentOptions options = world.Options("a");
  options.most_waiting = 10;
  const auto deployment = world.Open(options, world.Dense()).value();
  int busy = 0, kept = 0;
  const auto count = [&](const Result<LearnReply>& reply) {
    if (reply.ok())
      ++kept;
    else
      busy += reply.error().code == Code::kBusy ? 1 : 0;
  };
  for (std::uint64_t n = 0; n < 30; ++n) deployment->PostLearn(World::Row(deployment->model(), n), {}, {}, count);
  deployment->Settle();
  EXPECT_GE(kept, 10);
  EXPECT_EQ(kept + busy, 30);
  EXPECT_GT(busy, 15);
  deployment->PostLearn(World::Row(deployment->model(), 0), {}, {}, count);
  deployment->Settle();
  EXPECT_EQ(kept + busy, 31);
  EXPECT_EQ(deployment->stats().learned, static_cast<std::uint64_t>(kept));
}

}  // namespace
}  // namespace freshet::deploy
