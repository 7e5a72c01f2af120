#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "fabric/tcp/tcp_post.h"
#include "launch_crew.h"
#include "launch_token.h"

namespace freshet::cli {

// Who has started workers that may come and go sees how they end, and tells the others: only that proves it to them.
//
// Threads: makes one, which moves letters. Ownership: borrows the clock. Blocking: the destructor, at most a second, until
// the last letters are out.
class Witness {
 public:
  static Result<std::unique_ptr<Witness>> Open(const Token& token, std::string job, base::Clock& clock);
  Witness(const Witness&) = delete;
  ~Witness();

  // Was this one of a group, which can go on without it? The others are told how it ended.
  bool Tell(Worker& ended);
  // Could it, of whom was told last, be started again, to join the others? Not what ended by its own error, which it would
  // run into again, nor whom they did not let in.
  bool MayComeBack(const Worker& ended) const;
  // Where those may be found that the last one who ended knew of, but itself.
  const std::vector<std::string>& others() const { return others_; }
  // Was this one lost, by no error of its own, before anybody was of a group? Then there is nothing to go on with, and
  // nothing is lost by starting all of them again.
  bool NeverBegan(const Ended& ended) const { return !began_ && (ended.signal != 0 || ended.code == kPeerLost); }

 private:
  explicit Witness(std::unique_ptr<fabric::TcpPost> post, base::Clock& clock);

  std::unique_ptr<fabric::TcpPost> post_;
  base::Clock& clock_;
  std::atomic<bool> ending_{false};
  std::vector<std::string> others_;
  bool belonged_ = false;  // that one
  bool began_ = false;     // anybody belonged
  base::Thread postman_;
};

}  // namespace freshet::cli
