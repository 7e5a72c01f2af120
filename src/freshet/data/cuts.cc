#include "data/cuts.h"

#include <algorithm>
#include <numeric>

namespace freshet::data {

Cuts EvenCuts(std::uint64_t bytes, std::uint64_t parts) {
  Cuts cuts;
  for (std::uint64_t k = 0; k <= parts; ++k)
    cuts.push_back(static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * k / parts));
  return cuts;
}

Cuts CutsByRows(std::uint64_t bytes, std::span<const double> rows, std::uint64_t parts) {
  const double each = std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(parts);
  Cuts cuts = EvenCuts(bytes, parts);
  if (each == 0) return cuts;
  const Cuts edges = EvenCuts(bytes, rows.size());
  std::size_t place = 0;
  double before = 0;  // rows before `place`
  for (std::uint64_t k = 1; k < parts; ++k) {
    const double wanted = each * static_cast<double>(k);
    while (place + 1 < rows.size() && before + rows[place] <= wanted) before += rows[place++];
    const double share = rows[place] > 0 ? std::clamp((wanted - before) / rows[place], 0.0, 1.0) : 0;
    cuts[k] = edges[place] + static_cast<std::uint64_t>(share * static_cast<double>(edges[place + 1] - edges[place]));
  }
  return cuts;
}

void RowsByPlace::Add(std::uint64_t begin, std::uint64_t end, std::uint64_t rows) {
  if (begin >= end || rows == 0) return;
  const double each = static_cast<double>(rows) / static_cast<double>(end - begin);
  const auto first = std::upper_bound(edges_.begin(), edges_.end(), begin) - edges_.begin() - 1;
  for (auto place = static_cast<std::size_t>(first); place < rows_.size() && edges_[place] < end; ++place)
    rows_[place] += each * static_cast<double>(std::min(end, edges_[place + 1]) - std::max(begin, edges_[place]));
}

double Imbalance(std::span<const double> rows) {
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  if (sum == 0) return 0;
  return *std::max_element(rows.begin(), rows.end()) * static_cast<double>(rows.size()) / sum - 1;
}

}  // namespace freshet::data
