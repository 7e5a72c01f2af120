#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/mpi/bulk.h"
#include "fabric/mpi/mail.h"
#include "fabric/mpi/options.h"
#include "fabric/protocol/protocol.h"

namespace freshet::fabric::mpi {

// The protocol over a communicator of MPI: notes are messages of one tag, long messages travel beside them, and sums
// may be left to MPI. Nothing moves unless somebody calls Turn.
//
// MPI cannot be told to forget memory it was given for a message that is half way. When the group ends while there is
// such, MPI is never called again here, so that it cannot touch memory whose owner was told that all is over. So a loss
// that leaves such memory, or a sum that cannot end, is the end of the group for this member even where losses are
// reported.
//
// Threads: one at a time; the caller has a lock. Failure: as Protocol says.
class Engine final : public Protocol {
 public:
  Engine(MPI_Comm communicator, const MpiOptions& options, std::vector<std::string> hosts, const base::Clock& clock);
  ~Engine() override;

  bool Turn() override;
  bool Busy() const { return sum_.has_value() || Waits(); }  // something may move without a call of this member
  // After SayGoodbye: Turn until Quiet, and MPI has taken all; until Alone, and nobody sends any more.
  bool Quiet() const { return muted_ || mail_.Empty(); }
  bool Alone() const;

  // A sum over all members by MPI, one at a time: Turn until SumDone or failure(). To give it up ends the group.
  Result<void> StartSum(std::span<float> values);
  bool SumDone() const { return !sum_.has_value(); }
  Error GiveUpSum(base::Clock::Duration waited);

  std::uint64_t bytes_sent() const override { return mail_.bytes_sent() + bytes_sent_; }

 private:
  bool Open(int rank) const override { return rank != this->rank() && !shut_[static_cast<std::size_t>(rank)]; }
  void Shut(int rank) override { shut_[static_cast<std::size_t>(rank)] = true; }
  void Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) override;
  void SendBulk(Operation& send) override;
  void ExpectBulk(Operation& receive) override;
  void Push(int) override {}
  bool Idle(int to) const override { return mail_.Empty(to); }
  bool Forget(const Operation& operation) override;
  void OnLost(int rank) override;
  void OnStop() override;
  std::uint64_t sums() const override { return sums_; }

  bool TurnMail();
  bool TurnBulk();
  bool TurnSum();
  void TurnGoodbyes();
  void OnLetter(const Mail::Letter& letter);
  void CheckSum();
  void Mute();
  void Report(int rank, const Error& error);
  int TagOf(std::uint64_t receive_id) const;

  struct Sum {
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t bytes = 0;
  };
  struct Trouble {
    int rank = 0;
    std::string text;
  };
  struct Goodbye {
    int from = 0;
    Note note;
  };

  const MPI_Comm communicator_;
  const base::Clock& clock_;
  int tags_ = 0;  // of long messages: 1 to this
  Mail mail_;
  Stage stage_;
  std::vector<std::unique_ptr<Bulk>> bulks_;
  std::vector<Goodbye> goodbyes_;  // that have come and do not count yet
  std::vector<bool> shut_;
  std::optional<Trouble> trouble_;  // to be reported by the next turn

  std::optional<Sum> sum_;
  std::uint64_t sums_ = 0;                // that this member has joined
  std::vector<std::uint64_t> sums_left_;  // and those who left, before they did
  std::uint64_t bytes_sent_ = 0;
  bool half_way_ = false;  // MPI holds on to memory of others
  bool muted_ = false;     // and is not called any more
};

}  // namespace freshet::fabric::mpi
