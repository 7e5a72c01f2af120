#include "data/split.h"

#include <algorithm>

#include "base/option.h"
#include "base/random.h"
#include "data/drive.h"
#include "data/formats/lines.h"
#include "data/formats/text.h"
#include "data/go_on.h"
#include "data/reader.h"

namespace freshet::data {
namespace {

constexpr std::uint64_t kBucketBytes = 16 << 20;  // of a bucket that is shuffled in memory

// Lines on their way to one of the two files: straight, or through buckets that are shuffled at the end. A line goes to
// a random bucket and to a random place in it, which makes every order of all lines equally likely.
class LineWriter {
 public:
  LineWriter(base::Files& files, std::string path, std::size_t buckets, std::uint64_t seed)
      : files_(files),
        path_(std::move(path)),
        seed_(seed),
        pending_(std::max<std::size_t>(buckets, 1)),
        shuffles_(buckets > 0) {}

  ~LineWriter() {  // what Close has not taken
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      if (buckets_[b] != nullptr) (void)files_.Remove(BucketPath(b));
    if (out_ != nullptr) (void)files_.Remove(Draft());
  }
  Result<void> Open(std::string_view header) {
    out_ = TRY(files_.Create(Draft()));
    TRY(out_->Write(header));
    for (std::size_t b = 0; b < pending_.size() && shuffles_; ++b)
      buckets_.push_back(TRY(files_.Create(BucketPath(b))));
    return {};
  }
  Result<void> Add(std::string_view line) {
    ++count_;
    const std::size_t b = shuffles_ ? random_.Below(pending_.size()) : 0;
    pending_[b] += line;
    if (pending_[b].empty() || pending_[b].back() != '\n') pending_[b] += '\n';
    if (pending_[b].size() < (1 << 18)) return {};
    return Flush(b);
  }
  Result<std::uint64_t> Close() {
    for (std::size_t b = 0; b < pending_.size(); ++b) {
      TRY(Flush(b));
      if (!shuffles_) continue;
      const std::string text = TRY(base::ReadAll(files_, BucketPath(b)));
      TRY(files_.Remove(BucketPath(b)));
      buckets_[b] = nullptr;
      std::vector<std::string_view> lines = Split(text, '\n');
      lines.pop_back();  // after the last line end
      for (std::size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[random_.Below(i)]);
      std::string shuffled;
      shuffled.reserve(text.size());
      for (const std::string_view line : lines) (shuffled += line) += '\n';
      TRY(out_->Write(shuffled));
    }
    TRY(out_->Sync());
    TRY(files_.Rename(Draft(), path_));
    out_ = nullptr;
    TRY(files_.SyncDirectoryOf(path_));
    return count_;
  }

 private:
  std::string Draft() const { return path_ + ".draft"; }
  std::string BucketPath(std::size_t b) const { return Str(path_, ".bucket", b); }
  Result<void> Flush(std::size_t b) {
    TRY((shuffles_ ? buckets_[b] : out_)->Write(pending_[b]));
    pending_[b].clear();
    return {};
  }

  base::Files& files_;
  const std::string path_;
  const std::uint64_t seed_;
  base::Random random_{seed_, "split"};
  std::vector<std::string> pending_;
  const bool shuffles_;
  std::vector<std::unique_ptr<base::OutputFile>> buckets_;
  std::unique_ptr<base::OutputFile> out_;
  std::uint64_t count_ = 0;
};

// The time from which on rows are for testing.
Result<std::int64_t> CutTime(const base::Env& env, RowSource& source, const SplitOptions& options) {
  std::vector<std::int64_t> times;
  TRY(DriveInOrder(env.executor, source, [&](Rows& rows) -> Result<void> {
    TRY(GoOn(options.stop));
    if (rows.times.size() != rows.size())
      return Error{Code::kInvalid, Str(Option("by-time"), " needs rows with a time: ratings with a fourth column, or ",
                                       Option("time-column"))};
    times.insert(times.end(), rows.times.span().begin(), rows.times.span().end());
    return {};
  }));
  if (times.empty()) return Error{Code::kBadInput, "no rows to split"};
  const auto cut =
      times.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(times.size() - 1) * (1 - options.test_share));
  std::nth_element(times.begin(), cut, times.end());
  return *cut;
}

}  // namespace

namespace {

bool IsComment(std::string_view line) { return Trim(line).front() == '#'; }

// The lines of a chunk that are rows.
Result<std::vector<std::string_view>> LinesOf(const Rows& rows, const Description& description) {
  std::vector<std::string_view> lines = Split({rows.text.data(), rows.text.size()}, '\n');
  const bool comments = description.format == "libsvm";
  std::erase_if(lines, [&](std::string_view line) { return Trim(line).empty() || (comments && IsComment(line)); });
  if (lines.size() == rows.size()) return lines;
  return Error{Code::kBadInput,
               "lines and rows differ: there are line ends inside quotes, which splitting cannot handle"};
}

Result<std::size_t> BucketCount(const base::Env& env, const std::vector<std::string>& paths) {
  constexpr std::uint64_t kMostBuckets = 400;  // for either file; each is an open file
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += TRY(env.files.OpenRead(path))->size().value_or(1ull << 30);
  return static_cast<std::size_t>(std::min(bytes / kBucketBytes + 1, kMostBuckets));
}

}  // namespace

Result<SplitCounts> SplitFiles(const base::Env& env, const SplitOptions& options, const InputOptions& input) {
  for (const std::string& path : options.paths)
    if (!Repeatable(env.files, path))
      return Error{Code::kInvalid, Str(path == "-" ? "standard input" : path,
                                       " cannot be split, since it would be read twice; give a file")};
  if (options.train_path == options.test_path)
    return Error{Code::kInvalid, Str("both parts would be written to ", options.train_path, "; give two names")};
  if (input.format == kTextFormat)
    return Error{Code::kInvalid, Str("a text is one sequence, not rows to choose from; use ", Option("holdout"),
                                     " when training instead")};
  InputOptions any_label = input;  // what the labels are does not matter here
  any_label.task = Labels::Kind::kReal;
  any_label.positive.clear();
  any_label.classes.clear();
  Description description;
  ReaderOptions reader_options;
  reader_options.paths = options.paths;
  reader_options.labelled = false;
  reader_options.grow = false;
  auto reader = TRY(Reader::Open(env, reader_options, any_label, description));
  if (description.format == "idx" || description.format == "cifar10")
    return Error{Code::kInvalid, Str("a ", description.format, " file is not made of lines; use ", Option("holdout"),
                                     " when training instead")};
  if (description.format == "ratings") {  // whose rows have times only if they have ratings
    reader_options.labelled = true;
    reader = TRY(Reader::Open(env, reader_options, any_label, description));
  }
  std::int64_t cut_time = 0;
  if (options.by_time) {
    cut_time = TRY(CutTime(env, *reader, options));
    TRY(reader->Seek({}));
  }
  const auto chunks = TRY(Chunks::Open(env.files, options.paths, {}));
  const std::string_view head = chunks->head().bytes;
  const std::string header = description.header ? Str(Trim(head.substr(0, EndOfHeader(head, true))), "\n") : "";
  const std::size_t buckets = options.shuffle ? TRY(BucketCount(env, chunks->paths())) : 0;
  LineWriter train(env.files, options.train_path, buckets, options.seed);
  LineWriter test(env.files, options.test_path, buckets, options.seed + 1);
  TRY(train.Open(header));
  TRY(test.Open(header));
  TRY(DriveInOrder(env.executor, *reader, [&](Rows& rows) -> Result<void> {
    TRY(GoOn(options.stop));
    const auto lines = TRY(LinesOf(rows, description));
    for (std::size_t r = 0; r < lines.size(); ++r) {
      const double draw =
          static_cast<double>(base::Hash64(rows.samples[r] ^ base::Hash64(options.seed)) >> 11) * 0x1p-53;
      const bool for_test = options.by_time ? rows.times[r] > cut_time : draw < options.test_share;
      TRY((for_test ? test : train).Add(lines[r]));
    }
    return {};
  }));
  SplitCounts counts;
  counts.train = TRY(train.Close());
  counts.test = TRY(test.Close());
  return counts;
}

}  // namespace freshet::data
