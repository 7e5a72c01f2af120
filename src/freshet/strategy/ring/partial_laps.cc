#include "strategy/ring/partial_laps.h"

#include <algorithm>
#include <cstring>

#include "fabric/collectives/transfers.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::size_t kHeadFloats = 4;
constexpr std::uint32_t kBusyBits = (1u << 29) - 1;
constexpr double kMostBusy = kBusyBits;

}  // namespace

std::size_t PartialLaps::HeadBytes() {
  static_assert(sizeof(Head) == kHeadFloats * sizeof(float));
  return sizeof(Head);
}

PartialLaps::Part& PartialLaps::part(int number) {
  const int n = collectives_.fabric().size();
  return parts_[static_cast<std::size_t>((number % n + n) % n)];
}

std::span<float> PartialLaps::Numbers(Part& part) const { return std::span(part.letter).subspan(kHeadFloats); }

void PartialLaps::Cut(const Step& step) {
  const int n = collectives_.fabric().size();
  parts_.resize(static_cast<std::size_t>(n));
  for (int p = 0; p < n; ++p) {
    Part& each = part(p);
    each.first = fabric::ChunkBegin(step.rows, p, n);
    each.last = fabric::ChunkBegin(step.rows, p + 1, n);
    each.letter.resize(kHeadFloats + (each.last - each.first) * step.width);
  }
}

Result<PartialLaps::Wishes> PartialLaps::Meet(const Step& step, const Merge& merge, std::span<float> numbers) {
  fabric::Fabric& fabric = collectives_.fabric();
  const int n = fabric.size(), me = fabric.rank(), right = (me + 1) % n, left = (me + n - 1) % n;
  clock_.Begin();
  numbers_sent_ = 0;
  Cut(step);
  Part& own = part(me);
  own.head = {.step = static_cast<std::uint32_t>(step.number),
              .rows = static_cast<std::uint32_t>(step.rows),
              .stop = step.mine.stop,
              .save = step.mine.save,
              .admit = step.mine.admit,
              .busy = static_cast<std::uint32_t>(std::clamp(step.busy / kBusyUnit, 0.0, kMostBusy)) & kBusyBits,
              .sent = 0};
  merge(own.first, own.last, Numbers(own), true);
  {
    fabric::Transfers transfers(fabric, collectives_.NextTag(), "passing partial scores round the ring");
    const int hops = 2 * (n - 1);
    std::vector<fabric::Transfers::Handle> sent(static_cast<std::size_t>(hops)), coming(sent.size());
    const auto at = [](int hop) { return static_cast<std::size_t>(hop); };
    const auto listen = [&](int hop) -> Result<void> {
      Part& next = part(me - 1 - hop);
      coming[at(hop)] = TRY(transfers.Receive(left, std::as_writable_bytes(std::span(next.letter))));
      return {};
    };
    for (int hop = 0; hop < n - 1; ++hop) TRY(listen(hop));
    for (int hop = 0; hop < hops; ++hop) {
      Part& leaving = part(me - hop);
      leaving.head.sent = clock_.sent();
      numbers_sent_ += Numbers(leaving).size();
      std::memcpy(leaving.letter.data(), &leaving.head, sizeof leaving.head);
      sent[at(hop)] = TRY(transfers.Send(right, std::as_bytes(std::span(leaving.letter))));
      // In the second lap it comes to where it was sent from in the first.
      if (hop >= n - 1) {
        TRY(transfers.Wait(sent[at(hop - n + 1)]));
        TRY(listen(hop));
      }
      Part& come = part(me - 1 - hop);
      const auto begun = fabric.clock().Now();
      TRY(transfers.Wait(coming[at(hop)]));
      std::memcpy(&come.head, come.letter.data(), sizeof come.head);
      clock_.Came(begun, come.head.sent);
      TRY(Expect(step, come));
      if (hop >= n - 1) continue;
      come.head.stop |= step.mine.stop;
      come.head.save |= step.mine.save;
      come.head.admit |= step.mine.admit;
      merge(come.first, come.last, Numbers(come), false);
    }
    const auto ended = clock_.End();
    TRY(transfers.WaitAll());
    clock_.Went(ended);
  }
  for (Part& each : parts_)
    std::copy_n(Numbers(each).begin(), (each.last - each.first) * step.width,
                numbers.begin() + static_cast<std::ptrdiff_t>(each.first * step.width));
  return Wishes{own.head.stop != 0, own.head.save != 0, own.head.admit != 0};
}

Result<void> PartialLaps::Expect(const Step& step, const Part& come) const {
  if (come.head.step == static_cast<std::uint32_t>(step.number) && come.head.rows == step.rows) return {};
  return Error{Code::kInvalid, Str("rank ", collectives_.fabric().rank(), " is at step ", step.number, " of ",
                                   step.rows, " rows, and what came to it at step ", come.head.step, " of ",
                                   come.head.rows, ": members of a ring are given the same rows")};
}

Result<void> PartialLaps::Tell(std::span<const float> mine,
                               const std::function<Result<void>(int member, std::span<const float> given)>& take) {
  fabric::Fabric& fabric = collectives_.fabric();
  const int n = fabric.size(), me = fabric.rank(), right = (me + 1) % n, left = (me + n - 1) % n;
  fabric::Transfers transfers(fabric, collectives_.NextTag(), "telling all round the ring");
  std::vector<float> had;
  std::span<const float> leaving = mine;
  for (int hop = 0; hop < n - 1; ++hop) {
    const auto sent = TRY(transfers.SendAny(right, std::as_bytes(leaving)));
    const auto lent = TRY(transfers.Borrow(left));
    const fabric::Arrived arrived = TRY(transfers.Wait(lent));
    std::vector<float> came(arrived.view.size() / sizeof(float));
    if (!came.empty()) std::memcpy(came.data(), arrived.view.data(), came.size() * sizeof(float));
    transfers.Release(lent);
    TRY(take(((me - 1 - hop) % n + n) % n, came));
    TRY(transfers.Wait(sent));  // from `had`
    had = std::move(came);
    leaving = had;
  }
  return transfers.WaitAll();
}

}  // namespace freshet::strategy::ring
