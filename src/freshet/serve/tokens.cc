#include "serve/tokens.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "serve/http_parser.h"

namespace freshet::serve {
namespace {

constexpr std::size_t kMaxFileBytes = 64 << 10;
constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxAddresses = 4096;  // remembered at a time; the others share one count
constexpr std::string_view kScheme = "Bearer ";
constexpr std::string_view kHelp = "Requests whose token was wrong or missing or did not suffice";

Error Failed(const std::string& path, std::string_view doing) {
  const Code code = errno == ENOENT ? Code::kNotFound : Code::kIo;
  return {code, Str("cannot ", doing, " token file ", path, ": ", std::generic_category().message(errno))};
}

Result<Scope> ScopeNamed(std::string_view name) {
  if (name == "predict") return Scope::kPredict;
  if (name == "learn") return Scope::kLearn;
  if (name == "admin") return Scope::kAdmin;
  return Error{Code::kInvalid, "the first word is not predict, learn or admin"};
}

}  // namespace

Tokens::Tokens(std::string path, int failures_per_s, base::Clock& clock, base::Log& log, base::Metrics& metrics)
    : path_(std::move(path)),
      failures_per_s_(failures_per_s),
      clock_(clock),
      log_(log),
      wrong_(metrics.counter("freshet_auth_failures_total", "reason=\"wrong\"", std::string(kHelp))),
      limited_(metrics.counter("freshet_auth_failures_total", "reason=\"limited\"", std::string(kHelp))) {}

Result<std::unique_ptr<Tokens>> Tokens::Open(std::string path, int failures_per_s, base::Clock& clock, base::Log& log,
                                             base::Metrics& metrics) {
  std::unique_ptr<Tokens> tokens(new Tokens(std::move(path), failures_per_s, clock, log, metrics));
  File file = TRY(Read(tokens->path_));
  tokens->entries_ = TRY(Parse(file.text).While(Str("reading token file ", tokens->path_)));
  tokens->stamp_ = file.stamp;
  tokens->looked_ = clock.Now();
  return tokens;
}

Tokens::Verdict Tokens::Check(std::string_view authorization, std::string_view peer) {
  if (authorization.empty()) return {};
  const std::lock_guard lock(mutex_);
  if (!MayTry(peer)) {
    limited_.Add();
    return {.limited = true};
  }
  Scope scope = Scope::kNone;
  if (EqualIgnoringCase(authorization.substr(0, kScheme.size()), kScheme))
    scope = ScopeOf(authorization.substr(kScheme.size()));
  if (scope == Scope::kNone) CountFailure(peer);
  return {.scope = scope};
}

void Tokens::Refresh() {
  const std::lock_guard lock(mutex_);
  if (clock_.Now() - looked_ < std::chrono::seconds(1)) return;
  looked_ = clock_.Now();
  const Result<Stamp> now = StampOf(path_);
  if (now.ok() && now.value() == stamp_) return;
  const auto reload = [this]() -> Result<void> {
    const File file = TRY(Read(path_));
    entries_ = TRY(Parse(file.text));
    stamp_ = file.stamp;
    return {};
  };
  if (const Result<void> loaded = reload(); !loaded.ok()) {
    if (loaded.error().text != complaint_) log_.Warn("tokens_not_reloaded", "file", path_, "why", loaded.error().text);
    complaint_ = loaded.error().text;
    return;
  }
  complaint_.clear();
  generation_.fetch_add(1, std::memory_order_release);
  log_.Info("tokens_reloaded", "file", path_, "count", entries_.size());
}

// Looks at every entry, whatever it finds, so that the time taken says nothing.
Scope Tokens::ScopeOf(std::string_view token) const {
  const Digest digest = DigestOf(token);
  Scope scope = Scope::kNone;
  for (const Entry& entry : entries_)
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) scope = std::max(scope, entry.scope);
  return scope;
}

bool Tokens::MayTry(std::string_view peer) {
  if (clock_.Now() - window_ >= std::chrono::seconds(1)) {
    window_ = clock_.Now();
    failures_.clear();
  }
  const auto found = failures_.find(failures_.size() < kMaxAddresses ? peer : std::string_view());
  return found == failures_.end() || found->second < failures_per_s_;
}

void Tokens::CountFailure(std::string_view peer) {
  wrong_.Add();
  ++failures_[std::string(failures_.size() < kMaxAddresses ? peer : std::string_view())];
}

Result<Tokens::Stamp> Tokens::StampOf(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return Failed(path, "look at");
  return Stamp{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size,
               static_cast<std::int64_t>(status.st_ino)};
}

Result<Tokens::File> Tokens::Read(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failed(path, "open");
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file, [](const int* fd) { ::close(*fd); });
  struct stat status;
  if (::fstat(file, &status) != 0) return Failed(path, "look at");
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, Str("token file ", path, " is not a regular file")};
  if ((status.st_mode & 077) != 0)
    return Error{Code::kInvalid, Str("token file ", path, " is open to other users; run: chmod 600 ", path)};
  if (status.st_size > static_cast<off_t>(kMaxFileBytes))
    return Error{Code::kInvalid, Str("token file ", path, " has more than ", kMaxFileBytes, " bytes")};
  std::string text(kMaxFileBytes, '\0');
  const ssize_t got = ::read(file, text.data(), text.size());
  if (got < 0) return Failed(path, "read");
  text.resize(static_cast<std::size_t>(got));
  return File{{status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size,
               static_cast<std::int64_t>(status.st_ino)},
              std::move(text)};
}

Result<std::vector<Tokens::Entry>> Tokens::Parse(std::string_view text) {
  std::vector<Entry> entries;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    line = Trim(line);
    if (line.empty() || line[0] == '#') continue;
    const auto here = [number] { return Str("line ", number); };
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const Scope scope = TRY(ScopeNamed(line.substr(0, blank)).While(here()));
    const std::string_view token = Trim(line.substr(blank));
    const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
    if (token.size() < kMinTokenBytes || !std::all_of(token.begin(), token.end(), visible))
      return Error{Code::kInvalid, Str("the token is not at least ", kMinTokenBytes,
                                       " printable characters without blanks; while ", here())};
    entries.push_back({scope, DigestOf(token)});
  }
  if (entries.empty()) return Error{Code::kInvalid, "there is no token in it; add a line: admin <token>"};
  return entries;
}

Tokens::Digest Tokens::DigestOf(std::string_view token) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

}  // namespace freshet::serve
