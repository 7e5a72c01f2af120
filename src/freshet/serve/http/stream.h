#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "serve/http/exchange.h"
#include "serve/http/mailbox.h"

namespace freshet::serve {

// Between a handler's thread that writes a stream and the connection that sends it: a bounded backlog.
//
// Threads: any.
class HttpStream final : public Stream::Sink {
 public:
  HttpStream(std::weak_ptr<HttpConnection> connection, std::shared_ptr<HttpMailbox> mailbox, std::size_t backlog_bytes);

  bool Write(std::string_view text) override;
  void Close() override;

  // By the connection: what has been written since, and whether more will come.
  enum class State { kOpen, kEnded, kTooSlow, kAbandoned };
  State Take(std::string& text);
  void Abandon();  // nothing more will be taken; writing fails from now on

 private:
  bool Notify() REQUIRES(mutex_);

  const std::shared_ptr<HttpMailbox> mailbox_;
  const std::size_t backlog_bytes_;
  const std::weak_ptr<HttpConnection> connection_;

  base::Mutex mutex_;
  std::string backlog_ GUARDED_BY(mutex_);
  State state_ GUARDED_BY(mutex_) = State::kOpen;
  bool notified_ GUARDED_BY(mutex_) = false;  // the connection knows that there is something to take
};

}  // namespace freshet::serve
