// How fast LIBSVM text becomes batches, on one thread, and whether they hold what a plain parser by strtod finds.

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/random.h"
#include "data/number.h"
#include "data/reader.h"
#include "inputs.h"

namespace freshet::bench {
namespace {

// What is in the rows of a text, added up.
struct Sums {
  std::uint64_t rows = 0, positive = 0, entries = 0, indices = 0;
  double values = 0;
  bool operator==(const Sums&) const = default;

  void Add(const data::Batch& batch) {
    rows += batch.rows;
    entries += batch.entries();
    for (std::size_t r = 0; r < batch.rows; ++r) positive += batch.labels[r] > 0;
    for (std::size_t i = 0; i < batch.entries(); ++i) {
      indices += batch.indices[i] + 1;  // the text counts from 1
      values += static_cast<double>(batch.values[i]);
    }
  }
};

// The reference: LIBSVM text by strtod and strtoull.
Sums SumsByStrtod(const std::string& text) {
  Sums sums;
  for (const char* at = text.c_str(); *at != '\0'; ++at, ++sums.rows) {
    char* next = nullptr;
    sums.positive += std::strtod(at, &next) > 0;
    for (at = next; *at == ' '; at = next, ++sums.entries) {
      sums.indices += std::strtoull(at, &next, 10);
      sums.values += static_cast<double>(static_cast<float>(std::strtod(next + 1, &next)));
    }
  }
  return sums;
}

// Reads a file to its end, block by block into the same memory, and hands each block to `see`.
template <class See>
Result<void> ReadAll(const base::Env& env, const std::string& path, See see) {
  data::ReaderOptions options;
  options.paths = {path};
  data::Description description;
  const auto reader = TRY(data::Reader::Open(env, options, {}, description));
  data::Rows rows;
  while (TRY(reader->Next(rows))) {
    TRY(reader->Finish(rows));
    see(rows);
  }
  return {};
}

// Seconds spent in the parser alone for all of a text, chunk by chunk as a Reader would hand them out.
Result<double> ParseSeconds(const base::Env& env, const std::string& text) {
  const std::size_t chunk_bytes = data::ReaderOptions{}.chunk_bytes;
  const data::Format* const format = TRY(data::FindFormat("libsvm"));
  const std::string head_text =
      text.substr(0, text.find('\n', 1 << 16) + 1) + std::string(data::Parser::kPadding, '\n');
  const data::Head head{{head_text.data(), head_text.size() - data::Parser::kPadding}, "text"};
  data::Description description;
  TRY(format->describe(head, {}, env.files, description));
  const auto parser = TRY(format->make(head, description, {}, env.files, true));
  data::Rows rows;
  double seconds = 0;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = begin + chunk_bytes >= text.size() ? text.size() : text.rfind('\n', begin + chunk_bytes) + 1;
    rows.Clear();
    rows.text.Resize(end - begin + data::Parser::kPadding);
    std::memcpy(rows.text.data(), text.data() + begin, end - begin);
    std::memset(rows.text.data() + (end - begin), '\n', data::Parser::kPadding);
    rows.text.Resize(end - begin);
    const auto started = env.clock.Now();
    parser->Parse(rows);
    seconds += base::Seconds(env.clock.Now() - started);
    if (!rows.bad.empty()) return Error{Code::kBadInput, rows.bad[0].what};
  }
  return seconds;
}

// LIBSVM text whose values have all the digits a double can have.
std::string TextOfLongNumbers(std::size_t rows) {
  constexpr int kEntries = 30;
  base::Random random(1, "long numbers");
  std::string text;
  char entry[64];
  for (std::size_t r = 0; r < rows; ++r) {
    text += r % 2 == 0 ? "+1" : "-1";
    for (int i = 1; i <= kEntries; ++i)
      text.append(entry, static_cast<std::size_t>(std::snprintf(entry, sizeof entry, " %d:%.17g", i, random.Normal())));
    text += '\n';
  }
  return text;
}

// Of random doubles (any bits that make a finite number, and ordinary magnitudes) written with 1 to 17 digits, how many
// does ParseDouble read otherwise than strtod?
std::uint64_t DifferFromStrtod(std::uint64_t count) {
  base::Random random(1, "doubles");
  std::uint64_t differ = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    auto number = std::bit_cast<double>(random.Next());
    if (n % 2 == 0 || !std::isfinite(number))
      number = std::ldexp(random.Normal(), static_cast<int>(random.Below(40)) - 20);
    char text[512];
    std::memset(text, '\n', sizeof text);
    const int digits = 1 + static_cast<int>(random.Below(17));
    const int size = std::snprintf(text, 400, n % 3 == 0 && std::abs(number) < 1e15 ? "%.*f" : "%.*g", digits, number);
    text[size] = '\n';
    double ours = 0;
    const char* const end = data::ParseDouble(text, text + size, ours);
    const double expected = std::strtod(text, nullptr);
    differ += end != text + size || std::bit_cast<std::uint64_t>(ours) != std::bit_cast<std::uint64_t>(expected);
  }
  return differ;
}

// Bytes copied a second by a memcpy that is much larger than any cache.
Result<Spread> CopyRate(Context& context) {
  const std::size_t bytes = context.tiny ? 8 << 20 : 256 << 20;
  std::vector<char> from(bytes, 'x'), to(bytes, 'y');
  const auto seconds = TRY(Seconds(context, [&]() -> Result<double> {
    const auto started = context.env.clock.Now();
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");  // the copy is used
    return base::Seconds(context.env.clock.Now() - started);
  }));
  return RateOf(static_cast<double>(bytes) / 1e6, seconds);
}

void CheckAnswers(Context& context, const Sums& found, const Sums& expected) {
  context.report.Check("rows, labels, indices and values add up as by strtod", found == expected,
                       Str(Grouped(found.rows), " rows, ", Grouped(found.entries), " entries"));
  const std::uint64_t doubles = context.tiny ? 20'000 : 2'000'000;
  const std::uint64_t differ = DifferFromStrtod(doubles);
  context.report.Check("random doubles are bit-equal to strtod's", differ == 0,
                       Str(Grouped(differ), " of ", Grouped(doubles), " differ"));
}

}  // namespace

Result<void> BenchParse(Context& context) {
  const base::Env& env = context.env;
  Report& report = context.report;
  data::GenerateOptions generate;
  generate.kind = "url-like";
  generate.rows = context.tiny ? 2'000 : 100'000;
  const std::string path = TRY(GenerateFile(context, generate));
  const std::string text = TRY(ReadText(env.files, path));
  Sums sums;
  const Sums expected = SumsByStrtod(text);
  TRY(ReadAll(env, path, [&](const data::Rows& rows) { sums.Add(rows.batch()); }));
  CheckAnswers(context, sums, expected);

  const auto megabytes = [](const std::string& of) { return static_cast<double>(of.size()) / 1e6; };
  const auto reading = TRY(Seconds(context, [&]() -> Result<double> {
    const auto started = env.clock.Now();
    std::uint64_t entries = 0;
    TRY(ReadAll(env, path, [&](const data::Rows& rows) { entries += rows.indices.size(); }));
    CHECK(entries == expected.entries);
    return base::Seconds(env.clock.Now() - started);
  }));
  const auto parsing = [&](const std::string& of) { return Seconds(context, [&] { return ParseSeconds(env, of); }); };
  const std::string long_numbers = TextOfLongNumbers(context.tiny ? 500 : 50'000);
  const Spread rate = RateOf(megabytes(text), reading), copy = TRY(CopyRate(context));
  const double share = 100 * rate.median / copy.median;
  report.Add({"file in the page cache to batches", rate, "MB/s", 0, AtLeast(600)});
  report.Add({"the parser alone", RateOf(megabytes(text), TRY(parsing(text))), "MB/s", 0, AtLeast(600)});
  report.Add({"the parser alone, values of 17 digits", RateOf(megabytes(long_numbers), TRY(parsing(long_numbers))),
              "MB/s", 0});
  report.Add({"memcpy, bytes copied", copy, "MB/s", 0});
  report.Add({"file to batches, share of memcpy", {share, share, share}, "%", 1});
  return {};
}

}  // namespace freshet::bench
