#include <algorithm>
#include <optional>
#include <vector>

#include "fabric/collectives/algorithms.h"
#include "fabric/collectives/collectives.h"

namespace freshet::fabric {
namespace {

constexpr Tag kUp = 0, kDown = 1;
constexpr std::size_t kAhead = 8;  // pieces that may be on their way up before one must have come down

// This member's neighbours in a binary tree over places counted from the root.
struct Neighbours {
  std::optional<int> parent;
  std::vector<int> children;
};

Neighbours NeighboursOf(const Transfers& transfers, int root) {
  const int n = transfers.size(), node = (transfers.me() - root + n) % n;
  Neighbours neighbours;
  if (node > 0) neighbours.parent = ((node - 1) / 2 + root) % n;
  for (const int child : {2 * node + 1, 2 * node + 2}) {
    if (child < n) neighbours.children.push_back((child + root) % n);
  }
  return neighbours;
}

std::size_t PiecesOf(std::size_t bytes, std::size_t piece_bytes) {
  const std::size_t each = std::max(sizeof(float), piece_bytes);
  return std::max<std::size_t>(1, (bytes + each - 1) / each);
}

template <class T>
std::span<T> Piece(std::span<T> things, std::size_t index, std::size_t count) {
  const std::size_t begin = ChunkBegin(things.size(), static_cast<int>(index), static_cast<int>(count));
  const std::size_t end = ChunkBegin(things.size(), static_cast<int>(index + 1), static_cast<int>(count));
  return things.subspan(begin, end - begin);
}

}  // namespace

Result<void> TreeAllReduce(Transfers& transfers, std::span<float> values, std::size_t piece_bytes) {
  const Neighbours to = NeighboursOf(transfers, 0);
  const std::size_t count = PiecesOf(values.size_bytes(), piece_bytes);
  std::vector<Transfers::Handle> up(count);
  const auto add = [&](std::size_t index) -> Result<void> {
    const std::span<float> piece = Piece(values, index, count);
    for (const int child : to.children) TRY(transfers.Wait(TRY(transfers.ReceiveAdd(child, piece, kUp))));
    if (to.parent.has_value()) up[index] = TRY(transfers.Send(*to.parent, AsBytes(piece), kUp));
    return {};
  };
  const auto spread = [&](std::size_t index) -> Result<void> {
    const std::span<std::byte> piece = AsBytes(Piece(values, index, count));
    TRY(transfers.Wait(up[index]));
    if (to.parent.has_value()) TRY(transfers.Wait(TRY(transfers.Receive(*to.parent, piece, kDown))));
    for (const int child : to.children) TRY(transfers.Send(child, piece, kDown));
    return {};
  };
  // The top has nothing to wait for; the others let some pieces go up before they look for the first to come down.
  const std::size_t ahead = to.parent.has_value() ? kAhead : 0;
  for (std::size_t index = 0; index < count + ahead; ++index) {
    if (index < count) TRY(add(index));
    if (index >= ahead) TRY(spread(index - ahead));
  }
  return transfers.WaitAll();
}

Result<void> TreeBroadcast(Transfers& transfers, std::span<std::byte> bytes, int root, std::size_t piece_bytes) {
  const Neighbours to = NeighboursOf(transfers, root);
  const std::size_t count = PiecesOf(bytes.size(), piece_bytes);
  for (std::size_t index = 0; index < count; ++index) {
    const std::span<std::byte> piece = Piece(bytes, index, count);
    if (to.parent.has_value()) TRY(transfers.Wait(TRY(transfers.Receive(*to.parent, piece, kDown))));
    for (const int child : to.children) TRY(transfers.Send(child, piece, kDown));
  }
  return transfers.WaitAll();
}

}  // namespace freshet::fabric
