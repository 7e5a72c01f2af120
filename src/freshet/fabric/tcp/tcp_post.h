#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "fabric/membership/post.h"
#include "fabric/tcp/handshake.h"

namespace freshet::fabric {

// Letters between processes over TCP, a connection each: the one who is dialled sends a nonce, the other the letter, sealed
// by the job's token for that nonce. Strangers learn nothing, cost little and are out after a second.
//
// Threads:   Send and Wake from any; one receives, and moves everything meanwhile. Blocking: Receive alone.
// Failure:   what cannot be delivered within `patience` is dropped.
// Ownership: borrows the clock.
class TcpPost final : public Post {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // where others reach this process, in numbers
    std::string job = {};
    tcp::Token token = {};
    base::Clock::Duration patience = std::chrono::seconds(1);  // with who dials, and with whom we dial
    std::size_t guests = 64;                                   // at a time; more wait outside
  };
  static Result<std::unique_ptr<TcpPost>> Open(Options options, const base::Clock& clock);

  const std::string& address() const override { return address_; }
  void Send(const std::string& address, std::string letter) override;
  std::optional<std::string> Receive(base::Clock::Duration until) override;
  void Wake() override;
  // Until all that was to be sent is out, or cannot be delivered; for who receives, before it ends.
  void Flush(base::Clock::Duration until);

  std::uint64_t strangers() const;

 private:
  struct Guest {
    base::Descriptor socket;
    tcp::Nonce nonce;
    base::Clock::Duration deadline{};
    std::string heard = {};
  };
  struct Errand {
    std::string letter;
    base::Descriptor socket = {};
    base::Clock::Duration deadline{};
    std::string nonce = {};
    std::string sealed = {};  // once it has the nonce
    std::size_t written = 0;
  };
  TcpPost(Options options, base::Descriptor listener, base::Descriptor bell, const base::Clock& clock);
  void Ring();
  void TakeOrders();
  void Look(base::Clock::Duration until);
  void LetIn();
  bool Hear(Guest& guest);   // false: it is done with
  bool Run(Errand& errand);  // false: it is done with

  const Options options_;
  const base::Clock& clock_;
  const base::Descriptor listener_, bell_;
  std::string address_;

  mutable base::Mutex mutex_;
  std::deque<std::pair<std::string, std::string>> orders_ GUARDED_BY(mutex_);  // address and letter
  bool woken_ GUARDED_BY(mutex_) = false;
  std::uint64_t strangers_ GUARDED_BY(mutex_) = 0;

  // Of who receives.
  std::list<Guest> guests_;
  std::list<Errand> errands_;
  std::deque<std::string> letters_;
};

}  // namespace freshet::fabric
