#include "input_flags.h"

#include <algorithm>
#include <charconv>
#include <regex>

#include "data/augment.h"
#include "data/cache.h"
#include "data/image_folder.h"
#include "data/number.h"
#include "data/text.h"
#include "program.h"

namespace freshet::cli {
namespace {

std::vector<std::string> List(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (const std::string_view part : Split(text, ',')) parts.emplace_back(Trim(part));
  return parts;
}

// "1/4" is the second of four parts.
Result<data::Part> ParsePart(const std::string& text) {
  data::Part part;
  if (text.empty()) return part;
  const auto pieces = Split(text, '/');
  const auto whole = [](std::string_view piece, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), out);
    return error == std::errc{} && end == piece.data() + piece.size();
  };
  if (pieces.size() != 2 || !whole(pieces[0], part.index) || !whole(pieces[1], part.count) || part.index >= part.count)
    return Error{Code::kInvalid, Str("--part ", Quoted(text), ": expected K/N with K from 0 to N-1")};
  return part;
}

// Small files are read in small pieces, so that progress and learning curves have some points to show.
std::size_t ChunkBytes(base::Files& files, const std::vector<std::string>& patterns) {
  constexpr std::uint64_t kSmallest = 16 << 10, kLargest = 256 << 10, kPieces = 100;
  std::uint64_t bytes = 0;
  for (const std::string& pattern : patterns) {
    const auto paths = files.Glob(pattern);
    if (!paths.ok()) return kLargest;
    for (const std::string& path : paths.value()) {
      if (!data::Repeatable(files, path)) return kLargest;
      if (const auto file = files.OpenRead(path); file.ok()) bytes += file.value()->size().value_or(kLargest * kPieces);
    }
  }
  return static_cast<std::size_t>(std::clamp(bytes / kPieces, kSmallest, kLargest));
}

// {rank} becomes the number, {rank:5} the number in five digits.
std::string WithRank(const std::string& path, int rank) {
  static const std::regex place(R"(\{rank(:([1-9]))?\})");
  const std::string number = Str(rank);
  std::string out, rest = path;
  for (std::smatch found; std::regex_search(rest, found, place); rest = found.suffix()) {
    const std::size_t digits = found[2].matched ? static_cast<std::size_t>(found[2].str()[0] - '0') : 0;
    out += Str(found.prefix().str(), std::string(digits - std::min(digits, number.size()), '0'), number);
  }
  return out + rest;
}

// Do the numbers in a cache mean what they mean to a model? Names that were added later do not matter, nor what of an
// image is shown, nor how labels are learned.
bool SameInput(data::Description cached, data::Description wanted) {
  cached.view = wanted.view = {};
  cached.target = wanted.target = {};
  if (cached.ToJson() != wanted.ToJson()) return false;
  for (std::size_t i = 0; i < cached.dictionaries.size(); ++i)
    if (!wanted.dictionaries[i].Serialize().starts_with(cached.dictionaries[i].Serialize())) return false;
  return true;
}

}  // namespace

void InputFlags::Register(base::Settings& settings, Use use) {
  std::vector<std::string> formats = {"auto"};
  for (const data::Format& format : data::Formats()) formats.emplace_back(format.name);
  formats.emplace_back(data::ImageFolder::kFormat);
  settings.Group("Input");
  settings.Add("data", &data,
               "files, patterns, pipes, - for standard input, or a folder of images; gzip, xz and zstd are unpacked",
               {.letter = 'd', .value = "FILE", .positional = true});
  if (use == Use::kTraining) {
    settings.Add("format", &input.format, "format of the data", {.value = "NAME", .choices = formats});
    settings.Add("label", &input.label,
                 "label column by name or number from 1 (negative: from the end; none: no labels)",
                 {.value = "COLUMN"});
    settings.Add("delimiter", &input.delimiter, "between columns (inferred if not given)", {.value = "C"});
    settings.Add("header", &input.header, "does the first line name the columns",
                 {.value = "WHICH", .choices = {"auto", "yes", "no"}});
    settings.Add("decimal", &input.decimal, "what stands before the fraction of numbers in a table",
                 {.value = "WHICH", .choices = {"auto", "point", "comma"}});
    settings.Add("numeric", &numeric, "columns to treat as numbers", {.value = "A,B"});
    settings.Add("categorical", &categorical, "columns to treat as categories", {.value = "A,B"});
    settings.Add("ignore", &ignore, "columns to leave out", {.value = "A,B"});
    settings.Add("weight-column", &input.weight_column, "column with the importance of a row", {.value = "COLUMN"});
    settings.Add("time-column", &input.time_column, "column with seconds since 1970, or dates such as 2021-03-04",
                 {.value = "COLUMN"});
    settings.Add("index-base", &index_base, "what the first LIBSVM feature is called: 0, 1, or -1 to infer",
                 {.value = "N", .least = -1, .most = 1});
    settings.Add("bits", &input.bits, "hash features to 2^bits", {.letter = 'b', .value = "N", .least = 0, .most = 30});
    settings.Add("positive", &input.positive, "one class against the rest", {.value = "LABEL"});
    settings.Add("classes", &classes, "label values in order", {.value = "A,B,C"});
    settings.Add("standardise", &input.standardise, "scale and centre numeric columns of tables as they are read");
    settings.Add("scale-target", &scale_target, "learn numbers centred and scaled; predictions are in their own units");
    settings.Add("image-size", &input.image_size, "bring images of a folder to this size", {.value = "N|HxW"});
    settings.Add("grey", &input.grey, "read images of a folder as brightness alone");
    settings.Add("steps", &input.steps, "symbols of a row of text", {.value = "N", .least = 2, .most = 65536});
    settings.Add("crop", &crop, "show a network squares of images: any while training, then the middle (0: all)",
                 {.value = "N", .least = 0, .most = 8192});
    settings.Add("mirror", &mirror, "show a network half of the images right to left while training");
    settings.Add("subtract-mean", &subtract_mean,
                 "centre what a network is shown by means per channel or per pixel, and scale it (auto: per channel)",
                 {.value = "WHICH", .choices = {"auto", "none", "channel", "pixel"}});
  }
  settings.Add("part", &part, "take one part of N of the data: 0/4 … 3/4", {.value = "K/N"});
  settings.Add("label-file", &input.labels_path, "file of labels (idx; found by name if not given)", {.value = "FILE"});
  settings.Add("max-bad-rows", &reader.max_bad_rows, "set aside so many malformed rows before giving up",
               {.value = "N"});
  settings.Add("bad-rows", &reader.bad_rows_path, "write malformed rows here", {.value = "FILE"});
}

void InputFlags::Settle() {
  input.classes = List(classes);
  input.numeric = List(numeric);
  input.categorical = List(categorical);
  input.ignore = List(ignore);
  input.index_base = index_base;
  reader.paths.clear();
  for (const std::string& path : data) reader.paths.push_back(rank < 0 ? path : WithRank(path, rank));
}

std::string InputFlags::Once(base::Files& files) const {
  for (const std::string& pattern : reader.paths) {
    const auto paths = files.Glob(pattern);
    if (!paths.ok()) continue;  // who opens it will say so
    for (const std::string& path : paths.value())
      if (!data::Repeatable(files, path)) return path == "-" ? "standard input (-)" : path;
  }
  return "";
}

Result<std::unique_ptr<data::RowSource>> InputFlags::Open(const base::Env& env, data::Description& description) {
  Settle();
  if (data.empty()) return Error{Code::kInvalid, "no input files; name at least one, or - for standard input"};
  const std::vector<std::string>& paths = reader.paths;
  if (paths.size() == 1 && data::CacheReader::Is(env.files, paths[0])) {
    auto cache = TRY(data::CacheReader::Open(env.files, paths[0]));
    if (description.format.empty())
      description = cache->description();
    else if (!SameInput(cache->description(), description))
      return Error{
          Code::kInvalid,
          Str(paths[0], ": its rows were not read as this model reads rows; give the files it was made from instead")};
    return std::unique_ptr<data::RowSource>(std::move(cache));
  }
  reader.part = TRY(ParsePart(part));
  const bool told = input.format == data::ImageFolder::kFormat || description.format == data::ImageFolder::kFormat;
  if (told || data::ImageFolder::Is(env.files, paths[0]))
    return std::unique_ptr<data::RowSource>(TRY(data::ImageFolder::Open(env, reader, input, description)));
  reader.chunk_bytes = ChunkBytes(env.files, paths);
  return std::unique_ptr<data::RowSource>(TRY(data::Reader::Open(env, reader, input, description)));
}

Result<void> InputFlags::FindAllClasses(const base::Env& env, data::Description& description) const {
  const bool text = description.format == "libsvm" || description.format == "csv" || description.format == "vw";
  const auto& paths = reader.paths;
  const bool cached = paths.size() == 1 && data::CacheReader::Is(env.files, paths[0]);  // whoever made it has looked
  const bool told = !input.classes.empty() || description.labels.kind != data::Labels::Kind::kClasses;
  const bool symbols = description.format == data::kTextFormat;
  if (!(text || symbols) || cached || told) return {};
  auto& names = description.labels.names;
  if (Once(env.files).empty())
    names = symbols ? TRY(data::ScanSymbols(env.files, paths, reader.stop)) : TRY(data::ScanLabels(env, reader, input));
  if (input.others != nullptr) {
    data::Labels all;
    all.kind = description.labels.kind;
    TRY(all.Settle(TRY(data::AgreeOnLabels(*input.others, names))));
    names = all.names;
  }
  description.labels.Index();
  return {};
}

Result<void> InputFlags::SettleView(const base::Env& env, data::RowSource& source,
                                    data::Description& description) const {
  constexpr std::uint64_t kEnoughRows = 5'000;  // means are then known to half a percent
  const bool images = description.dense && description.shape.size() == 3;
  const std::string once = Once(env.files);
  data::Means means = data::Means::kNone;
  if (subtract_mean == "channel" || (subtract_mean == "auto" && images && once.empty())) means = data::Means::kChannel;
  if (subtract_mean == "pixel") means = data::Means::kPixel;
  description.view.crop = crop;
  TRY(data::Augment::Make(description, {.mirror = mirror}));  // refuses what cannot be
  if (means == data::Means::kNone) return {};
  if (!once.empty())
    return Error{Code::kInvalid,
                 Str("--subtract-mean ", subtract_mean, ": means need a look at the data before training, which ", once,
                     " does not give; name a file")};
  return data::EstimateMeans(env.executor, source, means, kEnoughRows, description, reader.stop);
}

void ShowNotes(const data::Description& description) {
  constexpr std::size_t kMost = 8;
  const std::size_t shown = std::min(description.notes.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) WriteError(Str("note: ", description.notes[i]));
  if (shown < description.notes.size())
    WriteError(Str("note: and ", description.notes.size() - shown, " more; see 'freshet data inspect'"));
}

Result<void> InputFlags::SettleTarget(const data::RowSource& source, const model::Model& model, data::Others* others,
                                      data::Description& description) const {
  data::Target& target = description.target;
  if (!scale_target || !model.WantsScaledLabels())
    target = {};
  else if (!target.any())  // else a cache has it from those who made it
    target = TRY(data::EstimateTarget(source));
  if (others == nullptr) return {};
  const std::string mine = target.any() ? Str(target.mean(), " ", target.deviation()) : "";
  const std::string first = TRY(others->Tell("how labels are scaled", mine))[0];
  const auto numbers = Split(first, ' ');
  double mean = 0, deviation = 0;
  const bool scales = numbers.size() == 2 && data::ParseNumber(numbers[0], mean) &&
                      data::ParseNumber(numbers[1], deviation) && deviation > 0;
  target = scales ? data::Target(mean, deviation) : data::Target();
  return {};
}

std::uint64_t BadRows(const data::RowSource& source) { return source.bad_rows(); }

}  // namespace freshet::cli
