#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/rows.h"
#include "fabric/collectives/collectives.h"
#include "strategy/ring/lap_clock.h"
#include "strategy/ring/partial_laps.h"
#include "strategy/ring/spread.h"

namespace freshet::strategy::ring {

// The rows of a step where each member of a ring has read some of them, and each needs its own columns of all. They go
// round once: a member hands its rows to the next one with what others need of them; who gets some takes what is its own,
// and passes on the rest. Labels and weights pass all.
//
// Threads: one. Blocking: at most as long as the fabric lets a transfer take. Failure: as the fabric's; kInvalid when
// members are not at the same step, kCorrupt for what are no rows, of which this member then tells all.
class HandedRows {
 public:
  struct Step {
    std::uint64_t number = 0;  // the same for all
    double progress = 0;       // of this member
    PartialLaps::Wishes mine;
  };
  // What all know after it.
  struct Met {
    data::Batch rows;  // of all members, in the order of ranks: of sparse ones the entries whose parameters are this
                       // member's, of tables its columns. Valid until the next Meet
    std::size_t first = 0;       // of them those that this member read begin here
    std::uint64_t features = 0;  // no entry is of a later one
    double progress = 0;         // the mean
    PartialLaps::Wishes agreed;
  };

  HandedRows(fabric::Collectives& collectives, const model::Model& model);

  // `mine`: what this member read, perhaps nothing. All call it together.
  Result<Met> Meet(const Step& step, const data::Batch& mine);

  // Of the last Meet: times as PartialLaps has them; bytes that this member sent, of its own rows and of others', without
  // what is in front of each member's.
  base::Clock::Duration waited() const { return clock_.waited(); }
  base::Clock::Duration exchanged() const { return clock_.exchanged(); }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  static std::size_t HeadBytes();  // in front

 private:
  struct Head {
    double progress = 0;
    std::uint32_t step = 0, rows = 0, width = 0, features = 0;  // width: of a row of a table; 0: sparse
    std::uint32_t stop : 1 = 0, save : 1 = 0, admit : 1 = 0, weighted : 1 = 0;
    float sent = 0;  // as LapClock's
  };
  // Labels, weights where there are any, and what is left of the rows: of sparse ones where each ends, and features and
  // values in turns; of tables the columns of each member that still needs some, member by member; or whole rows, where
  // all need those.
  using Words = std::vector<std::uint32_t>;
  struct Given {  // by one member
    Head head;
    Words words;  // with what is this member's own
  };

  Words Write(const Step& step, const data::Batch& mine) const;
  // Keeps what is this member's own of what `from` gives, and leaves in the letter what is to be passed on.
  Result<void> Take(int from, Words& letter);
  void TakeEntries(Given& given, Words& letter, std::size_t begin);
  bool HasEntries(const Head& head, const Words& letter, std::size_t begin) const;
  std::size_t ColumnsFrom(int member, int end) const;  // that those have, round the ring
  Result<void> Pass(const Step& step, Words leaving);
  Met PutTogether();
  void AddEntries(std::span<const std::uint32_t> words, std::size_t rows);

  fabric::Collectives& collectives_;
  const int me_, members_;
  Spread spread_;
  const std::size_t width_;             // of a row of a table; 0: rows are sparse
  std::optional<std::size_t> numbers_;  // the block that has a column for each number of a row
  std::vector<Given> given_;            // by rank
  data::Rows rows_;
  LapClock clock_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace freshet::strategy::ring
