#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/rows.h"
#include "deploy/log/record.h"

namespace freshet::deploy {

// Rows that were taken into the log and are still to be learned, in the order of their records. They are handed out in
// pieces, so that a writer can stop when its round has taken long enough and go on with the next.
//
// Threads: one at a time.
class FreshRows {
 public:
  struct Piece {
    data::Rows& rows;
    std::span<Slip> slips;   // one a row
    std::uint64_t next = 0;  // sequence of the first row after them; 0: they were the last
  };

  // Lets go of all; those to come are dense, of this width, or sparse (0).
  void Clear(std::size_t width);
  // The row of a record, which PackRow made (CHECK).
  void Add(std::string_view payload, std::uint64_t sequence);

  // Whether all were handed out.
  bool empty() const { return begin_ == rows_.size(); }
  // The next `most` rows, or all when there are fewer; they may be changed. Valid until the next call.
  Piece Take(std::size_t most);

 private:
  data::Rows rows_;
  std::vector<Slip> slips_;               // one a row
  std::vector<std::uint64_t> sequences_;  // one a row
  std::size_t begin_ = 0;                 // those before it were handed out
  data::Rows piece_;
};

}  // namespace freshet::deploy
