// Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances".

#include "data/merge_moments.h"

#include "base/check.h"

namespace freshet::data {

Moments Merged(const Moments& first, const Moments& second) {
  const std::size_t columns = first.columns();
  CHECK(second.columns() == columns);
  std::vector<double> sum = first.Save();
  const std::vector<double> more = second.Save();
  // As saved: the rows; of every column its count, its mean and its squared distances; factors.
  const std::size_t counts = 1, means = counts + columns, squares = means + columns;
  sum[0] += more[0];
  for (std::size_t j = 0; j < columns; ++j) {
    const double before = sum[counts + j], count = before + more[counts + j];
    if (count == 0) continue;
    const double difference = more[means + j] - sum[means + j], share = more[counts + j] / count;
    sum[squares + j] += more[squares + j] + difference * difference * before * share;
    sum[means + j] += difference * share;
    sum[counts + j] = count;
  }
  sum.back() = 0;  // the factors are due
  return Moments::Load(sum);
}

}  // namespace freshet::data
