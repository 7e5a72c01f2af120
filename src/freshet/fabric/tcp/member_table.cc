#include "fabric/tcp/member_table.h"

#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

constexpr std::size_t kEntryBytes = 512;  // the most that one member takes

}  // namespace

std::string EncodeTable(const std::vector<Address>& members) {
  std::string body;
  for (const Address& member : members) {
    PutText(body, member.host);
    PutNumber(body, static_cast<std::uint32_t>(member.port));
  }
  std::string table;
  PutText(table, body);
  return table;
}

Result<std::size_t> TableBytes(std::string_view head, std::size_t members) {
  WireReader reader(head);
  const std::size_t bytes = reader.Number<std::uint32_t>();
  if (!reader.AtEnd() || bytes > kEntryBytes * members)
    return Error{Code::kBadInput, Str("rank 0's list of ", members, " members promises ", bytes, " bytes, it may have ",
                                      kEntryBytes * members)};
  return bytes;
}

Result<std::vector<Address>> DecodeTable(std::string_view body, std::size_t members) {
  WireReader reader(body);
  std::vector<Address> table(members);
  for (Address& address : table) {
    address.host = reader.Text();
    address.port = static_cast<int>(reader.Number<std::uint32_t>() & 0xffff);
  }
  if (!reader.AtEnd()) return Error{Code::kBadInput, "rank 0's list of members is malformed"};
  return table;
}

}  // namespace freshet::fabric::tcp
