#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fabric/tcp/socket.h"

namespace freshet::fabric::tcp {

// The list of members that rank 0 gives to all once they have proven themselves: u32 bytes of what follows, then for
// each member, by rank, where it listens (text, u32 port).
inline constexpr std::size_t kTableHeadBytes = 4;

std::string EncodeTable(const std::vector<Address>& members);
// The bytes that follow the head; kBadInput when so many members cannot need them.
Result<std::size_t> TableBytes(std::string_view head, std::size_t members);
Result<std::vector<Address>> DecodeTable(std::string_view body, std::size_t members);

}  // namespace freshet::fabric::tcp
