#include "strategy/neighbour_copies.h"

#include <utility>

namespace freshet::strategy {

Result<void> NeighbourCopies::Exchange(fabric::Collectives& collectives, std::string mine) {
  fabric::Fabric& fabric = collectives.fabric();
  const int rank = fabric.rank(), size = fabric.size();
  if (size == 1) return {};
  // Behind those of the time before.
  TRY(collectives.Wait(collectives.Start([](fabric::Tag) { return Result<void>(); })));
  fabric.Post([&fabric, rank, size, tag = collectives.NextTag(), shelf = shelf_, sent = std::move(mine)] {
    const auto receiving = fabric.StartBorrow((rank + size - 1) % size, tag);
    const auto sending = fabric.StartSend((rank + 1) % size, tag, std::as_bytes(std::span(sent.data(), sent.size())));
    if (receiving.ok()) {
      if (const auto arrived = fabric.Wait(receiving.value()); arrived.ok()) {
        const auto view = arrived.value().view;
        {
          const base::Lock lock(shelf->mutex);
          shelf->copy.assign(reinterpret_cast<const char*>(view.data()), view.size());
        }
        fabric.Release(receiving.value());
      }
    }
    if (sending.ok()) (void)fabric.Wait(sending.value());  // a loss is noticed by the next step
  });
  return {};
}

std::string NeighbourCopies::copy() const {
  const base::Lock lock(shelf_->mutex);
  return shelf_->copy;
}

void NeighbourCopies::Forget() { shelf_ = std::make_shared<Shelf>(); }

}  // namespace freshet::strategy
