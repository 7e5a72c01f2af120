#include <vector>

#include "fabric/collectives/algorithms.h"
#include "fabric/collectives/collectives.h"
#include "fabric/collectives/sum.h"

namespace freshet::fabric {
namespace {

constexpr Tag kParts = 0, kSums = 1;

}  // namespace

Result<void> DirectAllReduce(Transfers& transfers, std::span<float> values) {
  const int n = transfers.size(), me = transfers.me();
  const std::span<float> mine = Chunk(values, me, n);
  std::vector<Transfers::Handle> sent(static_cast<std::size_t>(n)), lent(static_cast<std::size_t>(n));
  for (int i = 1; i < n; ++i) {  // each begins with another, so that nobody is asked by all at once
    const int other = (me + i) % n;
    sent[static_cast<std::size_t>(other)] = TRY(transfers.Send(other, AsBytes(Chunk(values, other, n)), kParts));
    if (!mine.empty()) lent[static_cast<std::size_t>(other)] = TRY(transfers.Borrow(other, kParts));
  }
  if (!mine.empty()) {
    std::vector<const float*> sources;
    for (int other = 0; other < n; ++other) {
      if (other == me) {
        sources.push_back(mine.data());
        continue;
      }
      const Arrived arrived = TRY(transfers.Wait(lent[static_cast<std::size_t>(other)]));
      TRY(transfers.Expect(arrived, mine.size_bytes()));
      sources.push_back(reinterpret_cast<const float*>(arrived.view.data()));
    }
    float* const target = mine.data();
    SumInto(sources, {&target, 1}, mine.size());
    transfers.fabric().Spend("add", static_cast<std::size_t>(n - 1) * mine.size_bytes());
    for (int other = 0; other < n; ++other) {
      if (other != me) transfers.Release(lent[static_cast<std::size_t>(other)]);
    }
  }
  for (int i = 1; i < n; ++i) {
    const int other = (me + i) % n;
    TRY(transfers.Send(other, AsBytes(mine), kSums));
    TRY(transfers.Wait(sent[static_cast<std::size_t>(other)]));  // its part lies where its sum goes
    TRY(transfers.Receive(other, AsBytes(Chunk(values, other, n)), kSums));
  }
  return transfers.WaitAll();
}

}  // namespace freshet::fabric
