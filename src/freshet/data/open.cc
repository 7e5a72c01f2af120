#include "data/open.h"

#include <algorithm>
#include <charconv>
#include <regex>

#include "base/option.h"
#include "data/cache.h"
#include "data/formats/text.h"
#include "data/images/augment.h"
#include "data/images/image_folder.h"
#include "data/number.h"
#include "data/table_reader.h"

namespace freshet::data {
namespace {

// "1/4" is the second of four parts.
Result<Part> ParsePart(const std::string& text) {
  Part part;
  if (text.empty()) return part;
  const auto pieces = Split(text, '/');
  const auto whole = [](std::string_view piece, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), out);
    return error == std::errc{} && end == piece.data() + piece.size();
  };
  if (pieces.size() != 2 || !whole(pieces[0], part.index) || !whole(pieces[1], part.count) || part.index >= part.count)
    return Error{Code::kInvalid, Str(Option("part"), " ", Quoted(text), ": expected K/N with K from 0 to N-1")};
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
      if (!Repeatable(files, path)) return kLargest;
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
bool SameInput(Description cached, Description wanted) {
  cached.view = wanted.view = {};
  cached.target = wanted.target = {};
  if (cached.ToJson() != wanted.ToJson()) return false;
  for (std::size_t i = 0; i < cached.dictionaries.size(); ++i)
    if (!wanted.dictionaries[i].Serialize().starts_with(cached.dictionaries[i].Serialize())) return false;
  return true;
}

Result<ReaderOptions> ReadingOf(const Input& input) {
  ReaderOptions reading;
  reading.paths = input.Resolved();
  reading.part = TRY(ParsePart(input.part));
  reading.max_bad_rows = input.max_bad_rows;
  reading.bad_rows_path = input.bad_rows_path;
  reading.labelled = input.labelled;
  reading.grow = input.grow;
  reading.stop = input.stop;
  return reading;
}

}  // namespace

std::vector<std::string> Input::Resolved() const {
  std::vector<std::string> resolved;
  for (const std::string& path : paths) resolved.push_back(rank < 0 ? path : WithRank(path, rank));
  return resolved;
}

std::string Input::Name() const { return table == nullptr ? Join(paths, ", ") : "the rows in memory"; }

std::string Input::Once(base::Files& files) const {
  for (const std::string& pattern : Resolved()) {
    const auto found = files.Glob(pattern);
    if (!found.ok()) continue;  // who opens it will say so
    for (const std::string& path : found.value())
      if (!Repeatable(files, path)) return path == "-" ? "standard input (-)" : path;
  }
  return "";
}

Result<std::unique_ptr<RowSource>> Open(const base::Env& env, const Input& input, Description& description) {
  if (input.table != nullptr) {
    if (!input.paths.empty()) return Error{Code::kInvalid, "both rows in memory and input files; give one of them"};
    const TableReader::Options reading = {TRY(ParsePart(input.part)), input.labelled, input.grow};
    return std::unique_ptr<RowSource>(TRY(TableReader::Open(input.table, reading, input.options, description)));
  }
  if (input.paths.empty()) return Error{Code::kInvalid, "no input files; name at least one, or - for standard input"};
  const std::vector<std::string> paths = input.Resolved();
  if (paths.size() == 1 && CacheReader::Is(env.files, paths[0])) {
    auto cache = TRY(CacheReader::Open(env.files, paths[0]));
    if (description.format.empty())
      description = cache->description();
    else if (!SameInput(cache->description(), description))
      return Error{
          Code::kInvalid,
          Str(paths[0], ": its rows were not read as this model reads rows; give the files it was made from instead")};
    return std::unique_ptr<RowSource>(std::move(cache));
  }
  ReaderOptions reading = TRY(ReadingOf(input));
  const bool told = input.options.format == ImageFolder::kFormat || description.format == ImageFolder::kFormat;
  if (told || ImageFolder::Is(env.files, paths[0]))
    return std::unique_ptr<RowSource>(TRY(ImageFolder::Open(env, reading, input.options, description)));
  reading.chunk_bytes = ChunkBytes(env.files, paths);
  return std::unique_ptr<RowSource>(TRY(Reader::Open(env, reading, input.options, description)));
}

Result<void> FindAllClasses(const base::Env& env, const Input& input, Description& description) {
  const bool text = description.format == "libsvm" || description.format == "csv" || description.format == "vw";
  const std::vector<std::string> paths = input.Resolved();
  const bool cached = input.table != nullptr ||  // whoever opened or made it has looked
                      (paths.size() == 1 && CacheReader::Is(env.files, paths[0]));
  const bool told = !input.options.classes.empty() || description.labels.kind != Labels::Kind::kClasses;
  const bool symbols = description.format == kTextFormat;
  if (!(text || symbols) || cached || told) return {};
  auto& names = description.labels.names;
  if (input.Once(env.files).empty())
    names = symbols ? TRY(ScanSymbols(env.files, paths, input.stop))
                    : TRY(ScanLabels(env, TRY(ReadingOf(input)), input.options));
  if (input.options.others != nullptr) {
    Labels all;
    all.kind = description.labels.kind;
    TRY(all.Settle(TRY(AgreeOnLabels(*input.options.others, names))));
    names = all.names;
  }
  description.labels.Index();
  return {};
}

Result<void> SettleView(const base::Env& env, const Input& input, RowSource& source, Description& description) {
  constexpr std::uint64_t kEnoughRows = 5'000;  // means are then known to half a percent
  const bool images = description.dense && description.shape.size() == 3;
  const std::string once = input.Once(env.files);
  const std::string& subtract = input.subtract_mean;
  Means means = Means::kNone;
  if (subtract == "channel" || (subtract == "auto" && images && once.empty())) means = Means::kChannel;
  if (subtract == "pixel") means = Means::kPixel;
  description.view.crop = input.crop;
  TRY(Augment::Make(description, {.mirror = input.mirror}));  // refuses what cannot be
  if (means == Means::kNone) return {};
  if (!once.empty())
    return Error{Code::kInvalid,
                 Str(Option("subtract-mean"), " ", subtract, ": means need a look at the data before training, which ",
                     once, " does not give; name a file")};
  return EstimateMeans(env.executor, source, means, kEnoughRows, description, input.stop);
}

Result<void> SettleTarget(const Input& input, const RowSource& source, bool wanted, Others* others,
                          Description& description) {
  Target& target = description.target;
  if (!input.scale_target || !wanted)
    target = {};
  else if (!target.any())  // else a cache has it from those who made it
    target = TRY(EstimateTarget(source));
  if (others == nullptr) return {};
  const std::string mine = target.any() ? Str(target.mean(), " ", target.deviation()) : "";
  const std::string first = TRY(others->Tell("how labels are scaled", mine))[0];
  const auto numbers = Split(first, ' ');
  double mean = 0, deviation = 0;
  const bool scales =
      numbers.size() == 2 && ParseNumber(numbers[0], mean) && ParseNumber(numbers[1], deviation) && deviation > 0;
  target = scales ? Target(mean, deviation) : Target();
  return {};
}

}  // namespace freshet::data
