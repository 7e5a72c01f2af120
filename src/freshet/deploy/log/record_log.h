#pragma once

#include <functional>
#include <string>
#include <vector>

#include "deploy/history.h"
#include "deploy/log/record.h"
#include "deploy/ranges.h"

namespace freshet::deploy {

// Where records go and come from: a Journal on disk, or memory for replays that nobody needs to survive.
//
// Threads: Append, Commit, Adopt and Discard belong to one thread; Scan and reading to any.
class RecordLog : public History {
 public:
  // Adds a record to those that the next Commit keeps, and returns its sequence. Observations say the hash of their id
  // (0: none) and their time.
  virtual std::uint64_t Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash = 0,
                               std::int64_t time = 0) = 0;
  // On an error none of the records that waited is kept, now or later, and their sequences are free again.
  virtual Result<void> Commit() = 0;

  virtual std::uint64_t next_sequence() const = 0;  // of the next record: the appending thread's
  virtual std::uint64_t end_sequence() const = 0;   // every record before it is committed
  virtual std::uint64_t next_number() const = 0;    // of the next observation
  // Visits the committed records from a sequence on, in order.
  virtual Result<void> Scan(std::uint64_t from,
                            const std::function<Result<void>(const Record& record)>& visit) const = 0;
  // A data set joins the history: a file of observations in the form of a segment (DatasetWriter). Its rows get the
  // numbers from first_number on: next_number() when it is new. To be told again after a restart for each that a record
  // names, in their order. Nothing may be waiting.
  virtual Result<void> Adopt(const std::string& path, std::uint64_t first_number, std::uint64_t rows) = 0;
  // Observations of a range of sequences, both ends included, no longer count as history.
  virtual void Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) = 0;
};

// Keeps everything in memory.
class MemoryLog final : public RecordLog {
 public:
  std::uint64_t Append(RecordKind kind, std::string_view payload, std::uint64_t id_hash, std::int64_t time) override;
  Result<void> Commit() override { return {}; }
  std::uint64_t next_sequence() const override { return records_.size() + 1; }
  std::uint64_t end_sequence() const override { return next_sequence(); }
  std::uint64_t next_number() const override { return observations_.size(); }
  Result<void> Scan(std::uint64_t from, const std::function<Result<void>(const Record& record)>& visit) const override;
  Result<void> Adopt(const std::string& path, std::uint64_t, std::uint64_t) override {
    return Error{Code::kInvalid, Str(path, ": data sets need a directory to keep them in")};
  }
  void Discard(std::uint64_t first_sequence, std::uint64_t last_sequence) override {
    discarded_.Add(first_sequence, last_sequence);
  }
  std::uint64_t first() const override { return 0; }
  std::uint64_t end() const override { return observations_.size(); }
  Result<void> Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const override;

 private:
  std::string bytes_;
  std::vector<std::uint64_t> records_, observations_;  // where they begin
  Ranges discarded_;                                   // sequences
};

}  // namespace freshet::deploy
