#include "launch_relay.h"

#include <unistd.h>

#include <cerrno>

#include "base/str.h"

namespace freshet::cli {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;  // longer ones are cut in two
constexpr int kMostReads = 64;                 // at a time, so that one worker does not keep all others waiting

}  // namespace

LineRelay::LineRelay(base::Descriptor from, int to, std::string mark)
    : from_(std::move(from)), to_(to), mark_(std::move(mark)) {}

void LineRelay::Carry(std::string_view line) {
  const std::string text = Str(mark_, line, "\n");
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(to_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void LineRelay::Pump() {
  for (int reads = 0; open() && reads < kMostReads; ++reads) {
    char bytes[1 << 14];
    const ssize_t got = read(from_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return Finish();
    held_.append(bytes, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1)
      Carry(std::string_view(held_).substr(begin, end - begin));
    held_.erase(0, begin);
    if (held_.size() > kLongestLine) {
      Carry(held_);
      held_.clear();
    }
  }
}

void LineRelay::Finish() {
  if (!held_.empty()) Carry(held_);
  held_.clear();
  from_.Close();
}

}  // namespace freshet::cli
