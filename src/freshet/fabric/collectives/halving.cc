#include <bit>
#include <memory>

#include "fabric/collectives/algorithms.h"
#include "fabric/collectives/collectives.h"
#include "fabric/collectives/sum.h"

namespace freshet::fabric {
namespace {

// Between two a swap costs no more bytes than halves there and back, but memory for what comes. Among more it does;
// then it is for messages that travel without being asked for first.
constexpr std::size_t kMostShortBytesOfTwo = 1 << 20, kMostShortBytes = 32 * 1024;

// Among `count` players, a power of two, numbered 0 to count - 1; some stand for two members.
class Halving {
 public:
  Halving(Transfers& transfers, std::span<float> values, int extra, int count, int player)
      : transfers_(transfers), values_(values), extra_(extra), count_(count), player_(player) {}

  Result<void> Run() {
    const bool is_short = values_.size_bytes() <= (count_ == 2 ? kMostShortBytesOfTwo : kMostShortBytes);
    return is_short ? Swap() : HalveAndDouble();
  }

 private:
  // Values swapped whole take half the steps. Numbers are added in the same pairs as by halving: the sums are the same.
  Result<void> Swap() {
    const auto theirs = std::make_unique_for_overwrite<float[]>(values_.size());
    const std::span<float> into(theirs.get(), values_.size());
    for (int distance = count_ / 2; distance >= 1; distance /= 2) {
      const auto sent = TRY(transfers_.Send(PartnerAt(distance), AsBytes(values_)));
      TRY(transfers_.Wait(TRY(transfers_.Receive(PartnerAt(distance), AsBytes(into)))));
      TRY(transfers_.Wait(sent));
      Add(values_, theirs.get());
      transfers_.fabric().Spend("add", values_.size_bytes());
    }
    return {};
  }

  Result<void> HalveAndDouble() {
    int begin = 0, end = count_;  // the chunks this player still adds up
    for (int distance = count_ / 2; distance >= 1; distance /= 2) {
      const int middle = begin + distance;
      const bool low = (player_ & distance) == 0;
      const auto sent = TRY(transfers_.Send(PartnerAt(distance), AsBytes(low ? Of(middle, end) : Of(begin, middle))));
      (low ? end : begin) = middle;
      TRY(transfers_.Wait(TRY(transfers_.ReceiveAdd(PartnerAt(distance), Of(begin, end)))));
      TRY(transfers_.Wait(sent));
    }
    for (int distance = 1; distance < count_; distance *= 2) {
      const bool low = (player_ & distance) == 0;
      const int other = low ? end : begin - distance;  // where the partner's chunks begin
      const auto sent = TRY(transfers_.Send(PartnerAt(distance), AsBytes(Of(begin, end))));
      TRY(transfers_.Wait(TRY(transfers_.Receive(PartnerAt(distance), AsBytes(Of(other, other + distance))))));
      TRY(transfers_.Wait(sent));
      (low ? end : begin) += low ? distance : -distance;
    }
    return {};
  }

  // The first `extra` players stand for two members each.
  int PartnerAt(int distance) const {
    const int partner = player_ ^ distance;
    return partner < extra_ ? 2 * partner : partner + extra_;
  }
  std::span<float> Of(int begin, int end) const {
    const std::size_t from = ChunkBegin(values_.size(), begin, count_);
    return values_.subspan(from, ChunkBegin(values_.size(), end, count_) - from);
  }

  Transfers& transfers_;
  const std::span<float> values_;
  const int extra_, count_, player_;
};

}  // namespace

Result<void> HalvingAllReduce(Transfers& transfers, std::span<float> values) {
  const int size = transfers.size(), me = transfers.me();
  const int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int extra = size - count;
  const bool paired = me < 2 * extra;
  if (paired && me % 2 == 1) {  // gives its values to the one before it, and gets the sum from there
    TRY(transfers.Wait(TRY(transfers.Send(me - 1, AsBytes(values)))));
    TRY(transfers.Wait(TRY(transfers.Receive(me - 1, AsBytes(values)))));
    return {};
  }
  if (paired) TRY(transfers.Wait(TRY(transfers.ReceiveAdd(me + 1, values))));
  TRY(Halving(transfers, values, extra, count, paired ? me / 2 : me - extra).Run());
  if (paired) TRY(transfers.Wait(TRY(transfers.Send(me + 1, AsBytes(values)))));
  return {};
}

}  // namespace freshet::fabric
