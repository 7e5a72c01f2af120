#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include "strategy/server/encoding.h"
#include "strategy/server/letters.h"
#include "strategy/server/near_rows.h"
#include "strategy/server/placement.h"
#include "strategy/server/synchrony.h"
#include "strategy/strategy.h"

namespace freshet::strategy::server {

// A worker's copy of the parameters, in which every row is as old as the synchrony allows, and what the worker has to
// tell the servers. Letters come out, answers go in; who sends them is somebody else's business.
//
// Who reads ahead does not wait for answers: it goes on with what it has, and learns from its own gradients meanwhile
// (Learn). A row that is answered then becomes what the server has, moved by what this worker has moved it since it asked:
// what it had pushed before is in the answer. Where the synchrony has a bound, it may read no row that is older (MayRead);
// there, who asks for all there is does not read ahead.
//
// Threads: one. Ownership: borrows model, parameters and codec, which outlive it. Failure: kCorrupt for an answer that is
// none.
class Copy {
 public:
  struct Options {
    Synchrony synchrony;
    std::uint64_t fetch_every = 1;   // steps for which what was read is used; of bsp 1, of ssp at most one more than S
    std::uint64_t push_every = 1;    // steps whose gradients travel together; of bsp 1
    fabric::Codec* codec = nullptr;  // in whose form gradients travel, from clock `warm_start` on; null: as they are
    std::uint64_t warm_start = 0;
    bool ahead = false;        // what is asked for is not waited for
    NearRows* near = nullptr;  // whose parameters these are; null: they are the whole model's
  };
  using Letters = std::vector<std::vector<std::byte>>;  // by server; empty: none
  // How pushes are to be.
  struct Telling {
    bool by_name = false;        // rows are always named, so that a letter can be understood by who was asked nothing
    std::vector<bool> had = {};  // servers that have this update already, of a worker that is gone; empty: none
  };

  Copy(const Options& options, const model::Model& model, optimize::Parameters& parameters, double rate,
       Placement& placement, optimize::Gradient& gradient);

  // Asks for the rows that this batch needs and that are too old to be read at this clock, and that are not asked for yet.
  Letters Ask(const data::Batch& rows, std::uint64_t clock);
  // An answer, to whatever it answers.
  Result<AnswerHead> Take(int server, std::span<const std::byte> letter);
  std::size_t outstanding() const { return asked_.size(); }  // questions
  // Ahead: are the rows that were wanted the last time as new as they have to be at this clock? When they are not though all
  // is answered, they are to be asked for again.
  bool MayRead(std::uint64_t clock);
  // At which clock what is not answered yet was first asked; `clock` when all is.
  std::uint64_t AskedAt(std::uint64_t clock) const { return asked_.empty() ? clock : asked_.begin()->second.clock; }
  Effort TakeEffort() { return std::exchange(effort_, {}); }  // since the last call

  // What the gradient has to tell, now that it is complete; a letter to every server, though it may bring nothing. The
  // head's parcels are filled in.
  Letters Push(const PushHead& head, std::span<const std::byte> digest) { return Push(head, digest, Telling()); }
  Letters Push(PushHead head, std::span<const std::byte> digest, const Telling& telling);
  // Moves the copy by the gradient, whose rows weigh so much, as servers will. The gradient is of no use any more.
  void Learn(double weight, optimize::Optimizer& optimizer, model::Workspace& workspace);
  // What was held back; nothing when that is nothing.
  Letters PushRest(PushHead head);
  Letters Away();
  // Asks for nothing, so as to be told what servers have; those that are marked.
  Letters AskHave(const std::vector<bool>& whom);
  // Servers are elsewhere now: what was asked and not answered is asked again.
  void Forget();

  // When nothing is asked for and nothing held back: it goes on in that one.
  void SetSynchrony(const Synchrony& synchrony, bool ahead);
  // Everything is as new as can be at this clock; or, of near rows, to be asked for again.
  void Settled(std::uint64_t clock);
  // When all have met: rows lie with other servers than before.
  void Moved();
  // Could numbers of near rows begin anew? Nothing is asked for, nor held back.
  bool HoldsNothing() const;
  void ForgetNear();

  // Bytes that letters to this server were the shorter for the codec.
  std::uint64_t saved(int server) const { return saved_[static_cast<std::size_t>(server)]; }
  // What the codec has not delivered yet, when nothing else is held back.
  void Save(std::vector<data::Tensor>& tensors) const { encoding_.Save(tensors); }
  Result<void> Load(const data::TensorFile& file) { return encoding_.Load(file); }

 private:
  using Lists = std::vector<std::vector<std::uint32_t>>;  // rows, by block
  struct Question {
    int server = 0;
    std::uint64_t clock = 0;  // of the worker
    Lists rows;               // or, of dense blocks, all that the server has
    std::vector<float> had;   // ahead: what they were
  };

  static constexpr std::uint32_t kAsked = UINT32_MAX;  // a stamp, of what is on its way
  bool Fresh(std::uint64_t stamp, std::uint64_t clock) const;
  std::uint64_t Needs(std::uint64_t clock) const;  // which clock must be complete to be read at this one
  std::uint64_t StampOf(std::size_t b, std::uint32_t row) const;
  // Of who reads ahead within a bound, and not all there is.
  bool Bounded() const { return options_.ahead && options_.synchrony.bounded(); }
  bool NewEnough(std::uint64_t complete, std::uint64_t clock) const {
    return std::max(complete, settled_) > options_.synchrony.Needs(clock);
  }
  std::uint64_t CompleteOf(std::size_t b, std::uint32_t row) const {
    return row < complete_[b].size() ? complete_[b][row] : 0;
  }
  void FindStretches();
  void Remember(Question& question);
  // Takes what a server has of so many floats.
  void Put(std::span<const float> from, float* to, const float*& had) const;
  Letters AskDense(std::uint64_t clock);
  Letters AskRows(const data::Batch& rows, std::uint64_t clock);
  bool Dense() const { return gradient_.buffer != nullptr; }
  bool Hollow() const { return parameters_.blocks() > 0 && base::IsHollow(parameters_.Row(0, 0)); }
  std::uint32_t Far(std::size_t b, std::uint32_t row) const {
    return options_.near == nullptr ? row : options_.near->Far(b, row);
  }
  std::span<const std::uint32_t> Far(std::size_t b, std::span<const std::uint32_t> rows) const {
    return options_.near == nullptr ? rows : options_.near->Far(b, rows);
  }
  std::size_t ServerOf(std::size_t b, std::uint32_t row) const {
    return static_cast<std::size_t>(placement_.ServerOf(b, Far(b, row)));
  }
  bool Holds() const { return options_.push_every > 1 || options_.synchrony.kind == Synchrony::Kind::kApproximate; }

  // By server, the rows of a block that are to be told.
  void Sort(std::size_t b, std::span<const std::uint32_t> rows);
  std::size_t RoomForDense(std::size_t server) const;
  Letters PushDense(const PushHead& head, std::span<const std::byte> digest);
  Letters PushRows(const PushHead& head, std::span<const std::byte> digest, bool by_name);
  Letters PushHollow(const PushHead& head, bool all, std::span<const std::byte> digest);
  // Adds the gradient to what is held back. Then tells the rows of that which matter, or all.
  void Hold(double weight, const std::vector<bool>& had);
  bool Matters(std::size_t b, std::uint32_t row, std::uint64_t clock) const;
  // But for rows of who takes no notice of it.
  Letters PushHeld(PushHead head, bool all, std::span<const std::byte> digest, const std::vector<bool>& had);
  bool Had(const std::vector<bool>& had, std::size_t b, std::uint32_t row) const;
  Letters Finish(std::vector<Writer>& writers, std::vector<PushHead>& heads, std::span<const std::byte> digest) const;
  std::size_t servers() const { return static_cast<std::size_t>(placement_.servers()); }

  Options options_;
  const model::Model& model_;
  optimize::Parameters& parameters_;
  const double rate_;
  Placement& placement_;
  optimize::Gradient& gradient_;
  Encoding encoding_;
  std::vector<std::uint64_t> saved_;  // by server

  std::uint64_t requests_ = 0;
  std::map<std::uint64_t, Question> asked_;         // by number
  std::vector<Lists> last_;                         // by server: what it was asked for the last time
  std::vector<std::uint64_t> versions_;             // by server, of its last answer
  std::vector<std::vector<std::uint32_t>> stamps_;  // by block and row: how new; 0: as all settled
  std::vector<std::uint64_t> dense_stamps_;         // by server
  // Bounded: likewise, one more than the clock that was complete when the server answered.
  std::vector<std::vector<std::uint32_t>> complete_;
  std::vector<std::pair<std::size_t, std::uint32_t>> old_;  // bounded: rows that are wanted and not new enough
  std::uint64_t settled_ = 1;                               // the stamp of all that has none; 0: such rows are not here
  std::vector<std::vector<Parcel>> stretches_;              // by server, of dense blocks
  optimize::RowSets touched_;
  std::vector<std::vector<std::uint32_t>> sorted_;  // by server
  Effort effort_;
  struct Held {
    std::vector<float> values;  // by row
    optimize::RowSet rows;      // that may have some
  };
  std::vector<Held> held_;  // by block
};

}  // namespace freshet::strategy::server
