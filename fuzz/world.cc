#include "world.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/simulated_clock.h"
#include "data/drive.h"

namespace freshet::fuzz {
namespace {

class MemoryInput final : public base::InputFile {
 public:
  explicit MemoryInput(const std::string& bytes) : bytes_(bytes) {}
  Result<std::size_t> Read(std::span<char> out) override {
    const std::size_t got = TRY(ReadAt(at_, out));
    at_ += got;
    return got;
  }
  Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const override {
    if (offset >= bytes_.size()) return std::size_t{0};
    return bytes_.copy(out.data(), out.size(), static_cast<std::size_t>(offset));
  }
  std::optional<std::uint64_t> size() const override { return bytes_.size(); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

// What there was to read: labels and features as bits, so that one NaN is like another.
struct Summary {
  bool ok = false;
  std::vector<std::uint32_t> numbers;
  std::uint64_t bad_rows = 0;

  bool operator==(const Summary&) const = default;
  void Add(std::span<const float> values) {
    for (const float value : values)
      numbers.push_back(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(value));
  }
};

Summary ReadOnce(MemoryFiles& files, const std::string& path, const data::InputOptions& input, bool labelled,
                 std::size_t chunk_bytes) {
  base::ManualClock clock;
  base::Log log(clock, [](std::string_view) {});
  base::InlineExecutor executor;
  base::Faults faults;
  const base::Env env{files, clock, log, executor, faults};
  data::ReaderOptions options;
  options.paths = {path};
  options.max_bad_rows = std::numeric_limits<std::uint64_t>::max();
  options.labelled = labelled;
  options.chunk_bytes = chunk_bytes;
  data::Description description;
  const auto reader = data::Reader::Open(env, options, input, description);
  Summary summary;
  if (!reader.ok()) {
    CHECK(!reader.error().text.empty());
    return summary;
  }
  summary.ok = data::DriveInOrder(executor, *reader.value(), [&](data::Rows& rows) -> Result<void> {
                 CheckRows(rows);
                 for (const float label : rows.labels.span()) CHECK(!labelled || std::isfinite(label));
                 summary.Add(rows.labels.span());
                 summary.Add(rows.values.span());
                 summary.Add(rows.dense.span());
                 return {};
               }).ok();
  summary.bad_rows = reader.value()->bad_rows();
  std::sort(summary.numbers.begin(), summary.numbers.end());  // in whatever pieces they came
  (void)description.ToJson();
  return summary;
}

}  // namespace

Result<std::unique_ptr<base::InputFile>> MemoryFiles::OpenRead(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return Error{Code::kNotFound, Str(path, ": no such file")};
  return std::unique_ptr<base::InputFile>(std::make_unique<MemoryInput>(found->second));
}

void CheckRows(const data::Rows& rows) {
  const std::size_t count = rows.size();
  CHECK(rows.weights.empty() || rows.weights.size() == count);
  CHECK(rows.times.empty() || rows.times.size() == count);
  CHECK(rows.samples.size() == count);
  if (rows.width > 0) {
    CHECK(rows.dense.size() == count * rows.width);
  } else {
    CHECK(rows.offsets.size() == count + 1);
    CHECK(rows.offsets[0] == 0);
    for (std::size_t r = 0; r < count; ++r) CHECK(rows.offsets[r] <= rows.offsets[r + 1]);
    CHECK(rows.offsets[count] == rows.indices.size());
    CHECK(rows.indices.size() == rows.values.size());
  }
  for (const data::BadRow& bad : rows.bad) {
    CHECK(bad.column >= 1);
    CHECK(!bad.what.empty());
    CHECK(bad.line <= rows.text.size());
  }
}

void ReadAnything(std::map<std::string, std::string> files, const std::string& path, const data::InputOptions& input) {
  // A quote inside an unquoted field counts when chunks are cut and not when rows are read, so pieces may differ.
  const bool quotes = files[path].find('"') != std::string::npos;
  MemoryFiles memory(std::move(files));
  for (const bool labelled : {true, false}) {
    const Summary whole = ReadOnce(memory, path, input, labelled, 1 << 18);
    const Summary pieces = ReadOnce(memory, path, input, labelled, 16);
    CHECK(quotes || whole == pieces);
  }
}

}  // namespace freshet::fuzz
