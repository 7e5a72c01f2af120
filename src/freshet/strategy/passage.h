#pragma once

#include <cstdint>
#include <deque>

#include "data/rows.h"

namespace freshet::strategy {

// How far a member has come through pieces of rows that all members pass, each at its own pace, and those that are kept
// since somebody may have to learn from them instead of another.
struct Passage {
  bool in_piece = false;          // in the midst of one
  double own_loss = 0;            // of this member's rows of it, or of the last
  std::uint64_t base = 0;         // the clock at which all met
  std::deque<data::Rows> passed;  // pieces; those before clock() that may be needed again
  data::Rows spare;               // memory for the next one
  std::uint64_t pieces = 0;       // that this member has come past
  std::uint64_t clock() const { return base + pieces; }

  void Keep(const data::Batch& piece);
  // The piece that was kept at this clock.
  data::Batch Again(std::uint64_t at) const;
  void ForgetBefore(std::uint64_t at);
};

}  // namespace freshet::strategy
