#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "data/rows.h"

namespace freshet::deploy {

// Labelled rows that came before, by number in the order they came. Rows are as they were sent: features, not yet
// standardised.
//
// Threads: Read from any thread, for numbers below an end that was read before.
class History {
 public:
  virtual ~History() = default;
  // Numbers [first, end) can be read. Old rows may be dropped, new ones are added at the end.
  virtual std::uint64_t first() const = 0;
  virtual std::uint64_t end() const = 0;
  // Appends these rows to `rows`, in this order. The cost is that of the rows asked for, not of the history. Rows that
  // were discarded, dropped or damaged are left out.
  virtual Result<void> Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const = 0;
};

}  // namespace freshet::deploy
