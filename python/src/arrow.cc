#include "arrow.h"

#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "attend.h"

namespace nb = nanobind;

// As the specification has it: https://arrow.apache.org/docs/format/CDataInterface.html
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace freshet::python {
namespace {

using data::ColumnPiece;
using Type = data::Numbers::Type;

// One of Arrow's structs, released in the end.
template <class T>
struct Owned {
  T value{};
  Owned() = default;
  Owned(const Owned&) = delete;
  ~Owned() {
    if (value.release != nullptr) value.release(&value);
  }
};

// What keeps columns where they are: the batches of a stream, and what was copied of them.
struct Kept {
  std::deque<Owned<ArrowArray>> batches;
  std::deque<std::vector<std::uint8_t>> bytes;
  std::deque<std::vector<std::int64_t>> starts;
  std::deque<std::string> texts;
};

[[noreturn]] void Refuse(const std::string& column, std::string_view format) {
  Raise({Code::kInvalid, Str("column ", Quoted(column), " is of Arrow's type ", Quoted(format),
                             ", expected numbers, bools, texts or categories of texts; cast or drop it")});
}

// The type of plain numbers by Arrow's letter for it; nothing for others.
std::optional<std::pair<Type, std::ptrdiff_t>> NumbersBy(std::string_view format) {
  if (format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case 'c':
      return {{Type::kI8, 1}};
    case 'C':
      return {{Type::kU8, 1}};
    case 's':
      return {{Type::kI16, 2}};
    case 'S':
      return {{Type::kU16, 2}};
    case 'i':
      return {{Type::kI32, 4}};
    case 'I':
      return {{Type::kU32, 4}};
    case 'l':
      return {{Type::kI64, 8}};
    case 'L':
      return {{Type::kU64, 8}};
    case 'f':
      return {{Type::kF32, 4}};
    case 'g':
      return {{Type::kF64, 8}};
    default:
      return std::nullopt;
  }
}

// Rows offset … offset+length-1 of an array.
class Reading {
 public:
  Reading(const std::string& column, Kept& kept) : column_(column), kept_(kept) {}

  ColumnPiece Read(const ArrowSchema& schema, const ArrowArray& array, std::int64_t offset, std::int64_t length) {
    ColumnPiece piece;
    piece.rows = static_cast<std::uint64_t>(length);
    offset += array.offset;
    if (array.null_count != 0 && array.n_buffers > 0 && array.buffers[0] != nullptr) {
      piece.valid = static_cast<const std::uint8_t*>(array.buffers[0]);
      piece.first_bit = static_cast<std::uint64_t>(offset);
    }
    const std::string_view format = schema.format;
    if (schema.dictionary != nullptr) {
      if (!NumbersBy(format)) Refuse(column_, format);
      const ArrowArray& names = *array.dictionary;
      auto texts = Read(*schema.dictionary, names, 0, names.length);
      if (texts.bytes == nullptr) Refuse(column_, Str("dictionary of ", schema.dictionary->format));
      piece.dictionary = std::make_shared<ColumnPiece>(std::move(texts));
    }
    if (const auto numbers = NumbersBy(format))
      piece.numbers = {static_cast<const std::byte*>(array.buffers[1]) + offset * numbers->second, numbers->first,
                       numbers->second};
    else if (format == "b")
      piece.numbers = Bits(static_cast<const std::uint8_t*>(array.buffers[1]), offset, length);
    else if (format == "u" || format == "U")
      ReadTexts(format == "u" ? Type::kI32 : Type::kI64, array, offset, piece);
    else if (format == "vu")
      ReadViews(array, offset, length, piece);
    else if (format == "n")
      piece.numbers = Missing(length, piece);
    else
      Refuse(column_, format);
    return piece;
  }

 private:
  data::Numbers Bits(const std::uint8_t* bits, std::int64_t offset, std::int64_t length) {
    auto& bytes = kept_.bytes.emplace_back();
    for (std::int64_t i = offset; i < offset + length; ++i) bytes.push_back((bits[i / 8] >> (i % 8)) & 1);
    return {reinterpret_cast<const std::byte*>(bytes.data()), Type::kU8, 1};
  }

  data::Numbers Missing(std::int64_t length, ColumnPiece& piece) {
    const auto& bytes = kept_.bytes.emplace_back(static_cast<std::size_t>(length) + 1);
    piece.valid = bytes.data();
    piece.first_bit = 0;
    return {reinterpret_cast<const std::byte*>(bytes.data()), Type::kU8, 1};
  }

  static void ReadTexts(Type type, const ArrowArray& array, std::int64_t offset, ColumnPiece& piece) {
    const std::ptrdiff_t size = type == Type::kI32 ? 4 : 8;
    piece.numbers = {static_cast<const std::byte*>(array.buffers[1]) + offset * size, type, size};
    piece.bytes = array.buffers[2] == nullptr ? "" : static_cast<const char*>(array.buffers[2]);
  }

  // Texts of up to 12 bytes stand in their view, others in one of several buffers: brought into one place.
  void ReadViews(const ArrowArray& array, std::int64_t offset, std::int64_t length, ColumnPiece& piece) {
    struct View {
      std::int32_t size;
      char head[4];
      std::int32_t buffer, begin;
    };
    static_assert(sizeof(View) == 16);
    constexpr std::int32_t kWithin = 12;
    auto& starts = kept_.starts.emplace_back(1, 0);
    auto& text = kept_.texts.emplace_back();
    const auto* const views = static_cast<const View*>(array.buffers[1]) + offset;
    for (std::int64_t i = 0; i < length; ++i) {
      const View& view = views[i];
      const auto bit = static_cast<std::uint64_t>(offset + i);
      const bool there = piece.valid == nullptr || ((piece.valid[bit / 8] >> (bit % 8)) & 1) != 0;
      if (there && view.size <= kWithin)
        text.append(view.head, static_cast<std::size_t>(view.size));
      else if (there)
        text.append(static_cast<const char*>(array.buffers[2 + view.buffer]) + view.begin,
                    static_cast<std::size_t>(view.size));
      starts.push_back(static_cast<std::int64_t>(text.size()));
    }
    piece.numbers = {reinterpret_cast<const std::byte*>(starts.data()), Type::kI64, 8};
    piece.bytes = text.c_str();
  }

  const std::string& column_;
  Kept& kept_;
};

void Check(ArrowArrayStream& stream, int code) {
  if (code == 0) return;
  const char* const why = stream.get_last_error(&stream);
  Raise({Code::kBadInput, Str("the Arrow stream failed: ", why == nullptr ? std::strerror(code) : why)});
}

}  // namespace

std::vector<data::TableColumn> ColumnsOf(nb::handle capsule, std::vector<nb::object>& kept) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  auto holder = std::make_unique<Kept>();
  Owned<ArrowSchema> schema;
  Check(*stream, stream->get_schema(stream, &schema.value));
  if (std::string_view(schema.value.format) != "+s")
    Raise({Code::kInvalid, "the Arrow stream is one of single values, expected a table with columns"});
  std::vector<data::TableColumn> columns;
  for (std::int64_t c = 0; c < schema.value.n_children; ++c) columns.push_back({schema.value.children[c]->name, {}});
  for (;;) {
    auto& batch = holder->batches.emplace_back();
    Check(*stream, stream->get_next(stream, &batch.value));
    if (batch.value.release == nullptr) break;
    for (std::size_t c = 0; c < columns.size(); ++c)
      columns[c].pieces.push_back(
          Reading(columns[c].name, *holder)
              .Read(*schema.value.children[c], *batch.value.children[c], batch.value.offset, batch.value.length));
  }
  kept.push_back(nb::capsule(holder.release(), [](void* at) noexcept { delete static_cast<Kept*>(at); }));
  return columns;
}

}  // namespace freshet::python
