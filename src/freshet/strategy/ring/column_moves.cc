#include "strategy/ring/column_moves.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "fabric/collectives/transfers.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::string_view kDoing = "moving columns to a neighbour";

}  // namespace

void ColumnMoves::BeginStep() {
  rounds_.BeginStep();
  if (rounds_.starts()) {
    seconds_ = 0;
    steps_ = 0;
    met_.assign(met_.size(), 0);
  }
  if (rounds_.ends() && steps_ > 0) busy_ = seconds_ / static_cast<double>(steps_);
}

void ColumnMoves::Worked(base::Clock::Duration took, const data::Batch& rows) {
  if (!rounds_.measures()) return;
  seconds_ += base::Seconds(took);
  ++steps_;
  if (!rows.sparse()) return;
  for (std::uint32_t e = rows.offsets[0]; e < rows.offsets[rows.rows]; ++e) {
    const std::size_t range = rows.indices[e] / Spread::kRangeRows;
    if (range >= met_.size()) met_.resize(range + 1, 0);
    ++met_[range];
  }
}

ColumnMoves::Columns ColumnMoves::Choose(Spread& spread, double mine, double theirs) const {
  if (spread.cut_length() == 0) return ChooseFeatures(spread, mine, theirs);
  const Spread::Range held = spread.RangeOf(rank_);
  std::vector<Offer> offers;
  for (std::uint64_t columns = 1; columns < held.size(); ++columns)  // one stays
    offers.push_back({mine * static_cast<double>(columns) / static_cast<double>(held.size()), 0});
  const std::size_t best = BestOffer(offers, mine, theirs);
  if (best == offers.size()) return {};
  const auto first = static_cast<std::uint32_t>(held.first), last = static_cast<std::uint32_t>(held.last),
             columns = static_cast<std::uint32_t>(best + 1);
  return partner() > 0 ? Columns{last - columns, last} : Columns{first, first + columns};
}

// Those that met the most come first, so that few move; but none that alone would be too much.
ColumnMoves::Columns ColumnMoves::ChooseFeatures(Spread& spread, double mine, double theirs) const {
  const auto all = static_cast<double>(std::accumulate(met_.begin(), met_.end(), std::uint64_t{0}));
  const auto seconds = [&](std::size_t range) { return mine * static_cast<double>(met_[range]) / all; };
  std::vector<std::size_t> order;
  for (std::size_t range = 0; range < met_.size(); ++range)
    if (met_[range] > 0 && seconds(range) <= (mine - theirs) / 2) order.push_back(range);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return met_[a] != met_[b] ? met_[a] > met_[b] : a < b; });
  std::vector<Offer> offers;
  double sum = 0;
  for (const std::size_t range : order) offers.push_back({sum += seconds(range), 0});
  const std::size_t best = BestOffer(offers, mine, theirs);
  if (best == offers.size()) return {};
  order.resize(best + 1);
  std::sort(order.begin(), order.end());
  Columns columns;
  std::size_t at = 0;  // of those that lie here, in the order of their numbers
  for (std::uint32_t range = 0; columns.size() < order.size(); ++range) {
    if (spread.OwnerOfRange(range) != rank_) continue;
    if (at++ == order[columns.size()]) columns.push_back(range);
  }
  return columns;
}

Result<std::uint64_t> ColumnMoves::Meet(fabric::Fabric& fabric, fabric::Tag tag, double mine, double theirs,
                                        OwnPart& own) {
  if (!(mine > 0) || !(theirs > 0) || !Unequal(mine, theirs)) return std::uint64_t{0};
  std::uint64_t sent = 0;
  if (mine > theirs)
    sent = TRY(Give(fabric, tag, Choose(own.spread(), mine, theirs), own));
  else
    TRY(TakeSome(fabric, tag, own));
  met_.clear();  // they lie elsewhere now
  return sent;
}

// How many numbers say which columns it is, those, and the columns.
Result<std::uint64_t> ColumnMoves::Give(fabric::Fabric& fabric, fabric::Tag tag, const Columns& columns,
                                        OwnPart& own) const {
  Columns letter{static_cast<std::uint32_t>(columns.size())};
  letter.insert(letter.end(), columns.begin(), columns.end());
  if (!columns.empty()) {
    own.GiveBack();
    const std::vector<float> values = own.Gather(columns);
    letter.resize(letter.size() + values.size());
    const std::span<std::uint32_t> room = std::span(letter).last(values.size());
    if (!values.empty()) std::memcpy(room.data(), values.data(), room.size_bytes());
  }
  fabric::Transfers transfers(fabric, tag, kDoing);
  TRY(transfers.Wait(TRY(transfers.SendAny(rank_ + partner(), std::as_bytes(std::span(letter))))));
  if (columns.empty()) return std::uint64_t{0};
  own.spread().Move(columns, rank_, rank_ + partner());
  TRY(own.Recut());
  return letter.size() * sizeof letter[0];
}

Result<void> ColumnMoves::TakeSome(fabric::Fabric& fabric, fabric::Tag tag, OwnPart& own) const {
  const int with = rank_ + partner();
  std::vector<std::uint32_t> letter;
  {
    fabric::Transfers transfers(fabric, tag, kDoing);
    const auto lent = TRY(transfers.Borrow(with));
    const fabric::Arrived arrived = TRY(transfers.Wait(lent));
    letter.resize(arrived.view.size() / sizeof letter[0]);
    if (!letter.empty()) std::memcpy(letter.data(), arrived.view.data(), letter.size() * sizeof letter[0]);
    transfers.Release(lent);
  }
  const Error damaged{Code::kCorrupt, Str("rank ", with, " gave columns that it cannot have to rank ", rank_)};
  if (letter.empty() || letter[0] >= letter.size()) return damaged;
  if (letter[0] == 0) return {};
  const Columns columns(letter.begin() + 1, letter.begin() + 1 + letter[0]);
  std::vector<float> values(letter.size() - 1 - columns.size());
  if (!values.empty()) std::memcpy(values.data(), letter.data() + 1 + columns.size(), values.size() * sizeof values[0]);
  if (!own.spread().MayMove(columns, with, rank_)) return damaged;
  own.GiveBack();
  if (!own.Scatter(columns, values)) return damaged;
  own.spread().Move(columns, with, rank_);
  return own.Recut();
}

}  // namespace freshet::strategy::ring
