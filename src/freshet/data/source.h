#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "data/cuts.h"
#include "data/rows.h"

namespace freshet::data {

// Where rows come from, block by block: text files (Reader), folders of images (ImageFolder), or
// what was parsed before (CacheReader).
//
// Threads: Next from any thread, each with Rows of its own. Finish one at a time, in the order of rows.sequence; it
// does what depends on the rows before: numbers samples, grows dictionaries, counts bad rows.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual Result<bool> Next(Rows& rows) = 0;  // false at the end
  virtual Result<void> Finish(Rows& rows) = 0;
  // Goes back to the beginning, or on from the end of an earlier block.
  virtual Result<void> Seek(const Position& position) = 0;
  // The order of blocks in this pass, where the source can choose: 0 is as they come, others are shuffles.
  virtual void Permute(std::uint64_t seed) { (void)seed; }
  // How far along `position` is, from 0 to 1, if that can be known.
  virtual std::optional<double> Fraction(const Position& position) const = 0;
  // Of an input that several readers share, each its part: how many bytes there are, where parts may be cut at any of
  // them; how many rows this pass has met where, in a number of places that is the same for all readers; and other
  // parts from the next pass on.
  virtual std::optional<std::uint64_t> bytes() const { return std::nullopt; }
  virtual std::vector<double> RowsWhere() const { return {}; }
  virtual void SetRowsWhere(const std::vector<double>& rows) { (void)rows; }  // of a pass that goes on; after Seek
  virtual Result<void> CutAt(const Cuts& cuts) {
    (void)cuts;
    return Error{Code::kInvalid, "these rows cannot be cut into parts of bytes"};
  }
  // Is it cheaper to keep the parsed rows for another pass than to read them again?
  virtual bool worth_keeping() const { return true; }
  // Shows some rows from everywhere, or from the beginning where that is all there is to see, without moving: for what
  // must be known before the first row. Names have no numbers yet. A source that cannot shows nothing.
  virtual Result<void> Glimpse(const std::function<void(const Rows& rows)>& see) const {
    (void)see;
    return {};
  }
  // Rows of this pass that were set aside because they could not be read.
  virtual std::uint64_t bad_rows() const { return 0; }
};

}  // namespace freshet::data
