#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"

namespace freshet::data {

// Made-up data of known difficulty. Everything is drawn from counters, so that row n of a seed is the same bytes
// whatever is generated before it: a shorter file is the beginning of a longer one (with the same drift_rows), and a
// test set is the rows after the training set.
//   sea         CSV x1,x2,x3,label. Label 1 when x1 + x2 > theta, which is 8, 9, 7, 9.5 in turn; 10 % noise.
//               (Street and Kim, "A Streaming Ensemble Algorithm for Large-Scale Classification", 2001)
//   hyperplane  CSV x1,…,label. Label 1 above a plane through the middle that turns steadily; 5 % noise.
//   url-like    LIBSVM with the shape of the URL Reputation set: 3,231,961 features, about 100 of them in a row; a
//               third of the labels are +1, by a linear model; 3 % noise.
//   ratings     user::item::rating::timestamp. A few users and items are popular (those with low numbers), many are
//               not. Mean 3.5, biases, 8 factors and noise of sd 0.7, rounded to 1 … 5.
//   grammar     text for sequence models, a sentence a row: see data/grammar.h. Every seed speaks the same language.
struct GenerateOptions {
  std::string kind;
  std::uint64_t rows = 0;
  std::uint64_t seed = 1;
  std::uint64_t first_row = 0;   // counted from 0; 1,000 goes on where 1,000 rows ended
  std::uint64_t drift_rows = 0;  // sea: length of a concept; hyperplane: of a quarter turn. 0: a quarter of `rows`
  std::uint64_t features = 10;   // hyperplane
  std::uint64_t users = 6040;    // ratings
  std::uint64_t items = 3706;
};

// Writes a header, where the kind has one, and the rows. kInvalid for options that make no sense; else as `out` fails.
Result<void> Generate(const GenerateOptions& options, base::OutputFile& out);

std::vector<std::string> GeneratorKinds();

}  // namespace freshet::data
