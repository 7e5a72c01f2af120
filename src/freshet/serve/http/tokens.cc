#include "serve/http/tokens.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "serve/http/parser.h"

namespace freshet::serve {
namespace {

constexpr std::size_t kMaxFileBytes = 64 << 10;
constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxNameBytes = 15;    // less than a token has, so that none is taken for a name
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
  const base::Lock lock(tokens->mutex_);
  tokens->entries_ = TRY(Parse(file.text).While(Str("reading token file ", tokens->path_)));
  tokens->stamp_ = file.stamp;
  tokens->looked_ = clock.Now();
  return tokens;
}

Tokens::Verdict Tokens::Check(std::string_view authorization, std::string_view peer) {
  if (authorization.empty()) return {};
  const base::Lock lock(mutex_);
  if (const Entry* const found = Find(authorization)) return {.scope = found->scope, .name = found->name};
  return {.limited = !CountFailure(peer)};
}

Scope Tokens::ScopeOf(std::string_view authorization) const {
  const base::Lock lock(mutex_);
  const Entry* const found = Find(authorization);
  return found != nullptr ? found->scope : Scope::kNone;
}

void Tokens::Refresh() {
  const base::Lock lock(mutex_);
  if (clock_.Now() - looked_ < std::chrono::seconds(1)) return;
  looked_ = clock_.Now();
  if (const Result<Stamp> now = StampOf(path_); now.ok() && now.value() == stamp_) return;
  if (const Result<void> loaded = Reload(); !loaded.ok()) {
    if (loaded.error().text != complaint_)
      log_.Error("tokens_not_reloaded", "file", path_, "why", loaded.error().text, "still_valid", entries_.size());
    complaint_ = loaded.error().text;
    return;
  }
  complaint_.clear();
  log_.Info("tokens_reloaded", "file", path_, "count", entries_.size());
}

Result<void> Tokens::Reload() {
  const Result<File> file = Read(path_);
  if (!file.ok()) {  // taken away on purpose, or others may know what is in it
    Use({}, {});
    return file.error();
  }
  Use(TRY(Parse(file.value().text)), file.value().stamp);
  return {};
}

void Tokens::Use(std::vector<Entry> entries, const Stamp& stamp) {
  stamp_ = stamp;
  if (entries.empty() && entries_.empty()) return;
  entries_ = std::move(entries);
  generation_.fetch_add(1, std::memory_order_release);
}

// Looks at every entry, whatever it finds, so that the time taken says nothing.
const Tokens::Entry* Tokens::Find(std::string_view authorization) const {
  if (!EqualIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) return nullptr;
  const Digest digest = DigestOf(authorization.substr(kScheme.size()));
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0 &&
        (found == nullptr || found->scope < entry.scope))
      found = &entry;
  return found;
}

// False when the address has had too many in this second.
bool Tokens::CountFailure(std::string_view peer) {
  if (clock_.Now() - window_ >= std::chrono::seconds(1)) {
    window_ = clock_.Now();
    failures_.clear();
  }
  const bool known = failures_.size() < kMaxAddresses || failures_.find(peer) != failures_.end();
  if (++failures_[std::string(known ? peer : std::string_view())] > failures_per_s_) return limited_.Add(), false;
  return wrong_.Add(), true;
}

Tokens::Stamp Tokens::Stamped(const struct stat& status) {
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return {ns(status.st_mtim), ns(status.st_ctim), status.st_size, static_cast<std::int64_t>(status.st_ino)};
}

Result<Tokens::Stamp> Tokens::StampOf(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return Failed(path, "look at");
  return Stamped(status);
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
  return File{Stamped(status), std::move(text)};
}

// What is wrong is said without showing any of it: a word in the wrong place may be the secret.
Result<Tokens::Entry> Tokens::ParseLine(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = Trim(line)).empty()) {
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
  const Scope scope = TRY(ScopeNamed(words[0]));
  if (words.size() < 2 || words.size() > 3)
    return Error{Code::kInvalid,
                 Str("it has ", words.size(), " words, expected scope and token, or scope, name and token")};
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  const std::string_view token = words.back();
  if (token.size() < kMinTokenBytes || !std::all_of(token.begin(), token.end(), visible))
    return Error{Code::kInvalid, Str("the token is not at least ", kMinTokenBytes, " printable characters")};
  Entry entry{scope, "", DigestOf(token)};
  if (words.size() == 2) {  // longer than a name may be
    entry.name = "unnamed-";
    constexpr char kHex[] = "0123456789abcdef";
    for (std::size_t i = 0; i < 4; ++i) entry.name += {kHex[entry.digest[i] >> 4], kHex[entry.digest[i] & 15]};
    return entry;
  }
  const auto named = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  if (words[1].size() > kMaxNameBytes || !std::all_of(words[1].begin(), words[1].end(), named))
    return Error{Code::kInvalid,
                 Str("the name is not 1 to ", kMaxNameBytes, " letters, digits, _ . or -; it comes before the token")};
  entry.name = words[1];
  return entry;
}

Result<std::vector<Tokens::Entry>> Tokens::Parse(std::string_view text) {
  std::vector<Entry> entries;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    line = Trim(line);
    if (line.empty() || line[0] == '#') continue;
    entries.push_back(TRY(ParseLine(line).While(Str("line ", number))));
  }
  if (entries.empty()) return Error{Code::kInvalid, "there is no token in it; add a line: admin <name> <token>"};
  return entries;
}

Tokens::Digest Tokens::DigestOf(std::string_view token) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

}  // namespace freshet::serve
