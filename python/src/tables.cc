#include "tables.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrow.h"
#include "attend.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

data::Numbers::Type TypeOf(const Array& array) {
  using Type = data::Numbers::Type;
  const auto is = [&](auto zero) { return array.dtype() == nb::dtype<decltype(zero)>(); };
  if (is(float())) return Type::kF32;
  if (is(double())) return Type::kF64;
  if (is(std::int8_t())) return Type::kI8;
  if (is(std::uint8_t())) return Type::kU8;
  if (is(std::int16_t())) return Type::kI16;
  if (is(std::uint16_t())) return Type::kU16;
  if (is(std::int32_t())) return Type::kI32;
  if (is(std::uint32_t())) return Type::kU32;
  if (is(std::int64_t())) return Type::kI64;
  if (is(std::uint64_t())) return Type::kU64;
  throw nb::type_error("an array of another type than float32, float64 or whole numbers of 8 to 64 bits");
}

// Along its last dimension.
data::Numbers NumbersIn(const Array& array) {
  const auto size = static_cast<std::ptrdiff_t>(array.itemsize());
  return {static_cast<const std::byte*>(array.data()), TypeOf(array), array.stride(array.ndim() - 1) * size};
}

// The caller has seen to it that what follows the first dimension lies in rows that are evenly spaced.
Table Dense(const nb::object& object, std::vector<std::string> names) {
  const auto array = nb::cast<Array>(object);
  std::vector<std::uint64_t> shape;
  for (std::size_t d = 1; d < array.ndim(); ++d) shape.push_back(array.shape(d));
  const auto row = array.stride(0) * static_cast<std::ptrdiff_t>(array.itemsize());
  return {data::DenseTable(array.shape(0), std::move(shape), NumbersIn(array), row, std::move(names)), {object}};
}

Table Sparse(const nb::object& starts, const nb::object& indices, const nb::object& values, std::uint64_t columns) {
  const auto begins = nb::cast<Array>(starts);
  return {data::SparseTable(begins.shape(0) - 1, columns, NumbersIn(begins), NumbersIn(nb::cast<Array>(indices)),
                            NumbersIn(nb::cast<Array>(values))),
          {starts, indices, values}};
}

// Columns that are arrays of one dimension; texts as places (the array) among names, which lie one after another in
// `bytes`, each up to where the next starts.
Table Columns(const nb::list& named, const std::string& label) {
  Table table;
  std::vector<data::TableColumn> columns;
  for (const nb::handle one : named) {
    const auto parts = nb::cast<nb::tuple>(one);
    const auto array = nb::cast<Array>(parts[1]);
    data::ColumnPiece piece{.rows = array.shape(0), .numbers = NumbersIn(array)};
    if (parts.size() > 2) {
      const auto starts = nb::cast<Array>(parts[2]);
      const auto bytes = nb::cast<nb::bytes>(parts[3]);
      piece.dictionary = std::make_shared<data::ColumnPiece>(data::ColumnPiece{
          .rows = starts.shape(0) - 1, .numbers = NumbersIn(starts), .bytes = static_cast<const char*>(bytes.data())});
    }
    columns.push_back({nb::cast<std::string>(parts[0]), {std::move(piece)}});
    table.kept.push_back(nb::borrow<nb::object>(one));
  }
  table.native = ValueOf(data::ColumnTable(std::move(columns), label));
  return table;
}

Table FromArrow(nb::handle capsule, const std::string& label) {
  Table table;
  auto columns = ColumnsOf(capsule, table.kept);
  std::erase_if(columns, [](const auto& column) { return column.name.starts_with("__index_level_"); });  // of pandas
  table.native = ValueOf(data::ColumnTable(std::move(columns), label));
  return table;
}

void SetLabels(Table& table, const nb::object& numbers, std::vector<std::string> names) {
  table.native->labels = data::Table::Labels{NumbersIn(nb::cast<Array>(numbers)), std::move(names)};
  table.kept.push_back(numbers);
}

void SetWeights(Table& table, const nb::object& weights) {
  table.native->weights = NumbersIn(nb::cast<Array>(weights));
  table.kept.push_back(weights);
}

}  // namespace

void BindTables(nb::module_& module) {
  nb::class_<Table>(module, "Table")
      .def_prop_ro("rows", [](const Table& table) { return table.native->rows(); })
      .def("set_labels", &SetLabels, nb::arg("numbers"), nb::arg("names"))
      .def("set_weights", &SetWeights, nb::arg("weights"));
  module.def("dense", &Dense, nb::arg("array"), nb::arg("names"));
  module.def("columns", &Columns, nb::arg("named"), nb::arg("label"));
  module.def("from_arrow", &FromArrow, nb::arg("capsule"), nb::arg("label"));
  module.def("sparse", &Sparse, nb::arg("starts"), nb::arg("indices"), nb::arg("values"), nb::arg("columns"));
}

}  // namespace freshet::python
