#include "model/network/remarks.h"

#include <gtest/gtest.h>

#include "model/network/description.h"
#include "model/network/zoo.h"

namespace freshet::model::network {
namespace {

std::vector<std::string> RemarksOn(std::string_view text, std::string_view loss) {
  std::vector<std::uint32_t> lines;
  const auto graph = GraphFromToml(text, {}, &lines);
  EXPECT_TRUE(graph.ok()) << graph.error().text;
  return Remarks(graph.value(), Infer(graph.value()).value(), loss, lines);
}

void ExpectOne(const std::vector<std::string>& remarks, const std::string& piece) {
  ASSERT_EQ(remarks.size(), 1u) << Join(remarks, "\n");
  EXPECT_NE(remarks[0].find(piece), std::string::npos) << "'" << piece << "' is not in: " << remarks[0];
}

TEST(Remarks, SayThatALossAppliesItsLinkItself) {
  const std::string text = "input = 4\nlayers = [\n  {dense = 3},\n  {softmax = true},\n]\n";
  ExpectOne(RemarksOn(text, "softmax"), "line 4, layer 'softmax2' (softmax): the softmax loss applies softmax itself");
  ExpectOne(RemarksOn(text, ""), "line 4");
  ExpectOne(RemarksOn("input = 4\nlayers = [{dense = 3, activation = \"softmax\"}]\n", "softmax"), "line 2");
  const std::string one = "input = 4\nlayers = [{dense = 1},\n{sigmoid = true}]\n";
  ExpectOne(RemarksOn(one, "logistic"), "line 3, layer 'sigmoid2' (sigmoid): the logistic loss applies sigmoid itself");
  EXPECT_TRUE(RemarksOn(one, "squared").empty());
  EXPECT_TRUE(RemarksOn("target = \"input\"\ninput = 4\nlayers = [{dense = 4, activation = \"sigmoid\"}]", "").empty());
}

TEST(Remarks, NameLayersThatNoHeadDependsOn) {
  const std::string text =
      "input = 4\nlayers = [\n  {dense = 3, name = \"a\"},\n  {dense = 5, name = \"b\"},\n  {dense = 2, from = "
      "\"a\"},\n]\n";
  ExpectOne(RemarksOn(text, "softmax"), "line 4, layer 'b' (dense): no head depends on it");
}

TEST(Remarks, NameAJoinOfOneLayer) {
  const std::string text =
      "input = 4\nlayers = [\n  {dense = 3, name = \"a\"},\n  {sum = [\"a\"]},\n  {dense = 2},\n]\n";
  ExpectOne(RemarksOn(text, "softmax"), "line 4, layer 'sum2' (sum): it joins one layer alone");
}

TEST(Remarks, HaveNothingToSayAboutTheZoo) {
  for (const ZooEntry& entry : Zoo()) {
    const auto graph = MakeZoo(entry.name, entry.input, entry.classes);
    ASSERT_TRUE(graph.ok());
    const auto remarks = Remarks(graph.value(), Infer(graph.value()).value(), "", {});
    EXPECT_TRUE(remarks.empty()) << entry.name << ": " << Join(remarks, "\n");
  }
}

}  // namespace
}  // namespace freshet::model::network
