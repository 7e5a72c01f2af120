#include "data/description.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "data/formats/ratings_columns.h"

namespace freshet::data {
namespace {

using Json = nlohmann::ordered_json;
const char* const kColumnKinds[] = {"number", "category", "label", "weight", "time", "ignored", "date", "datetime"};
const char* const kLabelKinds[] = {"auto", "real", "binary", "classes"};

template <class Kind, std::size_t N>
bool ParseKind(const Json& text, const char* const (&names)[N], Kind& out) {
  for (std::size_t i = 0; i < N; ++i)
    if (text.is_string() && text.get<std::string>() == names[i]) {
      out = static_cast<Kind>(i);
      return true;
    }
  return false;
}

// A whole number: the library would turn any other into one, however little sense that makes.
template <class Number>
Number Whole(const Json& json) {
  if (!json.is_number_integer()) throw Json::type_error::create(302, "expected a whole number", &json);
  return json.get<Number>();
}

// How names stand in JSON, which is UTF-8: as they are, where all of them are UTF-8. Those of files in another encoding
// travel byte by byte as Latin-1 code points, which is what version 1 and 2 did with all.
enum class Encoding { kUtf8, kLatin1 };

std::string Encode(const std::string& name, Encoding encoding) {
  if (encoding == Encoding::kUtf8) return name;
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      out += c;
    else
      (out += static_cast<char>(0xc0 | byte >> 6)) += static_cast<char>(0x80 | (byte & 0x3f));
  }
  return out;
}

std::string Decode(const std::string& text, Encoding encoding) {
  if (encoding == Encoding::kUtf8) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 >= text.size())
      out += text[i];
    else
      out += static_cast<char>((byte & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
  }
  return out;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// All names of a description, one after another.
std::string AllNames(const Description& description) {
  std::string all = Str(description.delimiter, "\n", description.labels.positive, "\n");
  for (const Column& column : description.columns) (all += column.name) += "\n";
  for (const std::string& name : description.labels.names) (all += name) += "\n";
  return all;
}

// One that moves says how many labels it has seen; throws what the library throws.
Result<Target> TargetFrom(const Json& json) {
  const double mean = json.at("mean"), deviation = json.at("deviation");
  const bool moving = json.contains("rows");
  const Target loaded = TRY(Target::Load(mean, deviation, moving ? Whole<std::uint64_t>(json.at("rows")) : 0,
                                         moving ? json.at("squares").get<double>() : 0));
  return moving ? loaded : Target(mean, deviation);
}

// Can rows of this shape be shown like that?
bool Fits(const View& view, const std::vector<std::uint64_t>& shape, std::uint64_t features) {
  if (shape.size() != 3 || view.crop > std::min(shape[1], shape[2])) return false;
  const bool means = view.means.empty() || view.means.size() == shape[0] || view.means.size() == features;
  const auto finite = [](float value) { return std::isfinite(value); };
  return means && view.deviations.size() == (view.means.empty() ? 0 : shape[0]) &&
         std::all_of(view.means.begin(), view.means.end(), finite) &&
         std::all_of(view.deviations.begin(), view.deviations.end(), [](float d) { return d > 0 && std::isfinite(d); });
}

}  // namespace

std::string_view Name(Column::Kind kind) { return kColumnKinds[static_cast<int>(kind)]; }

std::vector<std::string> Description::NumberNames() const {
  constexpr std::string_view kParts[] = {"year", "month", "weekday", "hour"};
  std::vector<std::string> names;
  for (const Column& column : columns)
    for (std::uint32_t i = 0; i < column.numbers(); ++i)
      names.push_back(column.kind == Column::Kind::kNumber ? column.name : Str(column.name, ".", kParts[i]));
  return names;
}

std::string Description::ToJson() const {
  Json json;
  const std::string names = AllNames(*this);
  const Encoding encoding = base::IsUtf8(names) ? Encoding::kUtf8 : Encoding::kLatin1;
  const bool utf8 = encoding == Encoding::kUtf8 && !IsAscii(names);
  const bool dates =
      std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.kind >= Column::Kind::kDate; });
  json["version"] = target.any() ? 4 : utf8 || dates || decimal != '.' ? 3 : (view.any() ? 2 : 1);
  json["format"] = format;
  if (utf8) json["encoding"] = "utf-8";
  json["delimiter"] = Encode(delimiter, encoding);
  if (decimal != '.') json["decimal"] = std::string(1, decimal);
  json["header"] = header;
  json["columns"] = Json::array();
  for (const Column& column : columns)
    json["columns"].push_back(
        {{"name", Encode(column.name, encoding)}, {"kind", kColumnKinds[static_cast<int>(column.kind)]}});
  json["index_base"] = index_base;
  json["bits"] = bits;
  json["labels"]["kind"] = kLabelKinds[static_cast<int>(labels.kind)];
  json["labels"]["positive"] = Encode(labels.positive, encoding);
  json["labels"]["names"] = Json::array();
  for (const std::string& name : labels.names) json["labels"]["names"].push_back(Encode(name, encoding));
  if (target.any()) {
    json["target"] = {{"mean", target.mean()}, {"deviation", target.deviation()}};
    if (target.moving()) json["target"].update({{"rows", target.rows()}, {"squares", target.squares()}});
  }
  json["dense"] = dense;
  json["features"] = features;
  json["shape"] = shape;
  if (view.any()) json["view"] = {{"crop", view.crop}, {"means", view.means.size()}};
  json["scale"] = scale;
  json["standardise"] = standardise;
  json["dictionaries"] = dictionaries.size();
  json["joint_ids"] = joint_ids;
  return json.dump();
}

void Description::Save(Metadata& metadata, std::vector<Tensor>& tensors, std::vector<std::string>& storage) const {
  metadata["input"] = ToJson();
  storage.reserve(storage.size() + dictionaries.size() + 3);
  const auto add = [&](std::string name, DType dtype, std::uint64_t elements) {
    tensors.push_back({std::move(name), dtype, {elements}, std::as_bytes(std::span(storage.back()))});
  };
  if (standardise) {
    const std::vector<double> saved = moments.Save();
    storage.emplace_back(reinterpret_cast<const char*>(saved.data()), saved.size() * sizeof(double));
    add("input.moments", DType::kF64, saved.size());
  }
  if (!view.means.empty()) {
    const auto add_floats = [&](const char* name, const std::vector<float>& values) {
      storage.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      add(name, DType::kF32, values.size());
    };
    add_floats("input.means", view.means);
    add_floats("input.deviations", view.deviations);
  }
  for (std::size_t i = 0; i < dictionaries.size(); ++i) {
    storage.push_back(dictionaries[i].Serialize());
    add(Str("input.dictionary.", i), DType::kU8, storage.back().size());
  }
}

Result<Description> Description::Load(const TensorFile& file) {
  const std::string text = TRY(file.Meta("input"));
  const Json json = Json::parse(text, nullptr, false);
  const auto corrupt = [&](std::string_view why) {
    return Error{Code::kCorrupt, Str("input description: ", why, ": ", Quoted(text))};
  };
  if (!json.is_object()) return corrupt("not a JSON object");
  Description d;
  try {  // the JSON library's own errors end here
    const int version = Whole<int>(json.at("version"));
    if (version < 1) return corrupt(Str("version ", version));
    if (version > kVersion)
      return Error{Code::kInvalid, Str("input description: version ", version, ", this program reads 1 to ", kVersion,
                                       "; use a newer freshet")};
    d.format = json.at("format");
    if (json.contains("encoding") && json.at("encoding") != "utf-8") return corrupt("unknown encoding of names");
    const Encoding encoding = json.contains("encoding") ? Encoding::kUtf8 : Encoding::kLatin1;
    d.delimiter = Decode(json.at("delimiter"), encoding);
    if (json.contains("decimal")) {
      if (json.at("decimal") != ",") return corrupt("unknown mark before the fraction of numbers");
      d.decimal = ',';
    }
    d.header = json.at("header");
    for (const Json& column : json.at("columns")) {
      Column::Kind kind{};
      if (!ParseKind(column.at("kind"), kColumnKinds, kind)) return corrupt("unknown kind of column");
      d.columns.push_back({Decode(column.at("name"), encoding), kind});
    }
    if (d.format == "ratings" && d.columns.empty()) d.columns = RatingsColumns();  // cold models once named none
    d.index_base = Whole<int>(json.at("index_base"));
    d.bits = Whole<int>(json.at("bits"));
    if (!ParseKind(json.at("labels").at("kind"), kLabelKinds, d.labels.kind)) return corrupt("unknown kind of label");
    d.labels.positive = Decode(json.at("labels").at("positive"), encoding);
    for (const Json& name : json.at("labels").at("names")) d.labels.names.push_back(Decode(name, encoding));
    d.labels.Index();
    if (version >= 4) d.target = TRY(TargetFrom(json.at("target")));
    d.dense = json.at("dense");
    d.features = Whole<std::uint64_t>(json.at("features"));
    for (const Json& extent : json.at("shape")) d.shape.push_back(Whole<std::uint64_t>(extent));
    bool means = false;
    if (version == 2 || json.contains("view")) {
      d.view.crop = Whole<std::uint64_t>(json.at("view").at("crop"));
      means = Whole<std::uint64_t>(json.at("view").at("means")) > 0;
    }
    d.scale = json.at("scale");
    d.standardise = json.at("standardise");
    d.joint_ids = json.at("joint_ids");
    const auto dictionaries = Whole<std::uint64_t>(json.at("dictionaries"));
    if (d.bits < 0 || d.bits > 31 || d.index_base < 0 || d.index_base > 1 || dictionaries > 64 ||
        d.features > (1u << 28))
      return corrupt("a number out of range");
    for (std::size_t i = 0; i < dictionaries; ++i) {
      const auto bytes = TRY(file.Values<std::uint8_t>(Str("input.dictionary.", i)));
      d.dictionaries.push_back(TRY(Dictionary::Deserialize(std::as_bytes(std::span(bytes)))));
    }
    if (means) {
      d.view.means = TRY(file.Values<float>("input.means"));
      d.view.deviations = TRY(file.Values<float>("input.deviations"));
    }
    if (d.view.any() && !Fits(d.view, d.shape, d.features)) return corrupt("its view does not fit the shape of rows");
  } catch (const Json::exception& problem) {
    return corrupt(problem.what());
  }
  if (d.standardise) {
    const auto saved = TRY(file.Values<double>("input.moments"));
    if (saved.size() != 2 + 5 * d.features) return corrupt("moments do not fit the number of columns");
    d.moments = Moments::Load(saved);
  }
  return d;
}

}  // namespace freshet::data
