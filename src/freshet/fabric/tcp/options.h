#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/fabric.h"

namespace freshet::fabric::tcp {

// The secret that makes a process a member of a job; 256 random bits.
using Token = std::array<std::byte, 32>;

// Makes a new token in a file that only its owner can read (mode 0600), which must not exist yet.
Result<void> MakeTokenFile(const std::string& path);
// Reads one; refuses a file that others can read.
Result<Token> ReadTokenFile(const std::string& path);

}  // namespace freshet::fabric::tcp

namespace freshet::fabric {

struct TcpOptions {
  int rank = 0;
  int size = 1;
  std::string rendezvous;  // "host:port" where rank 0 listens; an IPv6 address in brackets
  std::string job;         // members of another job are refused
  tcp::Token token{};
  std::uint64_t generation = 0;  // members of another generation are refused

  std::string bind_address;  // where others reach this member; empty: the address by which it reaches rank 0
  std::string host;          // what people call this machine; empty: its own name

  base::Clock::Duration connect_timeout = std::chrono::seconds(30);  // for the whole group to come together
  base::Clock::Duration heartbeat = std::chrono::milliseconds(250);
  int heartbeat_misses = 12;           // a member silent for this many is lost
  OnLoss on_loss = OnLoss::kEndGroup;  // the same in all members
  base::Clock::Duration wait_timeout = std::chrono::minutes(10);
  base::Clock::Duration spin = std::chrono::microseconds(50);  // who waits looks this long before it sleeps; only
                                                               // where there are no more members than cores

  bool shared_memory = true;         // long messages between processes of one host
  std::size_t ring_bytes = 2 << 20;  // of shared memory, for each pair and direction; a power of two
  bool tls = false;      // 1.3, by keys from the token, for what travels through sockets; the same in all members
  bool checksum = true;  // of payloads that travel through sockets without TLS; the same in all members
  std::uint64_t max_message_bytes = std::uint64_t{16} << 30;

  const std::atomic<bool>* stop = nullptr;  // set from elsewhere: do not wait for the group to come together

  // Told the port where rank 0 listens, before anybody is waited for: for a rendezvous with port 0. Its error is
  // Connect's.
  std::function<Result<void>(int port)> listening;

  Result<void> Validate() const;
};

}  // namespace freshet::fabric
