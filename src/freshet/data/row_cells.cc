#include "data/row_cells.h"

#include <algorithm>
#include <type_traits>

#include "base/utf8.h"
#include "data/formats/csv_parser.h"
#include "data/number.h"

namespace freshet::data {

Found NumberAt(const Values& values, std::size_t row, char mark, double& number) {
  return std::visit(
      [&]<class T>(std::span<const T> span) {
        if constexpr (std::is_same_v<T, std::string_view>) {
          if (IsMissingNumber(span[row])) return Found::kMissing;
          return ParseMarked(span[row], mark, number) ? Found::kValue : Found::kWrong;
        } else {
          number = static_cast<double>(span[row]);
          return std::isnan(number) ? Found::kMissing : Found::kValue;
        }
      },
      values);
}

Found TextAt(const Values& values, std::size_t row, NumberText& room, std::string_view& text) {
  return std::visit(
      [&]<class T>(std::span<const T> span) {
        if constexpr (std::is_same_v<T, std::string_view>) {
          text = span[row];
        } else {
          if constexpr (std::is_floating_point_v<T>)
            if (std::isnan(span[row])) return Found::kMissing;
          room = NumberText(span[row]);
          text = room.view();
        }
        return text.find('\0') == std::string_view::npos ? Found::kValue : Found::kWrong;
      },
      values);
}

float MapLabel(std::string_view text, const Description& description) {
  double number = 0;
  if (description.decimal == ',' && ParseMarked(text, ',', number)) return description.labels.Map(number);
  return description.labels.Map(text);
}

float MapLabel(const Values& values, std::size_t row, const Description& description) {
  const Labels& labels = description.labels;
  return std::visit(
      [&]<class T>(std::span<const T> span) {
        if constexpr (std::is_same_v<T, std::string_view>) return MapLabel(span[row], description);
        // Labels are compared as doubles, and 0.1f is not 0.1: as a text it is.
        if constexpr (std::is_same_v<T, float>)
          if (labels.kind != Labels::Kind::kReal) return labels.Map(NumberText(span[row]).view());
        if constexpr (!std::is_same_v<T, std::string_view>) return labels.Map(static_cast<double>(span[row]));
      },
      values);
}

std::optional<std::string> NewLabelIn(std::string_view text, const Description& description) {
  constexpr std::size_t kMostBytes = 128;
  double number = 0;
  if (text.empty() || text.size() > kMostBytes || !base::IsUtf8(text)) return std::nullopt;
  std::string name = CanonicalLabel(text, description.decimal);
  if (ParseNumber(name, number) && !std::isfinite(number)) return std::nullopt;
  return name;
}

std::optional<std::string> NewLabelIn(const Values& values, std::size_t row, const Description& description) {
  return std::visit(
      [&]<class T>(std::span<const T> span) {
        if constexpr (std::is_same_v<T, std::string_view>)
          return NewLabelIn(span[row], description);
        else
          return NewLabelIn(NumberText(span[row]).view(), description);
      },
      values);
}

std::string CellText(const Values& values, std::size_t row) {
  return std::visit(
      [&]<class T>(std::span<const T> span) {
        if constexpr (std::is_same_v<T, std::string_view>)
          return Quoted(span[row]);
        else
          return Str(span[row]);
      },
      values);
}

void StartRows(std::size_t count, std::size_t width, Rows& rows) {
  rows.Clear();
  rows.width = width;
  rows.labels.Resize(count);
  std::fill_n(rows.labels.data(), count, kNoValue);
}

std::string_view CategoryKey(std::uint32_t space, std::string_view name, Buffer<char>& room) {
  const NumberText number(space);
  room.Clear();
  room.Append(std::span<const char>(number.view()));
  room.Append('=');
  room.Append(std::span<const char>(name));
  return {room.data(), room.size()};
}

std::uint32_t FeatureOf(const Description& description, std::uint32_t space, std::uint32_t number) {
  if (number == kUnseen) return kUnseen;
  if (description.format != "ratings") return number + static_cast<std::uint32_t>(description.features);
  return description.joint_ids ? number * 2 + space : number;
}

}  // namespace freshet::data
