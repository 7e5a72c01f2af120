#include "fabric/mpi/bulk.h"

#include <algorithm>

#include "fabric/mpi/call.h"

namespace freshet::fabric::mpi {
namespace {

constexpr std::size_t kUnderWay = 4;  // pieces
constexpr std::size_t kSpare = 8;

}  // namespace

Stage::Piece Stage::Take() {
  if (spare_.empty()) return Piece(new std::byte[kPieceBytes]);
  Piece piece = std::move(spare_.back());
  spare_.pop_back();
  return piece;
}

void Stage::Give(Piece piece) {
  if (spare_.size() < kSpare) spare_.push_back(std::move(piece));
}

Bulk::Bulk(MPI_Comm communicator, int tag, Operation& operation, Stage& stage)
    : communicator_(communicator), tag_(tag), operation_(operation), stage_(stage) {
  operation_.moved = sends() ? operation_.bytes : 0;  // from here on it cannot be called back
}

// What MPI still has is never given back.
Bulk::~Bulk() {
  for (Piece& piece : pieces_)
    if (piece.request != MPI_REQUEST_NULL) (void)piece.staged.release();
}

Result<void> Bulk::Begin() {
  Piece piece{.bytes = std::min(kPieceBytes, operation_.bytes - begun_)};
  const int bytes = static_cast<int>(piece.bytes);
  if (sends()) {
    TRY(Called(MPI_Isend(operation_.out.data() + begun_, bytes, MPI_BYTE, operation_.peer, tag_, communicator_,
                         &piece.request),
               "MPI_Isend"));
  } else {
    if (operation_.landing.adds()) piece.staged = stage_.Take();
    std::byte* const into = operation_.landing.adds()
                                ? piece.staged.get()
                                : operation_.landing.Direct().subspan(begun_ - operation_.landing.landed()).data();
    TRY(Called(MPI_Irecv(into, bytes, MPI_BYTE, operation_.peer, tag_, communicator_, &piece.request), "MPI_Irecv"));
  }
  begun_ += piece.bytes;
  pieces_.push_back(std::move(piece));
  return {};
}

Result<bool> Bulk::Turn() {
  bool any = false;
  while (!pieces_.empty() && TRY(Ended(pieces_.front().request))) {
    any = true;
    Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    ended_ += piece.bytes;
    if (begun_ < operation_.bytes) TRY(Begin());  // before what takes time here
    if (piece.staged != nullptr) {
      operation_.landing.Put(std::span<const std::byte>(piece.staged.get(), piece.bytes));
      stage_.Give(std::move(piece.staged));
    } else if (!sends()) {
      operation_.landing.Advance(piece.bytes);
    }
  }
  while (pieces_.size() < kUnderWay && begun_ < operation_.bytes) TRY(Begin());
  return any;
}

bool Bulk::Withdraw() {
  bool all = true;
  for (Piece& piece : pieces_) {
    const Result<bool> ended = Ended(piece.request);
    const bool free = (ended.ok() && ended.value()) || (!sends() && TakeBack(piece.request));
    all = free && all;
  }
  return all;
}

}  // namespace freshet::fabric::mpi
