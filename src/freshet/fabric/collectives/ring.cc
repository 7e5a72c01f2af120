#include <algorithm>
#include <vector>

#include "fabric/collectives/algorithms.h"
#include "fabric/collectives/collectives.h"

namespace freshet::fabric {
namespace {

// n places, values in n chunks, each chunk in the same number of pieces. In step t, place r sends chunk r - t - 1 to
// the right and gets chunk r - t - 2 from the left: it adds it in the first n - 1 steps, after which chunk r is whole
// at place r, and keeps it in the n - 1 steps after.
//
// A piece goes on to the right as soon as it has come in, so that a step begins before the one before it has ended.
class Ring {
 public:
  Ring(Transfers& transfers, std::span<float> values, std::size_t piece_bytes)
      : transfers_(transfers), values_(values), n_(transfers.size()) {
    const std::size_t longest = (values.size() + static_cast<std::size_t>(n_) - 1) / static_cast<std::size_t>(n_);
    const std::size_t piece_floats = std::max<std::size_t>(1, piece_bytes / sizeof(float));
    pieces_ = static_cast<int>(std::max<std::size_t>(1, (longest + piece_floats - 1) / piece_floats));
  }

  Result<void> Run(int first_step, int end_step) {
    if (n_ == 1) return {};
    sent_.resize(static_cast<std::size_t>(2 * (n_ - 1) * pieces_));
    got_.resize(sent_.size());
    for (int step = first_step; step < end_step; ++step) {
      for (int piece = 0; piece < pieces_; ++piece) TRY(Move(step, piece));
    }
    return transfers_.WaitAll();
  }

 private:
  Result<void> Move(int step, int piece) {
    const bool adds = step < n_ - 1;
    if (step > 0) TRY(transfers_.Wait(got_[Index(step - 1, piece)]));
    const int right = (transfers_.me() + 1) % n_, left = (transfers_.me() + n_ - 1) % n_;
    sent_[Index(step, piece)] = TRY(transfers_.Send(right, AsBytes(Piece(step, piece))));
    const std::span<float> into = Piece(step + 1, piece);
    // What is kept goes where a part of a sum was sent from, n - 1 steps ago.
    if (!adds) TRY(transfers_.Wait(sent_[Index(step - n_ + 1, piece)]));
    got_[Index(step, piece)] =
        adds ? TRY(transfers_.ReceiveAdd(left, into)) : TRY(transfers_.Receive(left, AsBytes(into)));
    return {};
  }

  std::size_t Index(int step, int piece) const { return static_cast<std::size_t>(step * pieces_ + piece); }
  std::span<float> Piece(int step, int piece) const {
    const int chunk = ((transfers_.me() - step - 1) % n_ + n_) % n_;
    return Chunk(Chunk(values_, chunk, n_), piece, pieces_);
  }

  Transfers& transfers_;
  const std::span<float> values_;
  const int n_;
  int pieces_ = 1;
  std::vector<Transfers::Handle> sent_, got_;  // by step and piece
};

}  // namespace

Result<void> RingAllReduce(Transfers& transfers, std::span<float> values, std::size_t piece_bytes) {
  return Ring(transfers, values, piece_bytes).Run(0, 2 * (transfers.size() - 1));
}

Result<void> RingReduceScatter(Transfers& transfers, std::span<float> values, std::size_t piece_bytes) {
  return Ring(transfers, values, piece_bytes).Run(0, transfers.size() - 1);
}

Result<void> RingAllGather(Transfers& transfers, std::span<float> values, std::size_t piece_bytes) {
  return Ring(transfers, values, piece_bytes).Run(transfers.size() - 1, 2 * (transfers.size() - 1));
}

}  // namespace freshet::fabric
