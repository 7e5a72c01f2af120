#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "data/row_builder.h"

namespace freshet::data {

// What RowBuilder's files share: single values, as a parser would find them in a line of text.

inline constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

// A number as it would stand in a text: the shortest form that reads back the same.
class NumberText {
 public:
  NumberText() = default;
  template <class T>
  explicit NumberText(T number) : size_(Write(number)) {}
  std::string_view view() const { return {text_, size_}; }

 private:
  template <class T>
  std::size_t Write(T number) {
    return static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, number).ptr - text_);
  }
  char text_[32] = {};
  std::size_t size_ = 0;
};

enum class Found { kValue, kMissing, kWrong };

// The value at `row` as a number, by `mark` (see ParseMarked) where it is text, or as text (which may lie in `room`).
Found NumberAt(const Values& values, std::size_t row, char mark, double& number);
Found TextAt(const Values& values, std::size_t row, NumberText& room, std::string_view& text);
// The label at `row` as the model sees it; not finite when it is none.
float MapLabel(const Values& values, std::size_t row, const Description& description);
float MapLabel(std::string_view text, const Description& description);
// The name in canonical form of a label that is none of the known; nothing where that cannot be one: empty, not a
// finite number, no UTF-8, more than 128 bytes.
std::optional<std::string> NewLabelIn(std::string_view text, const Description& description);
std::optional<std::string> NewLabelIn(const Values& values, std::size_t row, const Description& description);
// The value at `row`, for an error.
std::string CellText(const Values& values, std::size_t row);

// Clears `rows` for `count` rows without labels; sparse when the width is 0.
void StartRows(std::size_t count, std::size_t width, Rows& rows);

// Categories of all columns share one dictionary; the column's number keeps their values apart. The key lies in `room`.
std::string_view CategoryKey(std::uint32_t space, std::string_view name, Buffer<char>& room);
// Which feature a name is, when its dictionary has it as `number`; kUnseen for kUnseen.
std::uint32_t FeatureOf(const Description& description, std::uint32_t space, std::uint32_t number);

}  // namespace freshet::data
