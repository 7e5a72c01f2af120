#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "fabric/collectives/compressed.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

// The sum over all members of a matrix, by its best approximation of low rank (PowerSGD, Vogels et al.): one step of
// the power method a call, from where the last one ended.
//
//   P = M Q, summed over members and orthonormalised;  Q = Mᵀ P, summed;  the sum is about P Qᵀ.
//
// M is what this member gives and its error; its new error is what M has outside the columns of P. The errors add up to
// just what the approximation lacks. Only P and Q travel: 2 (n-1)/n · rank · (rows + cols) floats a member.
//
// All members make it with the same numbers; then P, Q and the result are the same bits everywhere, if they run the
// same program. A group of one exchanges nothing and loses nothing.
//
// Threads: one at a time; Collectives::Start may run it on the fabric's. Blocking: as ExchangeInOrder. Failure: the
// fabric's; the values and the state are then in no particular state: restore them with the rest of the checkpoint.
class PowerAllReduce {
 public:
  static constexpr Tag kTags = 2 * CompressedAllReduce::kTags;  // how many it uses, from the given one on

  // `hollow`: as CompressedAllReduce.
  PowerAllReduce(std::size_t rows, std::size_t cols, std::size_t rank, std::uint64_t seed, bool hollow = false);

  // Are its bytes fewer than those of the matrix?
  static bool Pays(std::size_t rows, std::size_t cols, std::size_t rank) { return rank * (rows + cols) < rows * cols; }

  // `matrix` has rows · cols floats, row by row.
  Result<void> Run(Fabric& fabric, Tag tag, std::span<float> matrix);

  // Part of a checkpoint.
  struct State {
    std::vector<float> error;    // rows · cols
    std::vector<float> q;        // rank · cols: the transpose of Q
    std::uint64_t position = 0;  // of the random numbers
  };
  const State& state() const { return state_; }
  Result<void> Restore(State state);

  // What was sent to others so far, without the fabric's headers.
  std::uint64_t bytes_sent() const { return reduce_p_.bytes_sent() + reduce_q_.bytes_sent(); }

 private:
  std::span<float> PRow(std::size_t k) { return std::span(p_).subspan(k * rows_, rows_); }
  std::span<float> QRow(std::size_t k) { return std::span(state_.q).subspan(k * cols_, cols_); }
  void DrawQ(std::size_t k);
  void MultiplyByQ(std::span<const float> matrix);
  void Orthonormalise();
  void MultiplyByP(std::span<const float> matrix);
  Result<void> RunHollow(Fabric& fabric, Tag tag);
  // Adds factor · P Qᵀ.
  void AddProduct(float factor, std::span<float> to);

  const std::size_t rows_, cols_, rank_;
  const bool hollow_;
  base::Random random_;
  CompressedAllReduce reduce_p_, reduce_q_;
  State state_;
  std::vector<float> p_;  // rank · rows: the transpose of P
};

}  // namespace freshet::fabric
