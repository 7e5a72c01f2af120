#include "data/reader.h"

#include <algorithm>
#include <set>

#include "data/drive.h"

namespace freshet::data {
namespace {

Head HeadOf(const Chunks& chunks) {
  return {chunks.head(), chunks.paths()[0] == "-" ? "standard input" : chunks.paths()[0]};
}

}  // namespace

Result<std::unique_ptr<Reader>> Reader::Open(const base::Env& env, ReaderOptions options, const InputOptions& input,
                                             Description& description) {
  const bool labelled = options.labelled;
  std::unique_ptr<Reader> reader(new Reader(env, std::move(options), description));
  reader->chunks_ = TRY(Chunks::Open(env.files, reader->options_.paths,
                                     {.chunk_bytes = reader->options_.chunk_bytes, .part = reader->options_.part}));
  const Head head = HeadOf(*reader->chunks_);
  if (head.bytes.empty()) return Error{Code::kBadInput, Str(head.path, ": is empty, expected rows of data")};
  if (description.format.empty()) {
    const Format* const format = input.format == "auto" ? TRY(SniffFormat(head)) : TRY(FindFormat(input.format));
    description.format = format->name;
    TRY(format->describe(head, input, env.files, description));
  }
  const Format* const format = TRY(FindFormat(description.format));
  reader->parser_ = TRY(format->make(head, description, input, env.files, labelled));
  reader->chunks_->SetCutting(reader->parser_->cutting(), description.header ? 1 : 0);
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
  if (!rows.tokens.empty()) Resolve(rows);
  return {};
}

void Reader::Resolve(Rows& rows) {
  const bool ratings = description_.format == "ratings";
  for (const Token& token : rows.tokens) {
    std::string_view name(rows.text.data() + token.begin, token.size);
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
      if (!ratings) number += static_cast<std::uint32_t>(description_.features);
      else if (description_.joint_ids) number = number * 2 + token.space;
    }
    rows.indices[token.entry] = number;
  }
}

Result<void> Reader::SetAside(const Rows& rows) {
  const std::string& path = chunks_->paths()[rows.begin.file];
  for (const BadRow& bad : rows.bad) {
    const std::string place = Str(path == "-" ? "standard input" : path, ":", rows.begin.line + bad.line + 1, ":", bad.column);
    if (++bad_rows_ > options_.max_bad_rows) {
      const std::string before = options_.max_bad_rows == 0 ? "" : Str(" (bad row ", bad_rows_, ", --max-bad-rows ", options_.max_bad_rows, ")");
      return Error{Code::kBadInput, Str(place, ": ", bad.what, before)};
    }
    if (options_.bad_rows_path.empty()) continue;
    if (!bad_file_) bad_file_ = TRY(env_.files.Create(options_.bad_rows_path));
    TRY(bad_file_->Write(Str("# ", place, ": ", bad.what, "\n", bad.text, "\n")));
  }
  return {};
}

Result<void> Reader::Seek(const Position& position) {
  samples_ = position.sample;
  return chunks_->Seek(position);
}

std::optional<double> Reader::Fraction(const Position& position) const { return chunks_->Fraction(position); }

Result<std::vector<std::string>> ScanLabels(const base::Env& env, const ReaderOptions& options, const InputOptions& input) {
  // Read as real numbers, labels that are numbers come through as they are; text labels need the names themselves.
  InputOptions as_numbers = input;
  as_numbers.task = Labels::Kind::kReal;
  as_numbers.classes.clear();
  ReaderOptions all = options;
  all.part = {};
  Description description;
  const auto reader = TRY(Reader::Open(env, all, as_numbers, description));
  std::set<double> values;
  TRY(DriveInOrder(env.executor, *reader, [&](Rows& rows) -> Result<void> {
    constexpr std::size_t kMostClasses = 100'000;
    for (const float label : rows.labels.span()) values.insert(label);
    if (values.size() > kMostClasses)
      return Error{Code::kBadInput, Str("more than ", kMostClasses, " different labels; use --loss squared for numbers")};
    return {};
  }));
  std::vector<std::string> names;
  for (const double value : values) names.push_back(Str(value));
  return names;
}

}  // namespace freshet::data
