#include "options.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "attend.h"
#include "base/str.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

std::string QuotedToml(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

std::string TextOf(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }

// Numbers of NumPy are numbers, too, and paths are texts.
std::string TomlOf(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True) ? "true" : "false";
  if (PyUnicode_Check(value.ptr())) return QuotedToml(TextOf(value));
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    std::string list;
    for (const nb::handle one : nb::borrow<nb::sequence>(value)) list += Str(list.empty() ? "" : ",", TextOf(one));
    return QuotedToml(list);
  }
  if (PyIndex_Check(value.ptr())) return TextOf(nb::steal<nb::object>(PyNumber_Index(value.ptr())));
  if (PyFloat_Check(value.ptr())) {
    const std::string text = TextOf(nb::float_(nb::borrow<nb::float_>(value)));
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  return QuotedToml(TextOf(value));
}

}  // namespace

void SetOptions(const nb::dict& values, base::Settings& settings) {
  std::string toml;
  for (const auto [key, value] : values) {
    if (value.is_none()) continue;
    std::string name = TextOf(key);
    std::replace(name.begin(), name.end(), '_', '-');
    toml += Str(QuotedToml(name), " = ", TomlOf(value), "\n");
  }
  auto parsed = settings.ParseToml(toml, "options");
  if (parsed.ok()) return;
  // Lines of a text that nobody has seen say nothing.
  std::string out;
  for (const std::string_view line : Split(parsed.error().text, '\n')) {
    const std::size_t place = line.starts_with("options:") ? line.find(": ") : std::string_view::npos;
    out += Str(out.empty() ? "" : "\n", place == std::string_view::npos ? line : line.substr(place + 2));
  }
  Raise({parsed.error().code, out});
}

}  // namespace freshet::python
