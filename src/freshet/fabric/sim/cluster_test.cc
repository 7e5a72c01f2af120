#include "fabric/sim/cluster.h"

#include <gtest/gtest.h>

#include "base/hollow.h"
#include "fabric/collectives/collectives.h"
#include "fabric/sim/star_flows.h"

namespace freshet::fabric::sim {
namespace {

// A byte in a nanosecond, and computing on messages costs nothing.
Platform Plain(int nodes) {
  Platform platform;
  platform.nodes = nodes;
  platform.cores = 2;
  platform.link_gbit = 8;
  platform.share = 1;
  platform.link_us = 10;
  platform.message_us = 0;
  platform.copy_gb_s = platform.add_gb_s = platform.codec_gb_s = 1e9;
  return platform;
}

double SecondsOf(const ClusterOptions& options, const Cluster::Body& body) {
  StarFlows flows(options.platform);
  Cluster cluster(options, flows);
  cluster.Run(body);
  return base::Seconds(cluster.now());
}

void SendHundredMegabytes(Cluster::Member& member) {
  const auto fabric = member.Connect();
  std::vector<float> values(25'000'000);
  if (member.rank() == 0)
    EXPECT_TRUE(fabric->Send(1, 1, AsBytes(values)).ok());
  else
    EXPECT_TRUE(fabric->Receive(0, 1, AsBytes(values)).ok());
}

TEST(StarFlows, ShareAsFairlyAsCanBe) {
  StarFlows flows(Plain(4));
  std::vector<double> left(3);
  Flows::Duration now{};
  const auto start = [&](int from, int to, double bytes, std::size_t i) {
    flows.Start(from, to, bytes, [&left, i] { left[i] = 1; });
  };
  start(0, 1, 2e9, 0);  // these two share the way out of 0
  start(0, 2, 2e9, 1);
  start(3, 2, 3e9, 2);  // and this one has what the second leaves of the way into 2
  std::vector<double> at;
  while ((now = flows.Advance(Flows::Duration::max())) != Flows::Duration::max()) at.push_back(base::Seconds(now));
  ASSERT_GE(at.size(), 2u);
  EXPECT_NEAR(at[0], 4, 1e-6);      // 2 GB at half a byte each
  EXPECT_NEAR(at.back(), 5, 1e-6);  // 2 of its 3 GB by then, and the third alone
  EXPECT_EQ(left, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(flows.Carried().size(), 4u);
}

TEST(Cores, ShareWhatThereIsToDo) {
  const double alone =
      SecondsOf({.platform = Plain(1), .workers_per_node = 1}, [](Cluster::Member& member) { member.cores().Work(1); });
  EXPECT_NEAR(alone, 1, 1e-6);
  const double four = SecondsOf({.platform = Plain(1), .workers_per_node = 4},
                                [](Cluster::Member& member) { member.cores().Work(member.rank() == 0 ? 2 : 1); });
  EXPECT_NEAR(four, 3, 1e-6);  // four on two cores for two seconds, and what is left of one alone
  const double slow = SecondsOf({.platform = Plain(1), .workers_per_node = 1, .slow_node = 0, .slow_times = 2.5},
                                [](Cluster::Member& member) { member.cores().Work(1, 2); });
  EXPECT_NEAR(slow, 2.5, 1e-6);
}

TEST(Cluster, AMessageTakesItsLatenciesAndItsBytes) {
  const double seconds = SecondsOf({.platform = Plain(2), .nodes = 2}, SendHundredMegabytes);
  EXPECT_NEAR(seconds, 0.1 + 3 * 20e-6, 30e-6);  // it is offered, asked for and sent
}

TEST(Cluster, WorkersOfANodeUseItsMemoryNotItsLink) {
  ClusterOptions options{.platform = Plain(1), .nodes = 1, .workers_per_node = 2};
  options.platform.local_gb_s = 10;
  const double seconds = SecondsOf(options, SendHundredMegabytes);
  EXPECT_NEAR(seconds, 0.01, 0.001);
}

// Hollow values take the time of real ones, by every algorithm, and real ones are summed.
TEST(Cluster, ValuesThatAreNotThereTakeTheTimeOfThoseThatAre) {
  for (const std::string& name : AlgorithmNames()) {
    if (name == "native" || name == "auto") continue;
    for (const std::size_t count : {100, 5'000, 400'000}) {
      SCOPED_TRACE(name + " " + std::to_string(count));
      const auto run = [&](bool hollow) {
        ClusterOptions options{.platform = Plain(5), .nodes = 5, .workers_per_node = 2};
        options.platform.message_us = 5;
        options.platform.copy_gb_s = options.platform.add_gb_s = 4;
        return SecondsOf(options, [&](Cluster::Member& member) {
          const auto fabric = member.Connect();
          Collectives collectives(*fabric, {.algorithm = AlgorithmOf(name).value()});
          std::vector<float> real(hollow ? 0 : count, 1.0f);
          const auto summed = collectives.AllReduce(hollow ? base::HollowFloats(count) : std::span(real));
          EXPECT_TRUE(summed.ok()) << summed.error().text;
          if (!hollow) {
            EXPECT_EQ(real, std::vector<float>(count, 10.0f));
          }
        });
      };
      EXPECT_EQ(run(true), run(false));
    }
  }
}

}  // namespace
}  // namespace freshet::fabric::sim
