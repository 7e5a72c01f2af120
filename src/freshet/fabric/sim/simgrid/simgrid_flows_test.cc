#include "fabric/sim/simgrid/simgrid_flows.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "base/random.h"
#include "base/str.h"
#include "fabric/sim/star_flows.h"

namespace freshet::fabric::sim {
namespace {

using Duration = base::Clock::Duration;

Platform Of(const std::string& topology, const std::string& shape, int nodes) {
  Platform platform;
  platform.topology = topology;
  platform.shape = shape;
  platform.nodes = nodes;
  platform.link_gbit = 8;  // a byte in a nanosecond
  platform.share = 1;
  platform.link_us = 10;
  return platform;
}

// SimGrid has one platform in a process: every test is a process of its own.
void InAProcess(const std::function<void()>& test) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    test();
    std::fflush(nullptr);  // what failed
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

struct Sent {
  int from = 0, to = 0;
  double bytes = 0;
  Duration at{};
};

// When each of these has left.
std::vector<double> LeftAt(Flows& flows, const std::vector<Sent>& all) {
  std::vector<double> left(all.size(), -1);
  Duration now{0};
  std::size_t next = 0, done = 0;
  while (done < all.size()) {
    for (; next < all.size() && all[next].at <= now; ++next)
      flows.Start(all[next].from, all[next].to, all[next].bytes, [&, next] {
        left[next] = 0;
        ++done;
      });
    const std::vector<double> before = left;
    now = flows.Advance(next < all.size() ? all[next].at : Duration::max());
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i] == 0 && before[i] < 0) left[i] = base::Seconds(now);
  }
  return left;
}

TEST(SimGridFlows, OfAStarAreThoseOfOurOwn) {
  InAProcess([] {
    const Platform platform = Of("star", "", 6);
    const auto theirs = MakeSimGridFlows(platform).value();
    StarFlows ours(platform);
    EXPECT_EQ(theirs->Latency(0, 5), ours.Latency(0, 5));
    base::Random random(1, "flows");
    for (int round = 0; round < 20; ++round) {
      std::vector<Sent> all;
      Duration at{0};
      for (int i = 0; i < 25; ++i) {
        const int from = static_cast<int>(random.Below(6)), to = static_cast<int>((from + 1 + random.Below(5)) % 6);
        all.push_back({from, to, 1e4 + static_cast<double>(random.Below(10'000'000)), at});
        at += Duration(random.Below(3'000'000));
      }
      theirs->Restart();
      ours.Restart();
      const std::vector<double> a = LeftAt(*theirs, all), b = LeftAt(ours, all);
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-3 * b[i]) << round << " " << i;
    }
  });
}

TEST(SimGridFlows, OfAFatTreeShareTheLinksUpOfALeaf) {
  InAProcess([] {
    const auto flows = MakeSimGridFlows(Of("fat-tree", "4:1", 8)).value();
    // Four nodes of a leaf send to the four of the other, over its one link up; then within the leaf.
    std::vector<Sent> across, within;
    for (int node = 0; node < 4; ++node) {
      across.push_back({node, node + 4, 1e8, {}});
      within.push_back({node, (node + 1) % 4, 1e8, {}});
    }
    for (const double left : LeftAt(*flows, across)) EXPECT_NEAR(left, 0.4, 0.001);
    double most = 0;
    for (const Flows::Link& link : flows->Carried()) most = std::max(most, link.bytes);
    EXPECT_EQ(most, 4e8);
    flows->Restart();
    for (const double left : LeftAt(*flows, within)) EXPECT_NEAR(left, 0.1, 0.001);
    EXPECT_GT(flows->Latency(0, 4), flows->Latency(0, 1));
  });
}

TEST(SimGridFlows, OfRegionsGoOverTheirTrunks) {
  InAProcess([] {
    Platform platform = Of("regions", "2", 4);
    platform.trunk_gbit = 0.8;
    platform.trunk_ms = 30;
    const auto flows = MakeSimGridFlows(platform).value();
    EXPECT_NEAR(base::Seconds(flows->Latency(0, 3)), 0.030, 0.001);
    EXPECT_LT(base::Seconds(flows->Latency(0, 1)), 0.001);
    const std::vector<double> left = LeftAt(*flows, {{0, 1, 1e8, {}}, {2, 1, 1e7, {}}, {3, 0, 1e7, {}}});
    EXPECT_NEAR(left[0], 0.1, 0.02);
    EXPECT_NEAR(left[1], 0.2, 0.001);  // two share a trunk of a tenth of a link
    EXPECT_NEAR(left[2], 0.2, 0.001);
  });
}

TEST(SimGridFlows, AConnectionHasNoMoreUnderWayThanItsWindow) {
  InAProcess([] {
    Platform platform = Of("regions", "2", 4);
    platform.trunk_ms = 50;
    platform.window_mb = 1;
    const auto flows = MakeSimGridFlows(platform).value();
    EXPECT_NEAR(LeftAt(*flows, {{0, 3, 1e7, {}}})[0], 1, 0.01);  // a window for each time there and back
  });
}

TEST(SimGridFlows, OfToriAndDragonfliesGetThere) {
  for (const auto& [topology, shape] : {std::pair("torus", "2x3x2"), std::pair("dragonfly", "2x2x3x1")})
    InAProcess([&] {
      const auto flows = MakeSimGridFlows(Of(topology, shape, 12)).value();
      for (int to = 1; to < 12; ++to) {
        flows->Restart();
        EXPECT_NEAR(LeftAt(*flows, {{0, to, 1e8, {}}})[0], 0.1, 0.001) << topology << " " << to;
        EXPECT_GE(flows->Latency(0, to), std::chrono::microseconds(10));
      }
    });
}

TEST(SimGridFlows, AreOfOnePlatformInAProcess) {
  InAProcess([] {
    const auto first = MakeSimGridFlows(Of("star", "", 2));
    EXPECT_TRUE(first.ok());
    EXPECT_FALSE(MakeSimGridFlows(Of("star", "", 3)).ok());
  });
}

}  // namespace
}  // namespace freshet::fabric::sim
