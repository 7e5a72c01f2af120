#pragma once

#include <gtest/gtest.h>

#include <atomic>

#include "data/source.h"

namespace freshet::data {

// Blocks 0, 1, 2 …, each of one row whose label is its number. Some cannot be read or finished.
class Numbers final : public RowSource {
 public:
  explicit Numbers(std::uint64_t blocks, std::uint64_t unreadable = kNever, std::uint64_t unfinished = kNever)
      : blocks_(blocks), unreadable_(unreadable), unfinished_(unfinished) {}
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Result<bool> Next(Rows& rows) override {
    const std::uint64_t mine = next_++;
    if (mine == unreadable_) return Error{Code::kIo, Str("block ", mine, " is unreadable")};
    if (mine >= blocks_) return false;
    rows.Clear();
    rows.sequence = mine;
    rows.labels.Append(static_cast<float>(mine));
    return true;
  }
  Result<void> Finish(Rows& rows) override {
    EXPECT_EQ(rows.sequence, finished_++) << "Finish is called in order";
    if (rows.sequence == unfinished_) return Error{Code::kBadInput, Str("block ", rows.sequence, " is bad")};
    return {};
  }
  Result<void> Seek(const Position&) override { return {}; }
  std::optional<double> Fraction(const Position&) const override { return std::nullopt; }

  std::uint64_t asked() const { return next_; }  // how many Next() there were

 private:
  const std::uint64_t blocks_, unreadable_, unfinished_;
  std::atomic<std::uint64_t> next_{0};
  std::uint64_t finished_ = 0;
};

}  // namespace freshet::data
