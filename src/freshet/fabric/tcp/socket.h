#pragma once

#include <poll.h>

#include <atomic>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "fabric/tcp/conduit.h"

namespace freshet::fabric::tcp {

// Small helpers around sockets, used while a group comes together. All sockets are non-blocking; what waits here does
// so until a deadline and gives kTimeout then.

// A moment by which something has to be done.
class Deadline {
 public:
  // Passes earlier when `stop` is set meanwhile.
  Deadline(const base::Clock& clock, base::Clock::Duration after, const std::atomic<bool>* stop = nullptr)
      : clock_(&clock), end_(clock.Now() + after), stop_(stop) {}
  // The deadline, or a moment not far off where it may pass earlier: then one has to look again.
  base::Clock::Duration Next() const;
  const base::Clock& clock() const { return *clock_; }
  bool Passed() const { return clock_->Now() >= end_ || (stop_ != nullptr && stop_->load()); }

 private:
  const base::Clock* clock_;
  base::Clock::Duration end_;
  const std::atomic<bool>* stop_;
};

// Waits by a clock until one of these is ready (its revents then say for what), or until the clock shows `end`.
void Await(std::span<pollfd> sockets, const base::Clock& clock, base::Clock::Duration end);

struct Address {
  std::string host;
  int port = 0;
};
Result<Address> ParseAddress(std::string_view text);  // "host:port", "[::1]:port"

Result<base::Descriptor> Listen(const Address& at);
// One attempt to connect.
Result<base::Descriptor> Connect(const Address& to, const Deadline& deadline);
// The same, begun: it is connected when it can be written to. To an address in numbers.
Result<base::Descriptor> StartConnect(const Address& to);
// Sends at once, waits long, notices vanished hosts; for sockets of members.
void Tune(const Conduit& conduit);

Address LocalAddress(int socket);  // in numbers

// What waits for the other side also watches a second connection, if given, and fails when that is closed.
Result<void> ShakeHands(Conduit& conduit, const Deadline& deadline, const Conduit* watched = nullptr);
Result<void> SendAll(Conduit& conduit, std::string_view bytes, const Deadline& deadline);
// Exactly `bytes`.
Result<std::string> ReceiveAll(Conduit& conduit, std::size_t bytes, const Deadline& deadline,
                               const Conduit* watched = nullptr);
// Whether the other side has closed, or reset; takes nothing from the socket.
bool Closed(const Conduit& conduit);

}  // namespace freshet::fabric::tcp
