#include "fabric/codec_exchange.h"

#include <optional>
#include <utility>
#include <vector>

namespace freshet::fabric {
namespace {

// Transfers under way, all of which are waited for whatever happens.
class Underway {
 public:
  explicit Underway(Fabric& fabric) : fabric_(fabric), borrows_(static_cast<std::size_t>(fabric.size())) {}
  Underway(const Underway&) = delete;
  ~Underway() {
    for (const Transfer send : sends_) (void)fabric_.Wait(send).ok();
    for (const auto& borrow : borrows_)
      if (borrow && fabric_.Wait(*borrow).ok()) fabric_.Release(*borrow);
  }

  Result<void> Send(int to, Tag tag, std::span<const std::byte> bytes) {
    sends_.push_back(TRY(fabric_.StartSend(to, tag, bytes)));
    return {};
  }
  Result<void> Borrow(int from, Tag tag) {
    borrows_[static_cast<std::size_t>(from)] = TRY(fabric_.StartBorrow(from, tag));
    return {};
  }

  Result<void> Visit(int from, const std::function<Result<void>(int, std::span<const std::byte>)>& visit) {
    const Transfer borrow = *std::exchange(borrows_[static_cast<std::size_t>(from)], {});
    const Arrived arrived = TRY(fabric_.Wait(borrow));
    Result<void> visited = visit(from, arrived.view);
    fabric_.Release(borrow);
    return std::move(visited).While(Str("reading what rank ", from, " on ", fabric_.host(from), " sent"));
  }
  Result<void> FinishSends() {
    while (!sends_.empty()) {
      const Transfer send = sends_.back();
      sends_.pop_back();
      TRY(fabric_.Wait(send));
    }
    return {};
  }

 private:
  Fabric& fabric_;
  std::vector<Transfer> sends_;
  std::vector<std::optional<Transfer>> borrows_;  // by rank
};

Result<void> ExchangeAll(Fabric& fabric, Underway& underway, Tag tag,
                         const std::function<std::span<const std::byte>(int to)>& outgoing,
                         const std::function<Result<void>(int from, std::span<const std::byte> bytes)>& visit) {
  const int rank = fabric.rank(), size = fabric.size();
  for (int from = 0; from < size; ++from)
    if (from != rank) TRY(underway.Borrow(from, tag));
  for (int i = 1; i < size; ++i) {
    const int to = (rank + i) % size;  // each begins with another, so that nobody is sent to by all at once
    TRY(underway.Send(to, tag, outgoing(to)));
  }
  for (int from = 0; from < size; ++from) TRY(from == rank ? visit(from, {}) : underway.Visit(from, visit));
  return underway.FinishSends();
}

}  // namespace

Result<void> Exchange(Fabric& fabric, Tag tag, const std::function<std::span<const std::byte>(int to)>& outgoing,
                      const std::function<Result<void>(int from, std::span<const std::byte> bytes)>& visit) {
  Underway underway(fabric);
  Result<void> result = ExchangeAll(fabric, underway, tag, outgoing, visit);
  if (!result.ok()) fabric.Abort(result.error());
  return result;
}

}  // namespace freshet::fabric
