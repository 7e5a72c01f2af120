#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/model.h"

namespace freshet::model {

// What more can be done with a model whose parameters may be spread over members, of whom none has all
// (Model::partials). Each looks at the same rows and says by a few numbers for each, its partials, what its own
// parameters make of them. Those of all are merged on the way from member to member, in any order; from what comes of
// that each goes on by itself: scores, loss, and the gradient of the parameters it has.
//
// `own` are the parameters of one member, cut as Cut says; `batch` is all rows, of which sparse ones have only the
// entries, and dense ones only the numbers, whose parameters are there, sparse entries by the numbers of their rows in
// `own`. Partials are width() floats a row.
class Partials {
 public:
  virtual ~Partials() = default;

  // What a member has of a block.
  enum class Cut {
    kFeatures,  // some of its rows, of which there is one for each feature of sparse rows
    kNumbers,   // a range of its columns, of which there is one for each number of dense rows
    kRows,      // a range of its rows, which is looked at with all of every row of data
    kFirst,     // all of it, if it is the first member, else nothing
    kAll,       // all of it, and every member makes the same of it
  };
  virtual Cut cut(std::size_t block) const = 0;
  virtual std::size_t width() const = 0;

  // Partials of rows that nobody has looked at yet.
  virtual void Begin(std::span<float> partials) const { std::fill(partials.begin(), partials.end(), 0.0f); }
  // Adds what this member makes of the rows to what others have made of them.
  virtual void Merge(const optimize::Parameters& own, const data::Batch& batch, Workspace& workspace,
                     std::span<float> partials) const = 0;
  // Of all rows of a step, with what all have made of them: turns partials into what AddGradient needs. Writes the scores
  // of the rows first … last-1 to `out` and returns their weighted loss. What is learned by looking at whole rows is
  // learned here (Model::Observe); the sizes of features are not.
  virtual double Close(optimize::Parameters& own, const data::Batch& batch, Workspace& workspace,
                       std::span<float> partials, std::size_t first, std::size_t last, std::span<float> out) const = 0;
  // Adds the gradient of the summed, weighted loss of the rows for the parameters that are there, for Model::Apply.
  virtual void AddGradient(const optimize::Parameters& own, const data::Batch& batch, Workspace& workspace,
                           std::span<const float> closed, optimize::Gradient& gradient) const = 0;
};

}  // namespace freshet::model
