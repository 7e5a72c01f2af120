#include "data/others.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/option.h"
#include "data/description.h"

namespace freshet::data {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> Distinct(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// Texts of any bytes as one, each after its length.
std::string Packed(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += Str(text.size(), ":", text);
  return out;
}

Result<void> Unpack(std::string_view packed, std::vector<std::string>& texts) {
  while (!packed.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(packed.data(), packed.data() + packed.size(), size);
    const auto used = static_cast<std::size_t>(end - packed.data()) + 1;
    if (error != std::errc{} || used > packed.size() || *end != ':' || size > packed.size() - used)
      return Error{Code::kCorrupt, "a list of texts that another worker sent is damaged"};
    texts.emplace_back(packed.substr(used, size));
    packed.remove_prefix(used + size);
  }
  return {};
}

template <class Number>
std::string BytesOf(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

template <class Number>
Result<std::vector<Number>> NumbersOf(const std::string& bytes) {
  if (bytes.size() % sizeof(Number) != 0) return Error{Code::kCorrupt, "numbers that another worker sent are damaged"};
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Where two descriptions contradict each other, in words; "" where they do not.
std::string Difference(const Json& first, const Json& other, const std::string& name, const std::string& other_name) {
  Json keys = first;  // what one description leaves out the other may have
  keys.update(other);
  keys.erase("version");  // follows from the rest
  for (const auto& entry : keys.items()) {
    const std::string& key = entry.key();
    const Json value = first.value(key, Json()), theirs = other.value(key, Json());
    if (value == theirs) continue;
    if (key == "columns") {
      for (std::size_t i = 0; i < std::min(value.size(), theirs.size()); ++i)
        if (value[i] != theirs[i])
          return Str("column ", i + 1, " is ", value[i]["name"].dump(), ", a ", value[i]["kind"].get<std::string>(),
                     ", for ", name, " and ", theirs[i]["name"].dump(), ", a ", theirs[i]["kind"].get<std::string>(),
                     ", for ", other_name);
      return Str(value.size(), " columns for ", name, " and ", theirs.size(), " for ", other_name);
    }
    return Str(key, " is ", value.dump(), " for ", name, " and ", theirs.dump(), " for ", other_name);
  }
  return "";
}

}  // namespace

Result<std::vector<std::string>> AgreeOnLabels(Others& others, const std::vector<std::string>& seen) {
  std::vector<std::string> all;
  for (const std::string& packed : TRY(others.Tell("labels", Packed(Distinct(seen))))) TRY(Unpack(packed, all));
  return Distinct(std::move(all));
}

Result<void> AgreeOnFormat(Others& others, std::string_view format) {
  const auto formats = TRY(others.Tell("format", std::string(format)));
  for (std::size_t rank = 1; rank < formats.size(); ++rank)
    if (formats[rank] != formats[0])
      return others.Refuse(Str("the input of ", others.Name(0), " looks like ", formats[0], ", that of ",
                               others.Name(rank), " like ", formats[rank],
                               "; give all workers one format, or say which it is with ", Option("format")));
  return {};
}

Result<void> AgreeOnDescription(Others& others, Description& description) {
  const auto texts = TRY(others.Tell("description", description.ToJson()));
  std::vector<Json> all;
  for (const std::string& text : texts) {
    all.push_back(Json::parse(text, nullptr, false));
    if (!all.back().is_object() || !all.back().contains("index_base") || !all.back()["index_base"].is_number_integer())
      return Error{Code::kCorrupt, "an input description that another worker sent is damaged"};
    description.index_base = std::min(description.index_base, all.back()["index_base"].get<int>());
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    all[rank]["index_base"] = description.index_base;
    const std::string difference = Difference(all[0], all[rank], others.Name(0), others.Name(rank));
    if (!difference.empty())
      return others.Refuse(Str(Option("split"), " own: the inputs are not of one kind: ", difference,
                               "; give all workers shares of one data set, or say what columns are with ",
                               Option("categorical"), ", ", Option("ignore"), ", ", Option("header"), " and ",
                               Option("label")));
  }
  return {};
}

Result<void> AgreeOnMoments(Others& others, const std::vector<float>& rows, Moments& moments) {
  const std::size_t columns = moments.columns();
  for (const std::string& bytes : TRY(others.Tell("rows for moments", BytesOf(rows)))) {
    const auto numbers = TRY(NumbersOf<float>(bytes));
    if (numbers.size() % columns != 0) return Error{Code::kCorrupt, "rows that another worker sent are damaged"};
    for (std::size_t at = 0; at < numbers.size(); at += columns) moments.Observe(&numbers[at]);
  }
  return {};
}

Result<void> AgreeOnView(Others& others, View& view) {
  const auto crops = TRY(others.Tell("crop", BytesOf(std::vector{view.crop})));
  const auto means = TRY(others.Tell("means", BytesOf(view.means)));
  const auto deviations = TRY(others.Tell("deviations", BytesOf(view.deviations)));
  const auto crop = TRY(NumbersOf<std::uint64_t>(crops[0]));
  view = {crop.empty() ? 0 : crop[0], TRY(NumbersOf<float>(means[0])), TRY(NumbersOf<float>(deviations[0]))};
  return {};
}

}  // namespace freshet::data
