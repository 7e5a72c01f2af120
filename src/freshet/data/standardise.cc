#include "data/standardise.h"

#include "data/images/augment.h"

namespace freshet::data {
namespace {

// The numeric columns of a row, which come first among its features.
float* NumbersOf(Rows& rows, std::size_t r) {
  return rows.width > 0 ? &rows.dense[r * rows.width] : &rows.values[rows.offsets[r]];
}

}  // namespace

void Standardise(Moments& moments, Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    float* const numbers = NumbersOf(rows, r);
    moments.Observe(numbers);
    moments.Apply(numbers);
  }
}

void Standardise(const Description& description, Rows& rows) {
  if (description.standardise) ApplyMoments(description.moments, rows);
  if (!description.view.any()) return;
  auto shown = Augment::Make(description, {});
  CHECK(shown.ok());  // a description that was loaded or made fits itself
  shown.value().ForPrediction(rows);
}

void ApplyMoments(const Moments& moments, Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) moments.Apply(NumbersOf(rows, r));
}

void ScaleLabels(const Description& description, Rows& rows) { description.target.Scale(rows.labels.span()); }

}  // namespace freshet::data
