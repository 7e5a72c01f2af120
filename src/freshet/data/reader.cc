#include "data/reader.h"

#include <algorithm>
#include <set>

#include "base/option.h"
#include "data/drive.h"
#include "data/formats/foreign.h"
#include "data/formats/lines.h"
#include "data/formats/text.h"
#include "data/go_on.h"

namespace freshet::data {

Result<std::unique_ptr<Reader>> Reader::Open(const base::Env& env, ReaderOptions options, const InputOptions& input,
                                             Description& description) {
  std::unique_ptr<Reader> reader(new Reader(env, std::move(options), description));
  reader->chunks_ = TRY(Chunks::Open(env.files, reader->options_.paths,
                                     {.chunk_bytes = reader->options_.chunk_bytes, .part = reader->options_.part}));
  const Head head = reader->chunks_->head();
  if (head.bytes.empty())
    return Error{Code::kBadInput, Str(head.path, ":1:1: found an empty file, expected rows of data")};
  const bool told = !description.format.empty() || input.format != "auto";
  const bool symbols = description.format == kTextFormat || input.format == kTextFormat;  // any bytes are text
  if (!symbols) TRY(RefuseForeign(head, told));
  if (description.format.empty()) {
    const Format* const format = input.format == "auto" ? TRY(SniffFormat(head)) : TRY(FindFormat(input.format));
    description.format = format->name;
    if (input.others != nullptr) TRY(AgreeOnFormat(*input.others, format->name));
    TRY(format->describe(head, input, env.files, description));
    if (input.others != nullptr) TRY(AgreeOnDescription(*input.others, description));
  }
  const Format* const format = TRY(FindFormat(description.format));
  reader->parser_ = TRY(format->make(head, description, input, env.files, reader->options_.labelled));
  if (input.others != nullptr && description.standardise && description.moments.rows() == 0)
    TRY(reader->AgreeOnHeadMoments(*input.others));
  const Cutting cutting = reader->parser_->cutting();
  const std::size_t files = reader->chunks_->paths().size();
  if (cutting.header_bytes > 0 && files > 1)
    return Error{Code::kInvalid, Str(files, " files of the ", description.format,
                                     " format were given, expected one: its header and labels are its own")};
  reader->chunks_->SetCutting(cutting, description.header);
  constexpr std::uint64_t kPlacesEach = 64;
  const std::uint64_t parts = reader->options_.part.count;
  if (const auto bytes = reader->chunks_->bytes(); bytes && parts > 1)
    reader->where_.emplace(*bytes, parts * kPlacesEach);
  return reader;
}

Result<bool> Reader::Next(Rows& rows) {
  if (!TRY(chunks_->Next(rows))) return false;
  rows.ClearRows();
  parser_->Parse(rows);
  return true;
}

Result<void> Reader::Finish(Rows& rows) {
  if (!rows.bad.empty()) TRY(SetAside(rows));
  rows.begin.sample = samples_;
  const std::size_t count = rows.size();
  std::uint64_t* const sample = rows.samples.Room(count);
  for (std::size_t i = 0; i < count; ++i) sample[i] = samples_ + i;
  rows.samples.SetEnd(sample + count);
  samples_ += count;
  rows.end.sample = samples_;
  if (where_) where_->Add(chunks_->BytesBefore(rows.begin), chunks_->BytesBefore(rows.end), count);
  if (!rows.tokens.empty()) Resolve(rows);
  return {};
}

// Moments that are learned while reading would be each reader's own: those of all heads together stand for them.
Result<void> Reader::AgreeOnHeadMoments(Others& others) {
  std::string_view head = chunks_->head().bytes;
  if (description_.header) head.remove_prefix(std::min(EndOfHeader(head, true), head.size()));
  Rows rows;
  char* const text = rows.text.Room(head.size() + Parser::kPadding);
  std::copy(head.begin(), head.end(), text);
  std::fill_n(text + head.size(), Parser::kPadding, '\n');
  rows.text.SetEnd(text + head.size() + (head.ends_with('\n') ? 0 : 1));
  rows.ClearRows();
  parser_->Parse(rows);
  constexpr std::size_t kEnoughBytes = 256
                                       << 10;  // to show; of a thousand rows the mean is known to 3 % of a deviation
  const auto columns = static_cast<std::size_t>(description_.features);
  const std::size_t every = rows.size() * columns * sizeof(float) / kEnoughBytes + 1;
  std::vector<float> shown;
  for (std::size_t r = 0; r < rows.size(); r += every) {
    const float* const row = rows.width > 0 ? &rows.dense[r * rows.width] : &rows.values[rows.offsets[r]];
    shown.insert(shown.end(), row, row + columns);
  }
  return AgreeOnMoments(others, shown, description_.moments);
}

void Reader::Resolve(Rows& rows) {
  const bool ratings = description_.format == "ratings";
  for (const Token& token : rows.tokens) {
    std::string_view name(rows.text.data() + token.begin, token.size);
    if (token.doubled_quotes) name = undoubled_ = Undoubled(name);
    Dictionary* dictionary = nullptr;
    if (ratings) {
      dictionary = &description_.dictionaries[token.space];
    } else {  // categories of all columns share one dictionary; the column's number keeps their values apart
      dictionary = &description_.dictionaries[0];
      key_ = Str(token.space, "=", name);
      name = key_;
    }
    std::uint32_t number = options_.grow ? dictionary->Add(name) : dictionary->Find(name);
    if (number != kUnseen) {
      if (!ratings)
        number += static_cast<std::uint32_t>(description_.features);
      else if (description_.joint_ids)
        number = number * 2 + token.space;
    }
    rows.indices[token.entry] = number;
  }
}

Result<void> Reader::SetAside(const Rows& rows) {
  const std::string& path = chunks_->paths()[rows.begin.file];
  for (const BadRow& bad : rows.bad) {
    const std::string place =
        Str(path == "-" ? "standard input" : path, ":", rows.begin.line + bad.line + 1, ":", bad.column);
    TRY(bad_rows_.Add(place, bad.what, bad.text));
  }
  return {};
}

Result<void> Reader::Seek(const Position& position) {
  samples_ = position.sample;
  if (where_) where_->Clear();
  bad_rows_.NewPass();
  return chunks_->Seek(position);
}

Result<void> Reader::Glimpse(const std::function<void(const Rows& rows)>& see) const {
  constexpr std::uint64_t kPlaces = 16;
  constexpr std::size_t kBytesEach = 64 << 10;
  const std::uint64_t bytes = chunks_->bytes().value_or(0);
  const bool much = bytes > kPlaces * kBytesEach || (bytes > 0 && chunks_->paths().size() > 1);
  const std::uint64_t places = much ? kPlaces : 1;
  Rows rows;
  for (std::uint64_t place = 0; place < places; ++place) {
    if (!TRY(chunks_->Glimpse(place, places, places > 1 ? kBytesEach : 1 << 20, rows))) continue;
    rows.ClearRows();
    rows.bad.clear();
    parser_->Parse(rows);
    if (rows.bad.size() <= rows.size()) see(rows);  // else it began between quotes
  }
  return {};
}

std::optional<double> Reader::Fraction(const Position& position) const { return chunks_->Fraction(position); }

namespace {

constexpr std::size_t kMostClasses = 100'000;

Result<void> CheckCount(std::size_t labels) {
  if (labels <= kMostClasses) return {};
  return Error{Code::kBadInput,
               Str("more than ", kMostClasses, " different labels; use ", Option("loss"), " squared for numbers")};
}

// Only what a label needs is left of a table: its column, read as a category, whose dictionary then has all its values.
void KeepLabelColumnOnly(Description& description) {
  for (Column& column : description.columns)
    column.kind = column.kind == Column::Kind::kLabel ? Column::Kind::kCategory : Column::Kind::kIgnored;
  description.dense = description.standardise = false;
  description.features = 0;
  description.bits = 0;
  description.dictionaries.assign(1, {});
}

Result<std::vector<std::string>> ScanTable(const base::Env& env, ReaderOptions options, const InputOptions& input,
                                           Description description) {
  KeepLabelColumnOnly(description);
  options.labelled = false;
  const auto reader = TRY(Reader::Open(env, options, input, description));
  const Dictionary& labels = description.dictionaries[0];
  TRY(DriveInOrder(env.executor, *reader, [&](Rows&) -> Result<void> {
    TRY(GoOn(options.stop));
    return CheckCount(labels.size());
  }));
  std::vector<std::string> seen;
  for (std::uint32_t number = 0; number < labels.size(); ++number)
    seen.push_back(CanonicalLabel(labels.Name(number).substr(labels.Name(number).find('=') + 1), description.decimal));
  return seen;
}

// Labels that are numbers come through as they are, as far as a float can hold them.
Result<std::vector<std::string>> ScanNumbers(const base::Env& env, RowSource& source, const std::atomic<bool>* stop) {
  std::set<float> values;
  TRY(DriveInOrder(env.executor, source, [&](Rows& rows) -> Result<void> {
    TRY(GoOn(stop));
    values.insert(rows.labels.span().begin(), rows.labels.span().end());
    return CheckCount(values.size());
  }));
  std::vector<std::string> seen;
  for (const float value : values) seen.push_back(Str(value));
  return seen;
}

}  // namespace

Result<std::vector<std::string>> ScanLabels(const base::Env& env, const ReaderOptions& options,
                                            const InputOptions& input) {
  InputOptions as_numbers = input;
  as_numbers.task = Labels::Kind::kReal;
  as_numbers.positive.clear();
  as_numbers.classes.clear();
  as_numbers.others = nullptr;  // each looks through its own
  ReaderOptions all = options;
  all.part = {};
  all.bad_rows_path.clear();  // whoever reads the rows will note them
  Description description;
  const auto reader = TRY(Reader::Open(env, all, as_numbers, description));
  Labels labels;
  labels.kind = Labels::Kind::kClasses;
  TRY(labels.Settle(description.format == "csv" ? TRY(ScanTable(env, all, as_numbers, description))
                                                : TRY(ScanNumbers(env, *reader, all.stop))));
  return labels.names;
}

}  // namespace freshet::data
