#include "fabric/tcp/member_table.h"

#include <gtest/gtest.h>

#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

const std::vector<Address> kMembers = {{"10.0.0.1", 4000}, {"::1", 65535}, {"", 0}};

TEST(MemberTable, ComesBackAsItWas) {
  const std::string table = EncodeTable(kMembers);
  const std::string_view head = std::string_view(table).substr(0, kTableHeadBytes);
  ASSERT_EQ(TableBytes(head, 3).value(), table.size() - kTableHeadBytes);
  const auto decoded = DecodeTable(std::string_view(table).substr(kTableHeadBytes), 3);
  ASSERT_TRUE(decoded.ok()) << decoded.error().text;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(decoded.value()[i].host, kMembers[i].host);
    EXPECT_EQ(decoded.value()[i].port, kMembers[i].port);
  }
}

TEST(MemberTable, AbsurdLengthsAreRefusedBeforeAnythingIsAllocated) {
  for (const std::uint32_t bytes : {3u * 512 + 1, 1u << 31, ~0u}) {
    std::string head;
    PutNumber(head, bytes);
    const auto refused = TableBytes(head, 3);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text.find("promises"), std::string::npos) << refused.error().text;
  }
  std::string body;  // and so are those within
  PutNumber(body, ~0u);
  EXPECT_FALSE(DecodeTable(body, 3).ok());
}

TEST(MemberTable, CutShortOrWithMoreBehindItIsRefused) {
  const std::string body = EncodeTable(kMembers).substr(kTableHeadBytes);
  for (std::size_t size = 0; size < body.size(); ++size) EXPECT_FALSE(DecodeTable(body.substr(0, size), 3).ok());
  EXPECT_FALSE(DecodeTable(body + "x", 3).ok());
  EXPECT_FALSE(DecodeTable(body, 4).ok());
}

}  // namespace
}  // namespace freshet::fabric::tcp
