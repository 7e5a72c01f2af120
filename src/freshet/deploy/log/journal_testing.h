#pragma once

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include "base/faulty_files.h"
#include "base/simulated_clock.h"
#include "deploy/log/journal.h"

namespace freshet::deploy {

// A disk in memory, so that no test waits for one. It can be looked at, changed and copied; reads are counted, and
// cutting files short can be made to fail.
//
// Threads: any, but not beside Restore.
class MemoryDisk final : public base::Files {
 public:
  using Contents = std::map<std::string, std::string>;  // by path
  std::atomic<std::uint64_t> reads{0}, bytes_read{0};
  std::atomic<bool> cuts_fail{false};

  Contents Snapshot() const {
    const std::lock_guard lock(mutex_);
    return ContentsNow();
  }
  void Restore(const Contents& contents) {
    const std::lock_guard lock(mutex_);
    files_.clear();
    for (const auto& [path, bytes] : contents) files_[path] = std::make_shared<File>(File{bytes});
  }
  // Keeps what is on the disk right after the nth change from now on, as a crash would leave it.
  void TakeImageAfter(int nth) {
    const std::lock_guard lock(mutex_);
    changes_ = 0;
    image_at_ = nth;
    image_.reset();
  }
  const std::optional<Contents>& image() const { return image_; }
  void Write(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::make_shared<File>(File{std::move(bytes)});
  }
  std::string Read(const std::string& path) const { return Snapshot().at(path); }

  Result<std::unique_ptr<base::InputFile>> OpenRead(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path);
    if (found == files_.end()) return Error{Code::kNotFound, Str(path, ": no such file")};
    return std::unique_ptr<base::InputFile>(std::make_unique<Input>(*this, found->second));
  }
  Result<std::unique_ptr<base::OutputFile>> Create(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    TRY(CheckParent(path));
    auto file = files_[path] = std::make_shared<File>();
    Changed();
    return std::unique_ptr<base::OutputFile>(std::make_unique<Output>(*this, std::move(file)));
  }
  Result<std::unique_ptr<base::AppendFile>> OpenAppend(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    TRY(CheckParent(path));
    auto& file = files_[path];
    if (file == nullptr) file = std::make_shared<File>();
    Changed();
    return std::unique_ptr<base::AppendFile>(std::make_unique<Appended>(*this, file));
  }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    files_[to] = files_.at(from);
    files_.erase(from);
    Changed();
    return {};
  }
  Result<void> Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (files_.erase(path) == 0) return Error{Code::kNotFound, Str(path, ": no such file")};
    Changed();
    return {};
  }
  Result<void> MakeDirectory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return CheckParent(path + "/");
  }
  Result<void> SyncDirectoryOf(const std::string&) override { return {}; }
  Result<std::unique_ptr<base::FileLock>> Lock(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (!locked_.insert(path).second) return Error{Code::kBusy, Str(path, ": is in use")};
    return std::unique_ptr<base::FileLock>(std::make_unique<Held>(*this, path));
  }
  bool Exists(const std::string& path) const override {
    const std::lock_guard lock(mutex_);
    return files_.contains(path);
  }
  bool IsDevice(const std::string&) const override { return false; }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> paths;
    for (const auto& [path, file] : files_)
      if (path == pattern || fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0) paths.push_back(path);
    if (paths.empty()) return Error{Code::kNotFound, Str(pattern, ": no such file")};
    return paths;
  }

 private:
  struct File {
    std::string bytes;
  };
  struct Input final : base::InputFile {
    Input(MemoryDisk& d, std::shared_ptr<File> f) : disk(d), file(std::move(f)), size_then(file->bytes.size()) {}
    Result<std::size_t> Read(std::span<char> out) override {
      const std::size_t got = TRY(ReadAt(at, out));
      at += got;
      return got;
    }
    Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const override {
      const std::lock_guard lock(disk.mutex_);
      const std::size_t got = offset < file->bytes.size() ? file->bytes.copy(out.data(), out.size(), offset) : 0;
      ++disk.reads;
      disk.bytes_read += got;
      return got;
    }
    std::optional<std::uint64_t> size() const override { return size_then; }
    MemoryDisk& disk;
    const std::shared_ptr<File> file;
    const std::uint64_t size_then;
    std::uint64_t at = 0;
  };
  struct Output final : base::OutputFile {
    Output(MemoryDisk& d, std::shared_ptr<File> f) : disk(d), file(std::move(f)) {}
    Result<void> Write(std::span<const std::byte> bytes) override { return disk.Append(*file, bytes); }
    Result<void> Sync() override { return {}; }
    MemoryDisk& disk;
    const std::shared_ptr<File> file;
  };
  struct Appended final : base::AppendFile {
    Appended(MemoryDisk& d, std::shared_ptr<File> f) : disk(d), file(std::move(f)) {}
    Result<void> Append(std::span<const std::byte> bytes) override { return disk.Append(*file, bytes); }
    Result<void> Sync() override { return {}; }
    Result<void> Truncate(std::uint64_t size) override {
      if (disk.cuts_fail) return Error{Code::kIo, "cannot shorten: Input/output error"};
      const std::lock_guard lock(disk.mutex_);
      file->bytes.resize(size);
      disk.Changed();
      return {};
    }
    MemoryDisk& disk;
    const std::shared_ptr<File> file;
  };
  struct Held final : base::FileLock {
    Held(MemoryDisk& d, std::string p) : disk(d), path(std::move(p)) {}
    ~Held() override {
      const std::lock_guard lock(disk.mutex_);
      disk.locked_.erase(path);
    }
    MemoryDisk& disk;
    const std::string path;
  };
  Result<void> Append(File& file, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    file.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Changed();
    return {};
  }
  void Changed() {
    if (++changes_ == image_at_) image_ = ContentsNow();
  }
  Contents ContentsNow() const {
    Contents contents;
    for (const auto& [path, file] : files_) contents[path] = file->bytes;
    return contents;
  }
  // No file may stand where a directory should.
  Result<void> CheckParent(const std::string& path) const {
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
      if (files_.contains(path.substr(0, at))) return Error{Code::kIo, Str(path, ": cannot open: Not a directory")};
    return {};
  }

  mutable std::mutex mutex_;  // guards everything below, and what is in files
  std::map<std::string, std::shared_ptr<File>> files_;
  std::set<std::string> locked_;
  int changes_ = 0, image_at_ = 0;
  std::optional<Contents> image_;
};

// Where a journal or a deployment can be opened, closed, broken and opened again.
class Lab {
 public:
  MemoryDisk disk;
  base::FaultyFiles files{disk};
  base::ManualClock clock;
  base::Faults faults;
  base::InlineExecutor executor;
  std::vector<std::string> lines;  // of the log
  base::Log log{clock, [this](std::string_view line) { lines.emplace_back(line); }};
  base::Env env{files, clock, log, executor, faults};

  bool Said(std::string_view text) const {
    return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.find(text) != line.npos; });
  }
  Result<std::unique_ptr<Journal>> OpenJournal(JournalOptions options = {}) {
    if (options.directory.empty()) options.directory = "/journal";
    return Journal::Open(env, options);
  }
  // Segment files, oldest first.
  std::vector<std::string> Segments() const {
    const auto found = disk.Glob("/journal/*.log");
    return found.ok() ? found.value() : std::vector<std::string>();
  }
};

// A record as it was given to a journal.
struct Kept {
  std::uint64_t sequence = 0;
  RecordKind kind = RecordKind::kObservation;
  std::string payload;
  bool operator==(const Kept&) const = default;
};

inline std::vector<Kept> All(const RecordLog& log, std::uint64_t from = 1) {
  std::vector<Kept> all;
  EXPECT_TRUE(log.Scan(from,
                       [&](const Record& record) -> Result<void> {
                         all.push_back({record.sequence, record.kind, std::string(record.payload)});
                         return {};
                       })
                  .ok());
  return all;
}

// Observation n: a sparse row whose label and only feature are n.
inline std::string PackedRow(std::uint64_t n, const std::string& id = "", std::int64_t time = 0) {
  data::Rows rows;
  rows.ClearRows();
  rows.labels.Append(static_cast<float>(n));
  rows.indices.Append(static_cast<std::uint32_t>(n));
  rows.values.Append(1);
  rows.offsets.Append(1);
  Slip slip;
  slip.id = id;
  slip.time = time;
  std::string payload;
  PackRow(rows.batch(), 0, slip, payload);
  return payload;
}

// The labels of the rows with these numbers: the numbers themselves, if rows are PackedRow(0), PackedRow(1) …
inline std::vector<std::uint64_t> Labels(const History& history, const std::vector<std::uint64_t>& numbers) {
  data::Rows rows;
  rows.ClearRows();
  EXPECT_TRUE(history.Read(numbers, rows).ok());
  std::vector<std::uint64_t> labels;
  for (const float label : rows.labels.span()) labels.push_back(static_cast<std::uint64_t>(label));
  return labels;
}
inline std::vector<std::uint64_t> UpTo(std::uint64_t end, std::uint64_t first = 0) {
  std::vector<std::uint64_t> numbers(end - first);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

}  // namespace freshet::deploy
