#include "base/stoppable_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace freshet::base {
namespace {

class WaitingInput final : public InputFile {
 public:
  WaitingInput(Descriptor file, std::string path, const std::atomic<bool>& stop)
      : file_(std::move(file)), path_(std::move(path)), stop_(stop) {}

  Result<std::size_t> Read(std::span<char> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      TRY(WaitForBytes());
      const ssize_t got = read(file_.get(), out.data() + done, out.size() - done);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) return Failed("read");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  Result<std::size_t> ReadAt(std::uint64_t, std::span<char>) const override {
    return Error{Code::kInvalid, Str(path_, ": can only be read from first to last")};
  }
  std::optional<std::uint64_t> size() const override { return std::nullopt; }

 private:
  // Returns when a read would not wait: there is something, or the last writer has gone. A named pipe that had no
  // writer yet has neither. A signal may reach another thread than this one, so it looks up from time to time.
  Result<void> WaitForBytes() const {
    constexpr int kLookUpMs = 50;
    while (true) {
      if (stop_.load(std::memory_order_relaxed))
        return Error{Code::kStopped, Str("stopped while waiting for more of ", path_)};
      pollfd waiting{.fd = file_.get(), .events = POLLIN, .revents = 0};
      const int ready = poll(&waiting, 1, kLookUpMs);
      if (ready < 0 && errno != EINTR) return Failed("wait for");
      if (ready > 0) return {};
    }
  }
  Error Failed(std::string_view what) const {
    return {Code::kIo, Str(path_, ": cannot ", what, " it: ", std::strerror(errno))};
  }

  const Descriptor file_;
  const std::string path_;
  const std::atomic<bool>& stop_;
};

// Standard input may be a file that was redirected.
bool IsPlain(int fd) {
  struct stat info {};
  return fstat(fd, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
}

}  // namespace

Result<std::unique_ptr<InputFile>> StoppableFiles::OpenRead(const std::string& path) {
  if (!IsDevice(path)) return posix_.OpenRead(path);
  if (path == "-") {
    if (IsPlain(0)) return posix_.OpenRead(path);
    return std::unique_ptr<InputFile>(std::make_unique<WaitingInput>(Descriptor::Lent(0), "standard input", stop_));
  }
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return Error{Code::kIo, Str(path, ": cannot open: ", std::strerror(errno))};
  return std::unique_ptr<InputFile>(std::make_unique<WaitingInput>(std::move(file), path, stop_));
}

}  // namespace freshet::base
