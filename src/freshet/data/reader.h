#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/bad_rows.h"
#include "data/chunks.h"
#include "data/formats/format.h"
#include "data/source.h"

namespace freshet::data {

struct ReaderOptions {
  std::vector<std::string> paths;  // files, patterns, or "-"
  Part part;                       // this worker's share
  std::uint64_t max_bad_rows = 0;  // so many are set aside before reading fails
  std::string bad_rows_path;       // where they are written; "" counts them only
  bool labelled = true;            // rows without a label are bad
  bool grow = true;                // new names enter the dictionaries; false: they are kUnseen
  std::size_t chunk_bytes = 256 << 10;
  const std::atomic<bool>* stop = nullptr;  // set: ScanLabels returns kStopped
};

// Rows of text or binary files: detects compression and format, infers what the description does not say yet, parses in
// parallel, and reports malformed rows as file:line:column with what was found and expected. With others (InputOptions)
// who read other shares, all infer one description, and moments are those of all heads, learned before the first row.
//
// Ownership: borrows env and description (which it fills and whose dictionaries it grows); both outlive it.
// Threads:   as RowSource. Failure: kBadInput once more than max_bad_rows are bad, with the first that is too many.
class Reader final : public RowSource {
 public:
  // An empty description.format means: infer everything.
  static Result<std::unique_ptr<Reader>> Open(const base::Env& env, ReaderOptions options, const InputOptions& input,
                                              Description& description);
  Result<bool> Next(Rows& rows) override;
  Result<void> Finish(Rows& rows) override;
  Result<void> Seek(const Position& position) override;
  std::optional<double> Fraction(const Position& position) const override;

  Result<void> Glimpse(const std::function<void(const Rows& rows)>& see) const override;
  std::optional<std::uint64_t> bytes() const override { return chunks_->bytes(); }
  std::vector<double> RowsWhere() const override { return where_ ? where_->rows() : std::vector<double>(); }
  void SetRowsWhere(const std::vector<double>& rows) override {
    if (where_) where_->Set(rows);
  }
  Result<void> CutAt(const Cuts& cuts) override { return chunks_->CutAt(cuts); }

  std::uint64_t bad_rows() const override { return bad_rows_.count(); }

 private:
  Reader(const base::Env& env, ReaderOptions options, Description& description)
      : options_(std::move(options)),
        description_(description),
        bad_rows_(env.files, options_.max_bad_rows, options_.bad_rows_path) {}
  Result<void> AgreeOnHeadMoments(Others& others);
  Result<void> SetAside(const Rows& rows);
  void Resolve(Rows& rows);

  const ReaderOptions options_;
  Description& description_;
  std::unique_ptr<Chunks> chunks_;
  std::unique_ptr<Parser> parser_;

  // Touched by Finish and Seek only.
  std::uint64_t samples_ = 0;
  std::optional<RowsByPlace> where_;  // when others read other parts
  BadRows bad_rows_;
  std::string key_, undoubled_;  // room for names
};

// Reads everything once for its labels alone, numbers or text: the classes of data whose head does not show them all,
// in the order that Labels::Settle gives them. For rows of text (csv, libsvm, vw) that can be read again.
Result<std::vector<std::string>> ScanLabels(const base::Env& env, const ReaderOptions& options,
                                            const InputOptions& input);

}  // namespace freshet::data
