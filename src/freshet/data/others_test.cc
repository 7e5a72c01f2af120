#include "data/others.h"

#include <barrier>
#include <thread>

#include "data/world_testing.h"

namespace freshet::data {
namespace {

// Readers who sit at one table: each is a thread.
class Table {
 public:
  explicit Table(std::size_t seats) : said_(seats), barrier_(static_cast<std::ptrdiff_t>(seats)) {}

  class Seat final : public Others {
   public:
    Seat(Table& table, std::size_t rank) : table_(table), rank_(rank) {}
    Result<std::vector<std::string>> Tell(std::string_view, const std::string& mine) override {
      table_.said_[rank_] = mine;
      table_.barrier_.arrive_and_wait();
      auto all = table_.said_;
      table_.barrier_.arrive_and_wait();
      return all;
    }
    std::string Name(std::size_t rank) const override { return Str("rank ", rank); }
    Error Refuse(std::string why) override { return {Code::kInvalid, std::move(why)}; }

   private:
    Table& table_;
    const std::size_t rank_;
  };

  // Opens a reader of each text at the same time and returns what each made of it, or the error.
  static std::vector<Result<Description>> Open(World& world, const std::vector<std::string>& texts) {
    Table table(texts.size());
    std::vector<Result<Description>> made(texts.size(), Description());
    std::vector<std::jthread> readers;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      const std::string path = world.Write(Str("share", rank), texts[rank]);
      readers.emplace_back([&, rank, path] {
        Seat seat(table, rank);
        InputOptions input;
        input.others = &seat;
        Description description;
        const auto reader = Reader::Open(world.env(), FilesAt({path}), input, description);
        made[rank] = reader.ok() ? Result<Description>(description) : reader.error();
      });
    }
    readers.clear();
    return made;
  }

 private:
  std::vector<std::string> said_;
  std::barrier<> barrier_;
};

TEST(Others, ReadersOfSharesInferOneDescriptionOfAllLabelsAndMoments) {
  World world;
  const std::vector<std::string> shares = {"x,y\n1,a\n3,a\n", "x,y\n5,b\n", "x,y\n7,c\n9,c\n11,c\n"};
  const auto made = Table::Open(world, shares);
  Description whole;
  const std::string all = "x,y\n1,a\n3,a\n5,b\n7,c\n9,c\n11,c\n";
  ASSERT_TRUE(Reader::Open(world.env(), FilesAt({world.Write("whole", all)}), {}, whole).ok());
  for (const auto& one : made) {
    ASSERT_TRUE(one.ok()) << one.error().text;
    EXPECT_EQ(one.value().ToJson(), whole.ToJson());
    EXPECT_EQ(one.value().labels.names, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(one.value().moments.Save(), made[0].value().moments.Save());
    EXPECT_EQ(one.value().moments.rows(), 6);
    EXPECT_EQ(one.value().moments.Save()[2], 6);  // the mean
  }
}

TEST(Others, ASideThatOneShareDoesNotShowIsTakenFromTheOthersNotGuessed) {
  World world;
  for (const auto& one : Table::Open(world, {"1 1:2\n1 2:1\n", "0 0:1\n1 3:1\n"})) {
    ASSERT_TRUE(one.ok()) << one.error().text;
    EXPECT_EQ(one.value().labels.names, (std::vector<std::string>{"0", "1"}));
    EXPECT_EQ(one.value().index_base, 0) << "one share has a feature 0";
  }
}

TEST(Others, WhatContradictsEachOtherIsRefusedByAllWithTheRankNamed) {
  World world;
  const auto refused = [&](const std::vector<std::string>& texts, const std::string& piece) {
    for (const auto& one : Table::Open(world, texts)) {
      ASSERT_FALSE(one.ok());
      EXPECT_EQ(one.error().code, Code::kInvalid);
      for (const std::string& part : {std::string("rank 1"), piece})
        EXPECT_NE(one.error().text.find(part), std::string::npos) << part << " is not in: " << one.error().text;
    }
  };
  refused({"x,y\n1,0\n2,1\n", "1 1:2\n-1 2:2\n"}, "libsvm");
  refused({"x,y\n1,0\n2,1\n", "z,y\n1,0\n2,1\n"}, "\"z\"");
  refused({"x,y\n1,0\n2,1\n", "x,y\nred,0\n2,1\n"}, "a category");
  refused({"x,y\n1,0\n2,1\n", "x,z,y\n1,1,0\n2,1,1\n"}, "columns");
}

}  // namespace
}  // namespace freshet::data
