#pragma once

#include <memory>
#include <string>

#include "base/settings.h"
#include "fabric/tcp/tcp_post.h"
#include "launch_token.h"
#include "verb.h"

namespace freshet::cli {

// Flags that say which running job is meant.
struct AskFlags {
  std::string address, job, token_file;

  void Register(base::Settings& settings);
  void RegisterJob(base::Settings& settings);  // all but the address
};

// Asks workers of a running job how it goes, and perhaps tells them what is wished.
//
// Threads: one. Blocking: Ask, for at most three seconds.
class Asker {
 public:
  static Result<std::unique_ptr<Asker>> Open(const AskFlags& flags, Door& door);
  // Of that job, at an address like this one.
  static Result<std::unique_ptr<Asker>> Open(Token token, std::string job, const std::string& address, Door& door);

  // What one worker answers (JSON). kTimeout when it does not: it is not there, or does not know our token or job.
  Result<std::string> Ask(const std::string& address, const std::string& order = "") {
    return AskAny({address}, std::chrono::seconds(3), order);
  }
  // What the first of these answers, within that time.
  Result<std::string> AskAny(const std::vector<std::string>& addresses, base::Clock::Duration patience,
                             const std::string& order = "");
  const Token& token() const { return token_; }

 private:
  Asker(Token token, std::unique_ptr<fabric::TcpPost> post, Door& door)
      : token_(std::move(token)), post_(std::move(post)), door_(door) {}

  const Token token_;
  std::unique_ptr<fabric::TcpPost> post_;
  Door& door_;
};

}  // namespace freshet::cli
