#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/model.h"

namespace freshet::model {

// One rating as the stratified trainer holds it.
struct Rating {
  std::uint32_t user, item;
  float label;
};

// What more can be done with a model of ratings, whose rows are a user and an item each (Model::ratings).
class Ratings {
 public:
  virtual ~Ratings() = default;

  // Is there a mean of ratings yet? If not, takes that of `count` of them for it.
  virtual bool KnowsMean(const optimize::Parameters& parameters) const = 0;
  virtual void StartMean(optimize::Parameters& parameters, double mean, std::uint64_t count) const = 0;
  // One update for each rating, in order; returns the summed loss before each. Touches only the rows of the users and
  // items named: threads whose ratings share none may run at once, each with an optimizer sibling. The mean and the
  // rate stay the same throughout.
  virtual double UpdateRatings(optimize::Parameters& parameters, std::span<const Rating> ratings,
                               optimize::Optimizer& optimizer, Workspace& workspace) const = 0;
  // The blocks whose rows are users, and those whose rows are items.
  virtual std::vector<std::size_t> UserBlocks() const = 0;
  virtual std::vector<std::size_t> ItemBlocks() const = 0;
  // The k items a user would rate highest, best first, leaving out `seen` (sorted). Looks at every item.
  virtual std::vector<std::pair<std::uint32_t, float>> Recommend(const optimize::Parameters& parameters,
                                                                 std::uint32_t user,
                                                                 std::span<const std::uint32_t> seen,
                                                                 std::size_t k) const = 0;
};

}  // namespace freshet::model
