#pragma once

#include <mpi.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "base/result.h"
#include "fabric/protocol/operation.h"

namespace freshet::fabric::mpi {

inline constexpr std::size_t kPieceBytes = 1 << 20;

// Memory for pieces that are added to what is there, used again and again.
class Stage {
 public:
  using Piece = std::unique_ptr<std::byte[]>;
  Piece Take();
  void Give(Piece piece);

 private:
  std::vector<Piece> spare_;
};

// One side of a long message on its way, cut into pieces that are messages of MPI. They leave the sender's memory as it
// lies and go straight to their place, or through a stage where they are added to what is there. A few are under way at
// a time; both sides cut alike.
//
// Threads:   one at a time.
// Ownership: borrows communicator, operation and stage.
// Blocking:  never.
// Failure:   MPI's own errors, as kPeerLost.
class Bulk {
 public:
  Bulk(MPI_Comm communicator, int tag, Operation& operation, Stage& stage);
  Bulk(const Bulk&) = delete;
  Bulk& operator=(const Bulk&) = delete;
  ~Bulk();

  Operation& operation() const { return operation_; }
  // Moves what can be moved; true when something was.
  Result<bool> Turn();
  bool done() const { return ended_ == operation_.bytes; }
  // Stops; false when MPI goes on reading or writing its memory.
  bool Withdraw();

 private:
  struct Piece {
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t bytes = 0;
    Stage::Piece staged = {};  // of what is to be added
  };
  bool sends() const { return operation_.kind == Operation::Kind::kSend; }
  Result<void> Begin();

  const MPI_Comm communicator_;
  const int tag_;
  Operation& operation_;
  Stage& stage_;
  std::deque<Piece> pieces_;  // under way, in order
  std::size_t begun_ = 0;     // bytes
  std::size_t ended_ = 0;
};

}  // namespace freshet::fabric::mpi
