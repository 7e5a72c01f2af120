#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "data/description.h"
#include "data/source.h"
#include "deploy/history.h"

namespace freshet::deploy {

// A data set in memory, to be sent through deployments. Rows are raw, in the order of the files.
struct Feed {
  data::Rows rows;
  data::Description description;  // as reading left it
  float least_label = 0, most_label = 0;

  // Reads everything; kStopped after *stop. `description` is what the source was opened with.
  static Result<Feed> Load(base::Executor& executor, data::RowSource& source, const data::Description& description,
                           const std::atomic<bool>* stop);
  std::size_t size() const { return rows.size(); }
  bool ratings() const { return description.format == "ratings" && !description.joint_ids; }
};

enum class Order {
  kAuto,     // ratings: by time where they have one; everything else as it comes
  kFile,     // as it comes
  kTime,     // by time, rows of the same time as they come
  kShuffle,  // at random
};
Result<Order> ParseOrder(std::string_view text);

// One way through a feed: which row arrives when, and which are only tested on. Arrivals count from 0. Users and
// items of ratings get new numbers in the order in which they are first trained on, as they would in life: otherwise a
// model would have rows for people it has not met. Those that are only tested on have none.
//
// Ownership: borrows the feed. Threads: any, since nothing changes.
class Course : public History {
 public:
  struct Options {
    Order order = Order::kAuto;
    std::uint64_t test_rows = 0;  // drawn uniformly, never trained on
    double initial = 0.1;         // the share that comes before the first arrival; 0: nothing does
    std::uint64_t seed = 1;
  };
  static Result<Course> Make(const Feed& feed, const Options& options);

  const Feed& feed() const { return *feed_; }
  std::size_t size() const { return order_.size(); }
  std::size_t initial() const { return initial_; }  // arrivals before this one are the initial part
  bool tested(std::size_t arrival) const { return tested_[arrival]; }
  // The arrivals begin … end-1 that are trained on.
  std::vector<std::uint64_t> Trained(std::size_t begin, std::size_t end) const;
  // Appends a row to others of the same form.
  void Append(std::size_t arrival, data::Rows& rows) const;

  // As a history its rows are numbered by arrival.
  std::uint64_t first() const override { return 0; }
  std::uint64_t end() const override { return order_.size(); }
  Result<void> Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const override;

 private:
  explicit Course(const Feed& feed) : feed_(&feed) {}
  void Renumber();

  const Feed* feed_;
  std::vector<std::uint32_t> order_;  // rows of the feed
  std::vector<bool> tested_;
  std::size_t initial_ = 0;
  std::vector<std::uint32_t> users_, items_;  // new numbers; empty: rows stay as they are
};

}  // namespace freshet::deploy
