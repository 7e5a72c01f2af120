#include "fabric/fabric.h"

#include "base/check.h"

namespace freshet::fabric {

Result<Transfer> Fabric::StartHollowSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow) {
  CHECK(hollow == 0);
  return StartSend(to, tag, bytes);
}

Result<void> Fabric::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  TRY(Wait(TRY(StartSend(to, tag, bytes))));
  return {};
}

Result<Arrived> Fabric::Receive(From from, Tag tag, std::span<std::byte> into) {
  return Wait(TRY(StartReceive(from, tag, into)));
}

}  // namespace freshet::fabric
