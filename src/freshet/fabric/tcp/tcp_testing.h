#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "fabric/tcp/tcp_fabric.h"

namespace freshet::fabric {

inline TcpOptions TestOptions(int rank, int size) {
  TcpOptions options;
  options.rank = rank;
  options.size = size;
  options.rendezvous = "127.0.0.1:0";
  options.job = "a test";
  options.token.fill(std::byte{0x5a});
  options.host = Str("host-", rank);
  return options;
}

using Members = std::vector<Result<std::unique_ptr<TcpFabric>>>;

// Connects a group within this process, each member on a thread of its own; `change` may alter the options.
inline Members ConnectAll(int size, base::Clock& clock, const std::function<void(TcpOptions&)>& change = {}) {
  Members members;
  for (int rank = 0; rank < size; ++rank) members.emplace_back(Error{Code::kInvalid, "not connected"});
  std::promise<int> listening;
  const std::shared_future<int> port = listening.get_future().share();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      TcpOptions options = TestOptions(rank, size);
      if (rank == 0)
        options.listening = [&](int number) -> Result<void> {
          listening.set_value(number);
          return {};
        };
      if (rank > 0) options.rendezvous = Str("127.0.0.1:", port.get());
      if (change) change(options);
      members[static_cast<std::size_t>(rank)] = TcpFabric::Connect(options, clock);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return members;
}

}  // namespace freshet::fabric
