#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/tcp/descriptor.h"

namespace freshet::fabric::tcp {

// Small helpers around sockets, used while a group comes together. All sockets are non-blocking; what waits here does
// so in poll until a deadline and gives kTimeout then.

// A moment by which something has to be done.
class Deadline {
 public:
  Deadline(const base::Clock& clock, base::Clock::Duration after) : clock_(&clock), end_(clock.Now() + after) {}
  int LeftMs() const;  // rounded up, for poll; 0 when it has passed
  bool Passed() const { return clock_->Now() >= end_; }

 private:
  const base::Clock* clock_;
  base::Clock::Duration end_;
};

struct Address {
  std::string host;
  int port = 0;
};
Result<Address> ParseAddress(std::string_view text);  // "host:port", "[::1]:port"

Result<Descriptor> Listen(const Address& at);
// One attempt to connect.
Result<Descriptor> Connect(const Address& to, const Deadline& deadline);
// Sends at once, waits long, notices vanished hosts; for sockets of members.
void Tune(const Descriptor& socket);

Address LocalAddress(const Descriptor& socket);  // in numbers

Result<void> SendAll(const Descriptor& socket, std::string_view bytes, const Deadline& deadline);
// Exactly `bytes`. While waiting also watches a second socket (if open) and fails when that is closed.
Result<std::string> ReceiveAll(const Descriptor& socket, std::size_t bytes, const Deadline& deadline,
                               const Descriptor* watched = nullptr);
// Whether the other side has closed, or reset; takes nothing from the socket.
bool Closed(const Descriptor& socket);

}  // namespace freshet::fabric::tcp
