#include "base/files.h"

#include "base/beneath.h"
#include "base/descriptor.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace freshet::base {
namespace {

Error SystemError(std::string_view what, const std::string& path) {
  const int error = errno;
  const Code code = error == ENOENT ? Code::kNotFound : Code::kIo;
  return {code, Str(path, ": cannot ", what, ": ", std::strerror(error))};
}

class PosixInput final : public InputFile {
 public:
  PosixInput(Descriptor file, std::string path, std::optional<std::uint64_t> size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  Result<std::size_t> Read(std::span<char> out) override {
    return Fill(out, [this](char* at, std::size_t n, std::size_t) { return read(file_.get(), at, n); });
  }
  Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const override {
    return Fill(out, [&](char* at, std::size_t n, std::size_t done) {
      return pread(file_.get(), at, n, static_cast<off_t>(offset + done));
    });
  }
  std::optional<std::uint64_t> size() const override { return size_; }

 private:
  template <class Call>
  Result<std::size_t> Fill(std::span<char> out, Call call) const {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = call(out.data() + done, out.size() - done, done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError("read", path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  const Descriptor file_;
  const std::string path_;
  const std::optional<std::uint64_t> size_;
};

class PosixOutput final : public OutputFile {
 public:
  PosixOutput(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<void> Write(std::span<const std::byte> bytes) override {
    if (failed_) return *failed_;
    while (!bytes.empty()) {
      const ssize_t put = write(file_.get(), bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return Fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return {};
  }
  Result<void> Sync() override {
    if (failed_) return *failed_;
    // EINVAL: a pipe or a character device (/dev/stdout, /dev/null), which has nothing to sync.
    if (fdatasync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) return Fail("sync");
    return {};
  }

 private:
  Error Fail(std::string_view what) {
    failed_ = SystemError(what, path_);
    return *failed_;
  }
  const Descriptor file_;
  const std::string path_;
  std::optional<Error> failed_;
};

class PosixAppend final : public AppendFile {
 public:
  PosixAppend(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<void> Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = write(file_.get(), bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return SystemError("write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return {};
  }
  Result<void> Sync() override {
    if (fdatasync(file_.get()) != 0) return SystemError("sync", path_);
    return {};
  }
  Result<void> Truncate(std::uint64_t size) override {
    if (ftruncate(file_.get(), static_cast<off_t>(size)) != 0) return SystemError("shorten", path_);
    return {};
  }

 private:
  const Descriptor file_;
  const std::string path_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(Descriptor file) : file_(std::move(file)) {}

 private:
  const Descriptor file_;  // closing it lets go of the lock
};

}  // namespace

Result<std::unique_ptr<InputFile>> PosixFiles::OpenRead(const std::string& path) {
  const bool standard = path == "-";
  Descriptor file = standard ? Descriptor::Lent(0) : Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return SystemError("open", path);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return SystemError("look at", path);
  if (S_ISDIR(info.st_mode))
    return Error{Code::kIo, Str(path, ": is a directory; give a file or a pattern such as '", path, "/*'")};
  std::optional<std::uint64_t> size;
  if (S_ISREG(info.st_mode) && (!standard || lseek(file.get(), 0, SEEK_CUR) == 0))
    size = static_cast<std::uint64_t>(info.st_size);
  return std::unique_ptr<InputFile>(
      std::make_unique<PosixInput>(std::move(file), standard ? "standard input" : path, size));
}

Result<std::unique_ptr<InputFile>> OpenBeneath(const std::string& folder, std::string_view name) {
  const std::string path = Str(folder, folder.empty() ? "" : "/", name);
  constexpr std::size_t kMostName = 4096;
  if (name.empty() || name.size() > kMostName || name.find('\0') != std::string_view::npos)
    return Error{Code::kBadInput, Str(Quoted(name.substr(0, 100)), " is no name of a file")};
  Descriptor at(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.open()) return SystemError("open", folder);
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (part.empty() || part == "." || part == "..")
      return Error{Code::kBadInput, Str(Quoted(name), " leads out of the folder: only files inside it are opened")};
    const bool last = slash == std::string_view::npos;
    rest = last ? std::string_view() : rest.substr(slash + 1);
    if (!last && rest.empty()) return Error{Code::kBadInput, Str(Quoted(name), " names a folder, not a file")};
    // Non-blocking, so that a pipe cannot hold us up before it is seen to be one.
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY);
    Descriptor next(openat(at.get(), part.c_str(), flags));
    if (!next.open() && errno == ELOOP)
      return Error{Code::kBadInput, Str(path, ": ", Quoted(part), " is a link, which is not followed")};
    if (!next.open()) return SystemError("open", path);
    at = std::move(next);
  }
  struct stat info {};
  if (fstat(at.get(), &info) != 0) return SystemError("look at", path);
  if (!S_ISREG(info.st_mode)) return Error{Code::kBadInput, Str(path, ": is no regular file")};
  return std::unique_ptr<InputFile>(
      std::make_unique<PosixInput>(std::move(at), path, static_cast<std::uint64_t>(info.st_size)));
}

Result<std::unique_ptr<OutputFile>> PosixFiles::Create(const std::string& path) {
  const bool standard = path == "-";
  Descriptor file =
      standard ? Descriptor::Lent(1) : Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.open()) return SystemError("create", path);
  return std::unique_ptr<OutputFile>(
      std::make_unique<PosixOutput>(std::move(file), standard ? "standard output" : path));
}

Result<std::unique_ptr<AppendFile>> PosixFiles::OpenAppend(const std::string& path) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.open()) return SystemError("open", path);
  return std::unique_ptr<AppendFile>(std::make_unique<PosixAppend>(std::move(file), path));
}

Result<void> PosixFiles::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return SystemError(Str("rename to ", to), from);
  return {};
}

Result<void> PosixFiles::Remove(const std::string& path) {
  if (unlink(path.c_str()) != 0) return SystemError("remove", path);
  return {};
}

Result<void> PosixFiles::MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{Code::kIo, Str(path, ": cannot make the directory: ", error.message())};
  return {};
}

Result<void> PosixFiles::SyncDirectoryOf(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  if (parent.empty()) parent = ".";
  const Descriptor directory(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.open()) return SystemError("open", parent);
  if (fsync(directory.get()) != 0 && errno != EINVAL && errno != EROFS) return SystemError("sync", parent);
  return {};
}

Result<std::unique_ptr<FileLock>> PosixFiles::Lock(const std::string& path) {
  while (true) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return SystemError("create", path);
    auto lock = std::make_unique<PosixLock>(Descriptor(fd));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      char holder[32] = {};
      if (pread(fd, holder, sizeof holder - 1, 0) <= 0) std::strcpy(holder, "unknown");
      return Error{Code::kBusy, Str(path, ": held by another process (pid ", Trim(holder),
                                    "); wait for it to end, or choose another output")};
    }
    // Its holder may have removed the file between our open and our lock: then what we hold has no name any more.
    struct stat held {
    }, named{};
    if (fstat(fd, &held) != 0) return SystemError("look at", path);
    if (stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino || held.st_dev != named.st_dev) continue;
    const std::string pid = Str(getpid(), "\n");
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) return SystemError("write", path);
    return std::unique_ptr<FileLock>(std::move(lock));
  }
}

bool PosixFiles::Exists(const std::string& path) const { return access(path.c_str(), F_OK) == 0; }

bool PosixFiles::IsDevice(const std::string& path) const {
  if (path == "-") return true;
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> PosixFiles::Glob(const std::string& pattern) const {
  if (pattern == "-" || Exists(pattern)) return std::vector{pattern};
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (paths.empty()) {
    const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
    return Error{Code::kNotFound, Str(pattern, is_pattern ? ": no file matches this pattern" : ": no such file")};
  }
  return paths;
}

Result<std::string> ReadAll(Files& files, const std::string& path) {
  const auto file = TRY(files.OpenRead(path));
  std::string text;
  constexpr std::size_t kStep = 1 << 20;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    const std::size_t got = TRY(file->Read(std::span(text).subspan(before)));
    text.resize(before + got);
    if (got < kStep) return text;
  }
}

Result<void> WriteAtomic(Files& files, const std::string& path,
                         const std::function<Result<void>(OutputFile& file)>& write) {
  if (files.IsDevice(path)) {
    const auto file = TRY(files.Create(path));
    TRY(write(*file));
    return file->Sync();
  }
  const std::string draft = Str(path, ".", getpid(), ".draft");
  const auto attempt = [&]() -> Result<void> {
    const auto file = TRY(files.Create(draft));
    TRY(write(*file));
    TRY(file->Sync());
    TRY(files.Rename(draft, path));
    return files.SyncDirectoryOf(path);
  };
  auto result = attempt();
  if (!result.ok() && files.Exists(draft)) (void)files.Remove(draft);
  return result;
}

}  // namespace freshet::base
