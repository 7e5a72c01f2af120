#include "serve/tensor_rows.h"

#include <algorithm>

namespace freshet::serve {
namespace {

using data::RowBuilder;

Error Bad(const InputTensor& tensor, std::string_view text) {
  return {Code::kBadInput, tensor.where().Text().append(text)};
}

std::string ExpectedInputs(const Signature& signature) {
  std::vector<std::string> names;
  constexpr std::size_t kEnough = 8;
  for (const TensorSpec& spec : signature.inputs()) {
    names.push_back(names.size() == kEnough ? "…" : Quoted(spec.name));
    if (names.size() > kEnough) break;
  }
  return Join(names, ", ");
}

Result<void> CheckRows(const InputTensor& tensor, std::uint64_t rows) {
  if (rows <= TensorRows::kMostRows) return {};
  return Bad(tensor, Str(rows, " rows, expected at most ", TensorRows::kMostRows));
}

Result<const InputTensor*> Find(const std::vector<InputTensor>& inputs, std::string_view name) {
  for (const InputTensor& input : inputs)
    if (input.name == name) return &input;
  return Error{Code::kBadInput, Str("input ", Quoted(name), " is missing")};
}

// Whether a table of numbers comes as one tensor and not as columns, one of which may be called x as well.
bool IsWhole(const std::vector<InputTensor>& inputs, const RowBuilder& builder) {
  if (!builder.takes_columns()) return true;
  const auto& columns = builder.description().columns;
  const bool column = std::any_of(columns.begin(), columns.end(), [](const data::Column& c) { return c.name == "x"; });
  return inputs.size() == 1 && inputs[0].name == "x" &&
         (!column || (inputs[0].dimensions > 1 && inputs[0].row_size() == builder.description().features));
}

bool IsColumn(const InputTensor& tensor) {
  return tensor.dimensions == 1 || (tensor.dimensions == 2 && tensor.sizes[1] == 1);
}

// A tensor of another shape than a column's, by a name that no column has, was meant for something else: its name is
// wrong, not its shape.
Result<void> CheckNames(const std::vector<InputTensor>& inputs, const Signature& signature) {
  for (const InputTensor& input : inputs) {
    const auto& columns = signature.description().columns;
    const auto same = [&](const data::Column& column) { return column.name == input.name; };
    if (!IsColumn(input) && std::none_of(columns.begin(), columns.end(), same))
      return Bad(input, Str("the model has no such input, expected ", ExpectedInputs(signature)));
  }
  return {};
}

}  // namespace

Result<void> CheckColumn(const InputTensor& tensor, std::uint64_t rows) {
  if (IsColumn(tensor) && tensor.rows() == rows) return {};
  return Bad(tensor, Str("shape ", tensor.ShapeText(), ", expected [", rows, "] or [", rows, ",1]"));
}

Result<void> TensorRows::Build(const std::vector<InputTensor>& inputs, const Signature& signature, bool labelled,
                               data::Rows& rows, std::vector<data::NewName>& names) {
  const RowBuilder& builder = signature.builder();
  if (inputs.empty()) return Error{Code::kBadInput, Str("no inputs, expected ", ExpectedInputs(signature))};
  if (memory_.size() < inputs.size()) memory_.resize(inputs.size());
  names.clear();
  const bool whole = builder.form() == RowBuilder::Form::kNumbers && IsWhole(inputs, builder);
  if (!whole && builder.form() != RowBuilder::Form::kIndices) {
    TRY(CheckNames(inputs, signature));
    return FromColumns(inputs, builder, labelled, rows, names);
  }
  for (const InputTensor& input : inputs) {
    const auto same = [&](const TensorSpec& spec) { return spec.name == input.name; };
    if (std::none_of(signature.inputs().begin(), signature.inputs().end(), same))
      return Bad(input, Str("the model has no such input, expected ", ExpectedInputs(signature)));
  }
  return whole ? FromNumbers(inputs[0], builder, rows) : FromIndices(inputs, builder, rows);
}

Result<void> TensorRows::FromNumbers(const InputTensor& x, const RowBuilder& builder, data::Rows& rows) {
  const std::uint64_t features = builder.description().features;
  if (x.dimensions < 2 || x.row_size() != features)
    return Bad(x, Str("shape ", x.ShapeText(), ", expected [-1,", features, "]"));
  TRY(CheckRows(x, x.rows()));
  const auto values = TRY(ReadFloats(x, builder.allows_missing() ? Null::kMissing : Null::kRefused, memory_[0]));
  return builder.FromNumbers(values, rows);
}

Result<void> TensorRows::FromIndices(const std::vector<InputTensor>& inputs, const RowBuilder& builder,
                                     data::Rows& rows) {
  for (const InputTensor& input : inputs)
    if (input.dimensions != 1) return Bad(input, Str("shape ", input.ShapeText(), ", expected [-1]"));
  const InputTensor* const starts = TRY(Find(inputs, "indptr"));
  const InputTensor* const indices = TRY(Find(inputs, "indices"));
  const InputTensor* const values = TRY(Find(inputs, "values"));
  TRY(CheckRows(*starts, std::max<std::uint64_t>(starts->rows(), 1) - 1));
  return builder
      .FromIndices(TRY(ReadWholes(*starts, memory_[0])), TRY(ReadWholes(*indices, memory_[1])),
                   TRY(ReadFloats(*values, Null::kRefused, memory_[2])), rows)
      .While("reading inputs 'indptr', 'indices' and 'values'");
}

Result<void> TensorRows::FromColumns(const std::vector<InputTensor>& inputs, const RowBuilder& builder, bool labelled,
                                     data::Rows& rows, std::vector<data::NewName>& names) {
  const std::uint64_t count = inputs[0].rows(), columns = builder.description().columns.size();
  TRY(CheckRows(inputs[0], count));
  if (count * columns > kMostCells)
    return Bad(inputs[0],
               Str(count, " rows of ", columns, " columns, expected at most ", kMostCells / columns, " rows"));
  for (const InputTensor& input : inputs) TRY(CheckColumn(input, count));
  cells_.clear();
  for (const InputTensor& input : inputs) {
    ValueMemory& memory = memory_[cells_.size()];
    const Null null = builder.allows_missing() ? Null::kMissing : Null::kRefused;
    cells_.push_back({input.name, TRY(ReadValues(input, null, memory))});
  }
  return builder.FromColumns(count, cells_, labelled, rows, names);
}

}  // namespace freshet::serve
