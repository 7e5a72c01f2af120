#include "announce.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace freshet::cli {
namespace {

constexpr std::string_view kDescriptor = "fd:";

Result<void> WriteTo(const std::string& where, std::string_view line) {
  int descriptor = -1;
  const char* const end = where.data() + where.size();
  const auto [stop, error] = std::from_chars(where.data() + kDescriptor.size(), end, descriptor);
  if (error != std::errc{} || stop != end || descriptor < 0)
    return Error{Code::kInvalid, Str("--announce ", Quoted(where), ": expected a file, or fd:N, as in fd:3")};
  const ssize_t put = write(descriptor, line.data(), line.size());
  const int why = errno;
  if (descriptor > 2) close(descriptor);
  if (put == static_cast<ssize_t>(line.size())) return {};
  return Error{why == EBADF ? Code::kInvalid : Code::kIo,
               Str("--announce ", where, ": cannot write there: ", std::strerror(why))};
}

}  // namespace

Result<void> Announce(base::Files& files, const std::string& where, const std::string& rendezvous, int port) {
  const std::string line = Str(rendezvous.substr(0, rendezvous.rfind(':')), ":", port, "\n");
  if (where.starts_with(kDescriptor)) return WriteTo(where, line);
  return base::WriteAtomic(files, where, [&](base::OutputFile& file) { return file.Write(line); });
}

}  // namespace freshet::cli
