#include "fabric/sim/platform.h"

#include <gtest/gtest.h>

namespace freshet::fabric::sim {
namespace {

std::string Refusal(std::string_view text) {
  const auto platform = Platform::Read(text, "mine.toml");
  return platform.ok() ? "" : platform.error().text;
}

TEST(Platform, ThoseThatAreKnownCanBe) {
  for (const std::string& name : Platform::KnownNames()) {
    const auto platform = Platform::Known(name);
    ASSERT_TRUE(platform.ok()) << platform.error().text;
    EXPECT_EQ(platform.value().name, name);
    EXPECT_FALSE(platform.value().about.empty());
    const auto again = Platform::Read(platform.value().ToToml(), name);
    ASSERT_TRUE(again.ok()) << again.error().text;
    EXPECT_EQ(again.value().ToToml(), platform.value().ToToml());
  }
  const Platform mare_nostrum = Platform::Known("marenostrum3").value();
  EXPECT_EQ(mare_nostrum.nodes, 3056);
  EXPECT_EQ(mare_nostrum.cores, 16);
  EXPECT_EQ(mare_nostrum.link_gbit, 40);
  EXPECT_NE(Platform::Known("marenostrum4").error().text.find("expected ethernet-10g, laptop-cluster, marenostrum3"),
            std::string::npos);
}

TEST(Platform, RefusalsSayWhatCannotBe) {
  EXPECT_EQ(Refusal("nodes = 4\n"), "");
  const std::pair<const char*, const char*> wrong[] = {
      {"nodes = 0\n", "nodes"},
      {"nodes = -3\n", "nodes"},
      {"nodes = 10000000\n", "nodes"},
      {"link-gbit = 0\n", "link-gbit"},
      {"link-us = -1\n", "link-us"},
      {"nods = 4\n", "did you mean"},
      {"nodes = \"many\"\n", "nodes"},
      {"nodes = [\n", "mine.toml:"},
      {"topology = \"mesh\"\n", "topology"},
      {"topology = \"torus\"\nshape = \"2x2\"\nnodes = 5\n", "has room for 4 nodes, nodes are 5"},
      {"topology = \"torus\"\nshape = \"2x0\"\n", "shape '2x0' of a torus: expected its sides, like 4x4x8"},
      {"topology = \"fat-tree\"\n", "expected nodes of a leaf switch and its links up, like 18:18"},
      {"topology = \"dragonfly\"\nshape = \"2x2\"\n", "like 4x2x4x2"},
      {"topology = \"dragonfly\"\nshape = \"3x2x2x1\"\n", "at most as many groups as routers"},
      {"topology = \"regions\"\nshape = \"3\"\nnodes = 2\n", "a node in each"},
      {"shape = \"3\"\n", "of a star: expected none"},
      {"efficiency = [\"0.5\"]\n", "efficiency '0.5': expected rows=share"},
      {"efficiency = [\"8=0.5\", \"4=0.6\"]\n", "rows ascending"},
      {"efficiency = [\"8=1.5\"]\n", "at most 1"},
  };
  for (const auto& [text, says] : wrong)
    EXPECT_NE(Refusal(text).find(says), std::string::npos) << text << Refusal(text);
}

TEST(Platform, EfficiencyLiesBetweenWhatIsGiven) {
  Platform platform;
  platform.efficiency = {"1=0.1", "100=0.5"};
  EXPECT_DOUBLE_EQ(platform.EfficiencyAt(0.5), 0.1);
  EXPECT_DOUBLE_EQ(platform.EfficiencyAt(10), 0.3);
  EXPECT_DOUBLE_EQ(platform.EfficiencyAt(1000), 0.5);
}

}  // namespace
}  // namespace freshet::fabric::sim
