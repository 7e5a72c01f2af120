#include "launch_token.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace freshet::cli {
namespace {

constexpr std::string_view kHowToMake = "make one with: (umask 077; head -c 32 /dev/urandom > FILE)";

Error SystemError(const std::string& what) { return Error{Code::kIo, Str(what, ": ", std::strerror(errno))}; }

Result<void> WriteToken(int descriptor, const Token& token, const std::string& what) {
  if (write(descriptor, token.data(), token.size()) != static_cast<ssize_t>(token.size())) return SystemError(what);
  return {};
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// 32 bytes as they are, or as 64 hexadecimal digits.
Result<Token> ParseToken(std::string_view text, const std::string& from) {
  const Error refused{Code::kInvalid, Str(from, ": found ", text.size(),
                                          " bytes, expected 32, or 64 hexadecimal digits; ", kHowToMake)};
  Token token(kTokenBytes);
  if (text.size() == kTokenBytes) {
    std::memcpy(token.data(), text.data(), kTokenBytes);
    return token;
  }
  const std::string_view digits = Trim(text);
  if (digits.size() != 2 * kTokenBytes) return refused;
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    const int high = HexValue(digits[2 * i]), low = HexValue(digits[2 * i + 1]);
    if (high < 0 || low < 0) return refused;
    token[i] = static_cast<std::byte>(16 * high + low);
  }
  return token;
}

Result<Token> ReadDescriptor(int descriptor, const std::string& from) {
  char text[256];
  std::size_t size = 0;
  while (size < sizeof text) {
    ssize_t got = pread(descriptor, text + size, sizeof text - size, static_cast<off_t>(size));
    if (got < 0 && errno == ESPIPE) got = read(descriptor, text + size, sizeof text - size);  // a pipe
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(Str("cannot read the token from ", from));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return ParseToken({text, size}, from);
}

// Refuses what others could have read.
Result<Token> ReadPrivate(const base::Descriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return SystemError(path);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, Str(path, ": found no plain file, expected a token")};
  if ((status.st_mode & 077) != 0) {
    char mode[8];
    *std::to_chars(mode, mode + 7, status.st_mode & 0777u, 8).ptr = '\0';
    return Error{Code::kInvalid, Str(path, ": its mode is 0", mode,
                                     ", so others may have read the token; expected 0600: make a new one, and chmod "
                                     "600 it before the token is in it")};
  }
  return ReadDescriptor(file.get(), path);
}

Result<Token> ReadFile(const std::string& path) {
  const base::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return SystemError(Str("cannot read the token ", path));
  return ReadPrivate(file, path);
}

Result<Token> ReadInherited(const std::string& number) {
  int descriptor = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), descriptor);
  if (error != std::errc{} || end != number.data() + number.size() || fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    return Error{Code::kInvalid, Str("FRESHET_TOKEN_FD: found ", Quoted(number),
                                     ", expected the number of an open descriptor, from which the token is read")};
  return ReadDescriptor(descriptor, "FRESHET_TOKEN_FD");
}

// Makes the user's file, whole from the first moment on; another worker may be faster.
Result<void> MakeUserFile(const std::string& path) {
  const Token token = TRY(MakeToken());
  std::string draft = path + ".XXXXXX";
  const base::Descriptor file(mkostemp(draft.data(), O_CLOEXEC));  // mode 0600
  if (!file.open()) return SystemError(Str("cannot make ", draft));
  auto made = WriteToken(file.get(), token, draft);
  if (made.ok() && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST)
    made = SystemError(Str("cannot make ", path));
  unlink(draft.c_str());
  return made;
}

Result<Token> ReadUserFile(const fabric::Environment& environment) {
  const char* const directory = environment("XDG_RUNTIME_DIR");
  const std::string path =
      Str(directory == nullptr || *directory == '\0' ? "/tmp" : directory, "/freshet-token-", geteuid());
  const auto open_it = [&] {
    return base::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  };
  base::Descriptor file = open_it();
  if (!file.open() && errno == ENOENT) {
    TRY(MakeUserFile(path));
    file = open_it();
  }
  if (!file.open()) return SystemError(Str("cannot read the token ", path, "; pass --token-file FILE instead"));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || status.st_uid != geteuid())
    return Error{Code::kInvalid, Str(path, ": belongs to user ", status.st_uid, ", not to this one (", geteuid(),
                                     "); remove it or pass --token-file FILE")};
  return ReadPrivate(file, path);
}

}  // namespace

Result<Token> MakeToken() {
  Token token(kTokenBytes);
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size()))
    return SystemError("cannot get random bytes");
  return token;
}

Result<base::Descriptor> HoldToken(const Token& token) {
  base::Descriptor file(memfd_create("freshet-token", MFD_CLOEXEC));
  if (!file.open()) return SystemError("cannot make a file in memory");
  TRY(WriteToken(file.get(), token, "cannot write to a file in memory"));
  return file;
}

Result<Token> ReadToken(const std::string& file, const fabric::Place& place, const fabric::Environment& environment) {
  const auto variable = [&](const char* name) {
    const char* const text = environment(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (!file.empty()) return ReadFile(file);
  if (const std::string number = variable("FRESHET_TOKEN_FD"); !number.empty()) return ReadInherited(number);
  if (const std::string path = variable("FRESHET_TOKEN_FILE"); !path.empty()) return ReadFile(path);
  if (place.OnOneHost()) return ReadUserFile(environment);
  return Error{Code::kInvalid,
               Str("workers on several hosts need a token to know each other by: pass --token-file FILE, the same 32 "
                   "random bytes on every host, readable by you alone; ",
                   kHowToMake)};
}

}  // namespace freshet::cli
