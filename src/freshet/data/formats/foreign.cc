#include "data/formats/foreign.h"

namespace freshet::data {
namespace {

using namespace std::string_view_literals;

struct Foreign {
  std::string_view begins;  // its first bytes
  std::string_view what;
  std::string_view instead;
  bool text = false;  // could begin a text of another kind as well
};

constexpr std::string_view kByPandas = "write it as CSV, with pandas: ";

constexpr Foreign kForeign[] = {
    {"PAR1", "a Parquet file", "read_parquet(FILE).to_csv(\"rows.csv\", index=False)"},
    {"ARROW1", "a Feather (Arrow) file", "read_feather(FILE).to_csv(\"rows.csv\", index=False)"},
    {"FEA1", "a Feather file", "read_feather(FILE).to_csv(\"rows.csv\", index=False)"},
    {"ORC", "an ORC file", "read_orc(FILE).to_csv(\"rows.csv\", index=False)"},
    {"\x93NUMPY", "a NumPy array", "DataFrame(numpy.load(FILE)).to_csv(\"rows.csv\", index=False)"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file", "read_hdf(FILE).to_csv(\"rows.csv\", index=False)"},
    {"PK\x03\x04", "a zip archive, as spreadsheets (.xlsx) and .npz files are",
     "read_excel(FILE).to_csv(\"rows.csv\", index=False); or unpack it"},
    {"\xd0\xcf\x11\xe0", "a spreadsheet (.xls)", "read_excel(FILE).to_csv(\"rows.csv\", index=False)"},
    {"\x80\x04\x95", "a Python pickle", "read_pickle(FILE).to_csv(\"rows.csv\", index=False)"},
    {"\x80\x05\x95", "a Python pickle", "read_pickle(FILE).to_csv(\"rows.csv\", index=False)"},
    {"SQLite format 3", "an SQLite database", "read_sql(\"select …\", …).to_csv(\"rows.csv\", index=False)"},
};

// Those for which pandas is not the answer.
constexpr Foreign kOthers[] = {
    {"BZh", "a file packed by bzip2", "unpack it, or pack it with gzip, xz or zstd"},
    {"\xff\xfe", "text in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8"},
    {"\xfe\xff", "text in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8"},
    {"\x89PNG", "one image", "give a folder with a folder of images for each class"},
    {"\xff\xd8\xff", "one image", "give a folder with a folder of images for each class"},
    {"%PDF-", "a PDF document", "give rows of data"},
    {"<!DOCTYPE", "a web page, perhaps in place of the file that was asked for", "fetch it again", true},
    {"<!doctype", "a web page, perhaps in place of the file that was asked for", "fetch it again", true},
    {"<html", "a web page, perhaps in place of the file that was asked for", "fetch it again", true},
    {"{", "JSON", "write it as CSV, with pandas: read_json(FILE, lines=True).to_csv(\"rows.csv\", index=False)", true},
    {"[", "JSON", "write it as CSV, with pandas: read_json(FILE).to_csv(\"rows.csv\", index=False)", true},
};

Error Refused(const Head& head, std::string_view what, std::string_view how, std::string_view instead) {
  return {Code::kBadInput, Str(head.path, ": found ", what, ", which is not read here; ", how, instead)};
}

// JSON is told from other text by what follows its bracket: a name, a number, another bracket.
bool IsJson(std::string_view bytes) {
  const std::size_t next = bytes.find_first_not_of(" \t\r\n", 1);
  if (next == std::string_view::npos) return false;
  return bytes[0] == '{' ? bytes[next] == '"' : bytes[next] == '{' || bytes[next] == '[' || bytes[next] == '"';
}

}  // namespace

Result<void> RefuseForeign(const Head& head, bool told) {
  for (const Foreign& kind : kForeign)
    if (head.bytes.starts_with(kind.begins)) return Refused(head, kind.what, kByPandas, kind.instead);
  for (const Foreign& kind : kOthers) {
    if (!head.bytes.starts_with(kind.begins) || (kind.text && told)) continue;
    if (kind.what == "JSON" && !IsJson(head.bytes)) continue;
    return Refused(head, kind.what, "", kind.instead);
  }
  return {};
}

}  // namespace freshet::data
