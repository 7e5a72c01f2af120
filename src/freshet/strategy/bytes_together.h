#pragma once

#include <cstdint>
#include <string>

#include "fabric/collectives/collectives.h"

namespace freshet::strategy {

// Bytes of which only `from` knows how many they are.
inline Result<void> BroadcastBytes(fabric::Collectives& collectives, std::string& bytes, int from) {
  std::uint64_t size = bytes.size();
  TRY(collectives.Broadcast(std::as_writable_bytes(std::span(&size, 1)), from));
  bytes.resize(size);
  return collectives.Broadcast(std::as_writable_bytes(std::span(bytes.data(), bytes.size())), from);
}

}  // namespace freshet::strategy
