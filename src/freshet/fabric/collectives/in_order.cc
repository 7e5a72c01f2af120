#include "fabric/collectives/in_order.h"

#include <vector>

#include "fabric/collectives/transfers.h"

namespace freshet::fabric {

Result<void> ExchangeInOrder(Fabric& fabric, Tag tag, std::string_view doing,
                             const std::function<std::span<const std::byte>(int to)>& outgoing,
                             const std::function<Result<void>(int from, std::span<const std::byte> bytes)>& visit) {
  const int rank = fabric.rank(), size = fabric.size();
  Transfers transfers(fabric, tag, doing);
  std::vector<Transfers::Handle> borrows(static_cast<std::size_t>(size));
  for (int from = 0; from < size; ++from)
    if (from != rank) borrows[static_cast<std::size_t>(from)] = TRY(transfers.Borrow(from));
  for (int i = 1; i < size; ++i) {
    const int to = (rank + i) % size;  // each begins with another, so that nobody is sent to by all at once
    TRY(transfers.SendAny(to, outgoing(to)));
  }
  for (int from = 0; from < size; ++from) {
    const Transfers::Handle borrow = borrows[static_cast<std::size_t>(from)];
    const Arrived arrived = TRY(transfers.Wait(borrow));  // nothing, for this member's own place
    Result<void> visited = visit(from, arrived.view);
    if (from != rank) transfers.Release(borrow);
    if (!visited.ok()) {
      Error error = std::move(visited).error().While(Str("reading what rank ", from, " sent to rank ", rank));
      fabric.Abort(error);
      return error;
    }
  }
  return transfers.WaitAll();
}

}  // namespace freshet::fabric
