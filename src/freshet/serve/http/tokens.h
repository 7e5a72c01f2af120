#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/result.h"
#include "serve/http/exchange.h"

namespace freshet::serve {

// The bearer tokens of a server. The file has lines `scope name token` or `scope token` (scope: predict, learn or
// admin; # begins a comment; a token is at least 16 printable characters without blanks) and belongs to its owner
// alone. Tokens are kept as SHA-256 digests and never appear in a log, an error or a metric.
//
// A name, of up to 15 letters, digits, _ . and -, is whose predictions are: it stays when the token is rotated, and
// several tokens may have it. A token without a name has one made from its digest.
//
// Threads:   any.
// Ownership: borrows clock and log.
// Blocking:  Refresh reads the file when it has changed; the others never wait for the disk.
// Failure:   Open: kNotFound, kIo, kInvalid for a file others may read or a line that makes no sense. Later, a file
// that
//            is gone, cannot be read or is open to others leaves no token valid until that is mended; one with a line
//            that makes no sense leaves the old ones. The log says why.
class Tokens {
 public:
  static Result<std::unique_ptr<Tokens>> Open(std::string path, int failures_per_s, base::Clock& clock, base::Log& log,
                                              base::Metrics& metrics);

  struct Verdict {
    Scope scope = Scope::kNone;
    std::string name{};    // of the token; "" with no scope
    bool limited = false;  // it is wrong, and too many from this address were
  };
  // `authorization` is the field's value, "" when there was none. A wrong token counts as a failure of the address,
  // which makes no difference to those there who have a good one.
  Verdict Check(std::string_view authorization, std::string_view peer);
  // What it allows now, without counting anything.
  Scope ScopeOf(std::string_view authorization) const;

  // Rises whenever the tokens change: a verdict holds as long as it stays the same.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Reads the file again if it has changed; looks at most once a second.
  void Refresh();

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Scope scope;
    std::string name;
    Digest digest;
  };
  struct Stamp {                                                        // of the file that was read
    std::int64_t modified_ns = 0, changed_ns = 0, size = 0, inode = 0;  // changed: by chmod too
    bool operator==(const Stamp&) const = default;
  };
  struct File {
    Stamp stamp;
    std::string text;
  };
  static Stamp Stamped(const struct stat& status);
  static Result<Stamp> StampOf(const std::string& path);
  static Result<File> Read(const std::string& path);
  static Result<std::vector<Entry>> Parse(std::string_view text);
  static Digest DigestOf(std::string_view token);

  Tokens(std::string path, int failures_per_s, base::Clock& clock, base::Log& log, base::Metrics& metrics);
  static Result<Entry> ParseLine(std::string_view line);
  const Entry* Find(std::string_view authorization) const REQUIRES(mutex_);
  bool CountFailure(std::string_view peer) REQUIRES(mutex_);
  Result<void> Reload() REQUIRES(mutex_);
  void Use(std::vector<Entry> entries, const Stamp& stamp) REQUIRES(mutex_);

  const std::string path_;
  const int failures_per_s_;
  base::Clock& clock_;
  base::Log& log_;
  base::Counter& wrong_;
  base::Counter& limited_;
  std::atomic<std::uint64_t> generation_{1};

  mutable base::Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  Stamp stamp_ GUARDED_BY(mutex_);
  std::string complaint_ GUARDED_BY(mutex_);  // why the file could not be read again; said once
  base::Clock::Duration looked_ GUARDED_BY(mutex_){0};
  base::Clock::Duration window_ GUARDED_BY(mutex_){0};                   // when the failures below began to be counted
  std::map<std::string, int, std::less<>> failures_ GUARDED_BY(mutex_);  // by address
};

}  // namespace freshet::serve
