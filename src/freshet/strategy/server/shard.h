#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "data/rows.h"
#include "fabric/codecs/codec.h"
#include "model/model.h"
#include "strategy/server/heat.h"
#include "strategy/server/letters.h"
#include "strategy/server/own_rows.h"
#include "strategy/server/placement.h"
#include "strategy/server/synchrony.h"

namespace freshet::strategy::server {

// How stale updates were: how many, by how many others came between a worker's reading and its push; the last: and more.
using Staleness = std::array<std::uint64_t, 64>;

// One server's part of the parameters: their values, what the optimizer remembers of them, and how far each worker has
// come. A letter goes in, answers to send come out: no threads, no clocks, no wires, so that the same code runs live,
// in simulated worlds and in tests that try every order.
//
// Only the rows that it is asked for, or is brought gradients of, are its own. It begins with a copy of all there are, so that it
// takes as much memory as the whole model did then; rows that are met later take some where they lie. Of a large model it
// has a place only for its own (OwnRows).
//
// Threads:   one at a time. Ownership: borrows model and codec, which outlive it; parameters and optimizer are its own.
// Failure:   kCorrupt for a letter that cannot be one of this model; it is then of no use any more.
// Invariants: a push is applied once (a repeated one changes nothing; nor does a share that was pushed before, whole or in
// all its parts); when its clock is c, every push of clocks below c
// of the workers that are there has been applied; a pull is answered with whole rows, when the clock it needs is
// complete.
class Shard {
 public:
  struct Options {
    Synchrony synchrony;
    int workers = 1;                 // that push and pull, by their ranks
    std::uint16_t number = 0;        // of this shard, which stands in its answers
    bool dealt = false;              // bulk: shares of a clock are those its pushes name, some in parts; else workers'
    bool slower_when_stale = false;  // an update counts the less the more others came before it since its worker read
    const fabric::Codec* codec = nullptr;  // in whose form gradients may come; null: as they are
    Heat::Options heat{};                  // how what is pulled and pushed is counted
    Placement* large = nullptr;            // who has which rows, where it is to have only its own; used by Make alone
  };
  struct Answer {
    int to = 0;
    std::vector<std::byte> bytes;
  };
  using Answers = std::vector<Answer>;

  // Begins with these parameters, and with what that optimizer remembers.
  static Result<std::unique_ptr<Shard>> Make(const Options& options, const model::Model& model,
                                             const optimize::Parameters& start, const optimize::Optimizer& optimizer,
                                             optimize::Memory& memory);

  // A letter that begins with a Kind. Takes no notice of how its bytes lie in memory.
  Result<Answers> On(int worker, std::span<const std::byte> letter, base::Clock::Duration now);

  // Several members may have a shard, in a chain: letters that the first takes in are taken in by the others in the same
  // order, and the first alone answers. It was made to.
  void SetAnswers(bool answers) { answers_ = answers; }
  // After a loss. Forgets what waits for letters that may not come: questions, pushes of a clock that is not complete, and
  // what was ordered. Who asked, pushed or ordered does it again.
  void Retreat();
  // Of each worker, the updates that it need not push again after that.
  std::vector<std::uint64_t> Applied() const;
  // Everything that another member needs to have this shard as it is after Retreat, and back. Begun with the same.
  std::string Give(Placement& placement, int shard) const;
  Result<void> Take(std::string_view given, Placement& placement, int shard);

  // When nothing waits, and nothing that was pushed is not applied: has what these have, and perhaps other rows than before.
  Result<void> Follow(const optimize::Parameters& all, const optimize::Parameters& state, Placement& placement);
  // Likewise: it goes on in that one.
  void SetSynchrony(const Synchrony& synchrony);
  // All workers are at this clock, and there again but for those that are said to be away; everything that was pushed
  // before has been applied.
  void Return(std::uint64_t clock, const std::vector<bool>& away);
  const optimize::Parameters& parameters() const { return parameters_; }
  const optimize::Optimizer& optimizer() const { return *optimizer_; }
  // Rows of a block, as the whole model counts them, as far as it knows.
  std::uint64_t rows(std::size_t b) const { return own_rows_ ? own_rows_->rows(b) : parameters_.rows(b); }
  // Rows [first, last) of a block, or what the optimizer remembers of them; those that have no place stay as they are.
  enum class What { kParameters, kState };
  void CopyRows(What what, std::size_t b, std::uint64_t first, std::uint64_t last, float* to) const;

  Effort TakeEffort() { return std::exchange(effort_, {}); }  // since the last call

  bool idle() const { return pending_.empty() && parked_.empty() && added_ == 0; }
  const Staleness& staleness() const { return staleness_; }
  const Heat& heat() const { return heat_; }
  Heat& heat() { return heat_; }
  std::uint64_t updates() const { return version_; }

 private:
  using Lists = std::vector<std::vector<std::uint32_t>>;  // rows, by block
  struct Standing {                                       // of a worker
    std::uint64_t clock = 0;
    bool away = false;
    std::shared_ptr<const Lists> asked;  // the last time
  };
  struct Push {  // that waits for those of others
    std::vector<std::byte> letter;
    std::shared_ptr<const Lists> asked;
  };
  struct Place {  // of a push that waits
    std::uint64_t clock = 0;
    std::size_t share = 0;
    std::size_t part = 0;  // 0: the whole share; else one more than its number
    auto operator<=>(const Place&) const = default;
  };
  struct Pull {  // that waits for a clock
    int worker = 0;
    std::uint64_t needs = 0;
    base::Clock::Duration since{};
    std::vector<std::byte> letter;
  };

  Shard(const Options& options, const model::Model& model, optimize::Parameters parameters,
        std::unique_ptr<optimize::Optimizer> optimizer, optimize::Gradient gradient);
  // Where these rows are, which get a place if they have none. Good until the next call.
  Result<std::span<const std::uint32_t>> Places(std::size_t b, std::span<const std::uint32_t> rows);
  Result<std::uint64_t> AddPlaces(std::size_t b, std::uint64_t row);
  // The row of sizes by places, without features that have none.
  void NameByPlace(data::Rows& sizes) const;

  Result<Answers> OnPush(int worker, std::span<const std::byte> letter, base::Clock::Duration now);
  Result<Answers> OnPull(int worker, std::span<const std::byte> letter, base::Clock::Duration now);
  // Applies what is complete, and answers who waits for it.
  Result<void> Advance(base::Clock::Duration now, Answers& answers);
  Result<void> TakeShare(const PushHead& head, std::span<const std::byte> letter, const Standing& standing);
  Result<void> AddNext(std::size_t share, std::span<const std::byte> letter, const Lists* asked);
  Result<bool> AddParts();
  bool SecondMayBeFirst(std::size_t share) const;
  std::size_t Shares() const;  // of this clock, as far as is known
  Result<bool> AddThoseInOrder();
  std::uint64_t Applied(const Standing& standing) const;
  Result<Answer> Read(const Pull& pull, base::Clock::Duration now);

  // The update that is being made.
  Result<void> Add(std::size_t share, std::span<const std::byte> letter, const Lists* asked);
  Result<void> AddParcel(Reader& reader, const Lists* asked);
  Result<void> AddStretch(const Parcel& parcel, Reader& reader);
  Result<void> CheckStretch(const Parcel& parcel) const;
  static Result<std::span<const std::byte>> DigestOf(std::span<const std::byte> letter, const PushHead& head);
  Result<void> Look(std::span<const std::byte> digest);
  Result<void> Apply();
  bool Dense() const { return gradient_.buffer != nullptr; }
  // A push that is an update by itself, without a sum in between.
  Result<void> ApplyAtOnce(std::span<const std::byte> letter, const Lists* asked);
  Result<void> ApplyStretch(const Parcel& parcel, Reader& reader, float factor);
  void ApplyRows(std::size_t b, std::span<const std::uint32_t> rows, std::span<const float> values, float factor);
  void BeginUpdate();
  void EndUpdate();

  // Rows that a parcel names, given those that were asked for the last time.
  Result<std::span<const std::uint32_t>> RowsOf(const Parcel& parcel, Reader& reader, const Lists* asked) const;
  // As many floats as those rows have, as a parcel of a push brings them, and the bytes they took. Good until the next
  // parcel.
  struct Values {
    std::span<const float> floats;
    std::size_t bytes = 0;
  };
  Result<Values> ValuesOf(const Parcel& parcel, std::uint64_t rows, Reader& reader);
  Result<void> MakeRoom(std::size_t b, std::uint64_t rows);
  bool Hollow() const { return parameters_.blocks() > 0 && base::IsHollow(parameters_.Row(0, 0)); }
  std::size_t BytesOf(std::size_t b, std::size_t rows) const {
    return rows * (parameters_.width(b) + 1) * sizeof(float);
  }

  Options options_;
  const model::Model& model_;
  optimize::Parameters parameters_;
  std::unique_ptr<optimize::Optimizer> optimizer_;
  model::Workspace workspace_;
  std::optional<OwnRows> own_rows_;  // of a large model
  std::vector<std::uint32_t> places_;
  bool answers_ = true;

  std::vector<Standing> workers_;
  std::int32_t writer_ = -1;                     // of the letter that is being read
  std::uint64_t clock_ = 0, version_ = 0;        // that is complete; updates
  std::map<Place, Push> pending_;                // bulk
  std::map<std::uint64_t, std::size_t> shares_;  // dealt: of clocks that are not complete
  std::size_t next_ = 0, added_ = 0;             // bulk: shares of this clock
  bool second_came_ = false;                     // bulk: before the first
  std::vector<Pull> parked_;
  std::size_t last_answer_bytes_ = 0;

  optimize::Gradient gradient_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> added_to_;  // of dense blocks: by block and first row
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::byte>> digests_;  // by share and part, of its rows
  double weight_ = 0, progress_ = 0;
  std::uint64_t stale_ = 0;
  Notice notice_;  // the last
  data::Rows seen_;
  std::vector<float> scaled_, decoded_;
  Staleness staleness_{};
  Heat heat_;
  Effort effort_;
};

}  // namespace freshet::strategy::server
