#include "fabric/tcp/options.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace freshet::fabric {
namespace tcp {
namespace {

Error IoError(std::string_view doing, const std::string& path) {
  const Code code = errno == ENOENT ? Code::kNotFound : Code::kIo;
  return {code, Str("cannot ", doing, " the job token ", path, ": ", std::strerror(errno))};
}

}  // namespace

Result<void> MakeTokenFile(const std::string& path) {
  Token token;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(token.data()), token.size()) != 1)
    return Error{Code::kIo, "the system has no random bytes for a job token"};
  const base::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.open()) return IoError("make", path);
  if (::write(file.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()))
    return IoError("write", path);
  return {};
}

Result<Token> ReadTokenFile(const std::string& path) {
  const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return IoError("open", path);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return IoError("look at", path);
  if ((facts.st_mode & 077) != 0)
    return Error{Code::kInvalid, Str("others than its owner can read the job token ", path, "; chmod 600 it")};
  Token token;
  if (facts.st_size != static_cast<off_t>(token.size()))
    return Error{Code::kCorrupt, Str("the job token ", path, " has ", facts.st_size, " bytes, a token has 32")};
  if (::read(file.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()))
    return IoError("read", path);
  return token;
}

}  // namespace tcp

Result<void> TcpOptions::Validate() const {
  std::string wrong;
  const auto need = [&](bool good, std::string_view text) {
    if (!good) wrong += Str(wrong.empty() ? "" : "; ", text);
  };
  need(size >= 1 && size <= 4096, "a group has 1 to 4096 members");
  need(rank >= 0 && rank < size, Str("rank ", rank, " is not below the size ", size));
  need(size == 1 || rendezvous.rfind(':') != std::string::npos,
       Str("the rendezvous ", Quoted(rendezvous), " is not host:port"));
  need(job.size() <= 256, "a job's name has at most 256 letters");
  need(host.size() <= 255, "a host's name has at most 255 letters");
  need(connect_timeout.count() > 0 && heartbeat.count() > 0 && wait_timeout.count() > 0 && heartbeat_misses > 0,
       "timeouts and heartbeats are longer than nothing");
  need(!shared_memory || (std::has_single_bit(ring_bytes) && ring_bytes >= 4096 && ring_bytes <= (1u << 30)),
       "a ring has a power of two of bytes, 4 KB to 1 GB");
  if (!wrong.empty()) return Error{Code::kInvalid, Str("tcp: ", wrong)};
  return {};
}

}  // namespace freshet::fabric
