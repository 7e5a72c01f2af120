#include "fabric/fabric.h"

namespace freshet::fabric {

Result<void> Fabric::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  TRY(Wait(TRY(StartSend(to, tag, bytes))));
  return {};
}

Result<Arrived> Fabric::Receive(From from, Tag tag, std::span<std::byte> into) {
  return Wait(TRY(StartReceive(from, tag, into)));
}

}  // namespace freshet::fabric
