#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "data/description.h"
#include "data/formats/csv_parser.h"
#include "data/rows.h"

namespace freshet::data {

// A name that no dictionary has: entry `entry` of the rows is kUnseen until it enters dictionary `space` (ratings: 0
// for users, 1 for items; tables: the number of the category column).
struct NewName {
  std::uint32_t entry = 0, space = 0;
  std::string name;
};

// A label that is none of the names and may become one, in canonical form.
struct NewLabel {
  std::size_t row = 0;
  std::string name;
};

// Numbers, whole numbers or texts that somebody else owns. NaN is a missing value, and so are "", "NA" … in a table.
using Values = std::variant<std::span<const float>, std::span<const double>, std::span<const std::int64_t>,
                            std::span<const std::string_view>>;
inline std::size_t SizeOf(const Values& values) {
  return std::visit([](const auto& span) { return span.size(); }, values);
}

// One column of a table: a cell for each row.
struct Cells {
  std::string_view name;
  Values values;
};

// Builds rows from values that are not lines of text, exactly as the parser of the description's format would from a
// line with these values. Rows come out as from Reader::Finish: names resolved, nothing standardised, but without
// sample numbers; labels are NaN where there are none. Every call replaces what `rows` held and reuses its memory.
//
// Ownership: borrows the description, which holds together (a Reader could be opened with it) and outlives it.
// Threads:   any, as long as nobody changes the description.
// Failure:   kBadInput saying which row (counted from `first`), what was found and what was expected; `rows` is then
// anything.
class RowBuilder {
 public:
  // How rows may be given: `features` numbers each; indices with values; columns by name. All tables and ratings take
  // columns; a table without categories takes numbers as well.
  enum class Form { kNumbers, kIndices, kColumns };

  explicit RowBuilder(const Description& description, std::uint64_t first = 0);
  const Description& description() const { return description_; }
  Form form() const { return form_; }
  bool takes_columns() const { return !fields_.empty(); }
  bool allows_missing() const { return description_.format == "csv"; }

  // Row-major and raw: the description's scale is applied here. Form kNumbers; the caller sees to whole rows.
  Result<void> FromNumbers(std::span<const float> values, Rows& rows) const;

  // Row r has the entries starts[r] … starts[r+1]-1. Indices as a user of the format writes them: LIBSVM's count from
  // index_base and ascend, VW's are features of the unnamed namespace. Form kIndices.
  Result<void> FromIndices(std::span<const std::int64_t> starts, std::span<const std::int64_t> indices,
                           std::span<const float> values, Rows& rows) const;

  // Columns of `count` cells each (the caller sees to that), in any order. One that is left out is missing in every
  // row; one that the description does not know is an error. Labels, weights and times may be among them: with
  // `labelled` every row needs a label, else one that is not known counts as none. New names go to `names`, in the
  // order of entries.
  Result<void> FromColumns(std::size_t count, std::span<const Cells> columns, bool labelled, Rows& rows,
                           std::vector<NewName>& names) const;

  // Labels for all rows, given beside them. Those that are none of the names go to `fresh`, where it is given, and are
  // kUnknown in the rows.
  Result<void> SetLabels(const Values& labels, Rows& rows, std::vector<NewLabel>* fresh = nullptr) const;
  // One label as the model sees it; kBadInput naming those that are known.
  Result<float> Label(double number) const;
  Result<float> Label(std::string_view text) const;

 private:
  class Filler;
  Result<std::vector<const Cells*>> Match(std::span<const Cells> columns) const;

  const Description& description_;
  const std::uint64_t first_;  // the number of the first row, in what is said of it
  Form form_;
  std::vector<CsvField> fields_;        // as the description's columns; of tables and ratings only
  std::vector<std::uint32_t> by_name_;  // numbers of the columns, by name
};

// Enters new names into the dictionaries, in order, and gives their entries in `rows` the numbers they got.
void AddNames(std::span<const NewName> names, Description& description, Rows& rows);

}  // namespace freshet::data
