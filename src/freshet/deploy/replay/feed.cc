#include "deploy/replay/feed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/option.h"
#include "base/random.h"
#include "data/drive.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {
namespace {

constexpr std::pair<Order, std::string_view> kOrders[] = {
    {Order::kAuto, "auto"}, {Order::kFile, "file"}, {Order::kTime, "time"}, {Order::kShuffle, "shuffle"}};

std::vector<std::uint32_t> Arrange(const Feed& feed, Order order, std::uint64_t seed) {
  std::vector<std::uint32_t> rows(feed.size());
  std::iota(rows.begin(), rows.end(), 0u);
  const auto& times = feed.rows.times;
  if (order == Order::kAuto) order = feed.ratings() && !times.empty() ? Order::kTime : Order::kFile;
  if (order == Order::kTime)
    std::stable_sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) { return times[a] < times[b]; });
  if (order == Order::kShuffle) {
    base::Random random(seed, "order");
    for (std::size_t left = rows.size(); left > 1; --left) std::swap(rows[left - 1], rows[random.Below(left)]);
  }
  return rows;
}

}  // namespace

Result<Order> ParseOrder(std::string_view text) {
  for (const auto& [order, name] : kOrders)
    if (name == text) return order;
  return Error{Code::kInvalid, Str("order ", Quoted(text), ": expected auto, file, time or shuffle")};
}

Result<Feed> Feed::Load(base::Executor& executor, data::RowSource& source, const data::Description& description,
                        const std::atomic<bool>* stop) {
  Feed feed;
  feed.rows.width = description.dense ? description.features : 0;
  feed.rows.ClearRows();
  TRY(data::DriveInOrder(executor, source, [&](data::Rows& rows) -> Result<void> {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
    const data::Batch batch = rows.batch();
    for (std::size_t r = 0; r < batch.rows; ++r) feed.rows.AppendRow(batch, r);
    return {};
  }));
  if (feed.size() >= data::kUnseen) return Error{Code::kInvalid, "more rows than a replay can hold in memory"};
  feed.rows.samples.Clear();
  feed.description = description;
  if (feed.size() > 0) {
    const auto [least, most] = std::minmax_element(feed.rows.labels.data(), feed.rows.labels.data() + feed.size());
    feed.least_label = *least, feed.most_label = *most;
  }
  return feed;
}

Result<Course> Course::Make(const Feed& feed, const Options& options) {
  const std::size_t rows = feed.size();
  if (options.order == Order::kTime && feed.rows.times.size() != rows)
    return Error{Code::kInvalid,
                 Str("the rows have no times to order them by; name the column with ", Option("time-column"))};
  if (!(options.initial >= 0 && options.initial < 1))
    return Error{Code::kInvalid, Str("initial part ", options.initial, ": expected a share from 0 to below 1")};
  Course course(feed);
  course.order_ = Arrange(feed, options.order, options.seed);
  course.initial_ = static_cast<std::size_t>(options.initial * static_cast<double>(rows));
  course.tested_.resize(rows);
  if (options.test_rows >= rows)
    return Error{Code::kInvalid, Str(options.test_rows, " rows to test on, of ", rows, " there are")};
  base::Random random(options.seed, "test rows");
  LazyShuffle shuffle(rows, options.test_rows);
  for (std::uint64_t i = 0; i < options.test_rows; ++i) course.tested_[shuffle.Next(random)] = true;
  const bool begins = options.initial == 0 || !course.Trained(0, course.initial_).empty();
  if (!begins || course.Trained(course.initial_, rows).empty())
    return Error{Code::kBadInput, Str(rows, " rows are too few: there must be some to begin with and some to arrive")};
  if (feed.ratings()) course.Renumber();
  return course;
}

void Course::Renumber() {
  const data::Batch batch = feed_->rows.batch();
  std::uint32_t users = 0, items = 0;
  const auto number = [](std::vector<std::uint32_t>& numbers, std::uint32_t old, std::uint32_t& next) {
    if (old >= numbers.size()) numbers.resize(old + 1, data::kUnseen);
    if (numbers[old] == data::kUnseen) numbers[old] = next++;
  };
  for (std::size_t arrival = 0; arrival < size(); ++arrival) {
    if (tested_[arrival]) continue;
    const std::uint32_t* const entries = batch.indices + batch.offsets[order_[arrival]];
    number(users_, entries[0], users);
    number(items_, entries[1], items);
  }
}

std::vector<std::uint64_t> Course::Trained(std::size_t begin, std::size_t end) const {
  std::vector<std::uint64_t> arrivals;
  for (std::size_t arrival = begin; arrival < end; ++arrival)
    if (!tested_[arrival]) arrivals.push_back(arrival);
  return arrivals;
}

void Course::Append(std::size_t arrival, data::Rows& rows) const {
  rows.AppendRow(feed_->rows.batch(), order_[arrival]);
  if (users_.empty()) return;
  std::uint32_t* const entries = &rows.indices[rows.indices.size() - 2];
  entries[0] = entries[0] < users_.size() ? users_[entries[0]] : data::kUnseen;
  entries[1] = entries[1] < items_.size() ? items_[entries[1]] : data::kUnseen;
}

Result<void> Course::Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const {
  for (const std::uint64_t number : numbers) Append(number, rows);
  return {};
}

}  // namespace freshet::deploy
