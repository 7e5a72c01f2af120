#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "data/source.h"

namespace freshet::data {

// Rows of an input that is cut into parts, of which this reader has a lease of some: those who read it together hold all
// parts, each one of them, and may hand them over to each other.
//
// Rows come by updates. Update u has the same number of rows of every part, those behind the ones of update u - 1, as long
// as the part has any: so what belongs to an update does not depend on who holds what, and a position is the number of the
// next update (Position::block). Who gets a part that others have read from reads its own way to there.
//
// A block has whole updates of rows() rows, or a single one that is shorter, since some part has come to its end.
//
// Threads:   as RowSource; parts are read by one thread at a time. Lease, SetUpdate and SetWanted before a Seek.
// Ownership: owns the sources it opens. Failure: as theirs.
class LeasedParts final : public RowSource {
 public:
  using Open = std::function<Result<std::unique_ptr<RowSource>>(std::uint64_t part)>;
  // Which rows of a part count; the others are as if they were not there. Null: all do.
  using Wanted = std::function<bool(const Batch& batch, std::size_t row)>;
  // Opens the first part, to find out how much there is. kInvalid where it cannot be cut at any byte.
  static Result<std::unique_ptr<LeasedParts>> Make(std::uint64_t parts, Open open);

  std::uint64_t parts() const { return parts_; }
  // From the next Seek on: every `holders`th part, the first of them being `holder`; that many rows of an update, over all
  // parts; only those that are wanted; so many of a part in memory at once, among which they are mixed where a pass is
  // permuted.
  void Lease(std::uint64_t holder, std::uint64_t holders);
  void SetUpdate(std::uint64_t rows) { update_rows_ = rows; }
  void SetWanted(Wanted wanted);
  void SetWindow(std::uint64_t rows) { window_ = rows; }
  // Of an update: rows of this reader's parts, while all have some.
  std::size_t rows() const;
  // 1 for every part that is leased, else 0.
  std::vector<double> Held() const;

  Result<bool> Next(Rows& rows) override;
  Result<void> Finish(Rows&) override { return {}; }
  Result<void> Seek(const Position& position) override;
  void Permute(std::uint64_t seed) override { seed_ = seed; }
  // By the size of some rows: the same for all who read it, and so not exact.
  std::optional<double> Fraction(const Position& position) const override;
  bool worth_keeping() const override { return false; }
  std::uint64_t bad_rows() const override;

 private:
  // One that is leased. `ready` has rows in the order in which they are taken.
  struct Part {
    std::unique_ptr<RowSource> source;
    struct Mark {
      std::uint64_t rows = 0;  // wanted ones before it
      Position position;
    };
    std::vector<Mark> marks = {{}};  // where the source's blocks begin, as far as it was read
    std::uint64_t share = 0;         // rows of an update
    Rows block;                      // what was read last
    std::size_t looked_at = 0;       // rows of it
    std::uint64_t read = 0;          // wanted rows of the part before the next that is looked at
    Rows ready, spare;
    std::vector<std::uint32_t> order;
    std::size_t taken = 0;  // of `order`
    bool ended = false;

    std::size_t left() const { return order.size() - taken; }
  };

  LeasedParts(std::uint64_t parts, Open open) : parts_(parts), open_(std::move(open)) {}
  std::uint64_t ShareOf(std::uint64_t part) const;
  Result<void> SeekPart(std::uint64_t number, Part& part, std::uint64_t row);
  Result<bool> ReadBlock(Part& part);
  Result<void> FillWindow(std::uint64_t number, Part& part);
  Result<void> Want(std::uint64_t number, Part& part, std::size_t rows);
  static void Take(Part& part, std::size_t rows, Rows& into);

  const std::uint64_t parts_;
  const Open open_;
  double bytes_a_row_ = 1, bytes_ = 0;
  std::uint64_t holder_ = 0, holders_ = 1, update_rows_ = 1, window_ = 4096, seed_ = 0;
  Wanted wanted_;

  mutable base::Mutex mutex_;
  std::map<std::uint64_t, Part> leased_ GUARDED_BY(mutex_);
  std::uint64_t next_ GUARDED_BY(mutex_) = 0, sequence_ GUARDED_BY(mutex_) = 0;  // update, block
};

}  // namespace freshet::data
