#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "data/chunks.h"
#include "data/source.h"
#include "data/table.h"

namespace freshet::data {

// Rows of a table in memory. Nothing of it is copied but what is being learned from, a block at a time; blocks can be
// permuted, and a part is a range of rows. A row's sample number is its place in the whole table.
//
// Where others read shares of the same data (InputOptions::others), all agree on labels, columns and moments while they
// are opened, as those of files do.
//
// Ownership: shares the table; borrows the description, whose dictionaries it may grow.
// Threads:   as RowSource. Failure: kBadInput for a row that cannot be, with its number.
class TableReader final : public RowSource {
 public:
  struct Options {
    Part part = {};
    bool labelled = true;  // a table without labels is refused
    bool grow = true;      // new names enter the dictionaries
  };
  // An empty description is inferred and filled; another is applied.
  static Result<std::unique_ptr<TableReader>> Open(std::shared_ptr<const Table> table, const Options& options,
                                                   const InputOptions& input, Description& description);

  Result<bool> Next(Rows& rows) override;
  Result<void> Finish(Rows& rows) override;
  Result<void> Seek(const Position& position) override;
  void Permute(std::uint64_t seed) override;
  std::optional<double> Fraction(const Position& position) const override;
  bool worth_keeping() const override { return false; }
  Result<void> Glimpse(const std::function<void(const Rows& rows)>& see) const override;

 private:
  TableReader(std::shared_ptr<const Table> table, const Options& options, Description& description);
  Result<void> SettleLabels(const InputOptions& input);
  Result<void> AgreeOnShownMoments(Others& others);
  Result<void> Fill(std::uint64_t block, Rows& rows, std::vector<NewName>& names) const;
  Result<void> FillLabels(std::uint64_t first, Rows& rows) const;
  Result<void> FillWeights(std::uint64_t first, Rows& rows) const;

  const std::shared_ptr<const Table> table_;
  const Options options_;
  Description& description_;
  std::uint64_t first_ = 0, last_ = 0;  // rows of this part
  std::uint64_t rows_of_block_ = 1;
  std::vector<float> label_of_position_;  // where the table's labels have names
  std::vector<std::uint64_t> order_;      // of blocks
  std::atomic<std::uint64_t> next_{0};
  std::uint64_t begun_ = 0;  // where this pass began; sequence counts from there
};

}  // namespace freshet::data
