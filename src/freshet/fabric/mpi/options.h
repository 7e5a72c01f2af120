#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

struct MpiOptions {
  std::uint64_t generation = 0;  // the same in all members
  std::string host = {};         // what people call this machine; empty: what MPI calls it

  base::Clock::Duration connect_timeout = std::chrono::seconds(30);  // for the whole group to come together
  base::Clock::Duration heartbeat = std::chrono::milliseconds(250);
  int heartbeat_misses = 12;           // a member silent for this many is lost
  OnLoss on_loss = OnLoss::kEndGroup;  // the same in all members; MpiFabric says what can be survived
  base::Clock::Duration wait_timeout = std::chrono::minutes(10);
  base::Clock::Duration spin = std::chrono::microseconds(50);  // who waits looks this long before it lets others run;
                                                               // only where there are no more members than cores
  std::uint64_t max_message_bytes = std::uint64_t{16} << 30;
};

}  // namespace freshet::fabric
