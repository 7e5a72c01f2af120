#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "serve/http/acceptor.h"
#include "serve/http/connection.h"
#include "serve/http/mailbox.h"
#include "serve/http/site.h"

namespace freshet::serve {

// One thread's share of the connections: waits until something happens to one of them and lets it go on.
//
// Threads:   made, run and destroyed on one thread; others reach it through its mailbox.
// Ownership: borrows site and acceptor; owns its connections until they are closed.
// Blocking:  Turn, for as long as it is told.
class HttpLoop {
 public:
  // The acceptor is listened to from now on; none: connections come by Adopt alone. kIo when descriptors are short.
  static Result<std::unique_ptr<HttpLoop>> Make(HttpSite& site, HttpAcceptor* acceptor);
  ~HttpLoop();

  // Turns until the site stops.
  void Run();
  // Waits at most `wait` for something to happen, and deals with it. False when the site has stopped and all is done.
  bool Turn(std::chrono::milliseconds wait);

  // Takes the descriptor in, or turns it away when it would have to replace a connection and none can go.
  void Adopt(Arrival arrival);

  // For its connections.
  base::Clock::Duration now() const { return now_; }  // as of this turn
  std::string_view date() const { return date_; }
  void Waits(HttpConnection& connection);    // for its client, since now
  void Works(HttpConnection& connection);    // waits for nobody, or for the handler
  void Streams(HttpConnection& connection);  // sends an answer without an end, since now
  void StreamEnded(HttpConnection& connection);
  void Again(HttpConnection& connection);   // wants to go on after the others
  void Leaves(HttpConnection& connection);  // is being closed

 private:
  using Connections = std::list<std::shared_ptr<HttpConnection>>;

  HttpLoop(HttpSite& site, HttpAcceptor* acceptor, int poller);
  bool Watch(int descriptor, std::uint32_t events, void* what);
  void ReadClock();
  void AcceptSome();
  void Place(Arrival arrival);
  void HandTo(HttpMailbox& box, Arrival arrival);
  void TurnAway(const Arrival& arrival, int status, std::string_view reason);
  void Seat(HttpConnection& connection, Connections& list);
  bool Empty() const { return waiting_.empty() && reserved_.empty() && working_.empty(); }
  void TakeMail();
  void Tick();
  void EndStreamsBeyond();
  bool EndOldestStream();
  bool MakeRoom();
  bool TakeReservedSeat(const std::string& peer);
  void PublishLongestWait();
  void PublishOldestStream();
  void Stop();
  std::vector<std::shared_ptr<HttpConnection>> All() const;

  HttpSite& site_;
  HttpAcceptor* acceptor_;  // none once it is not listened to any more
  const int poller_;
  const std::shared_ptr<HttpMailbox> mailbox_;
  base::Clock::Duration now_{0};
  base::Clock::Duration next_tick_{0};
  base::Clock::Duration next_date_{0};
  base::Clock::Duration warned_;  // when descriptors were last short
  std::string date_;
  bool stopping_ = false;
  bool accepting_ = false;  // the poller watches the acceptor

  Connections waiting_;   // the longest first
  Connections reserved_;  // the same, of those on reserved seats
  Connections working_;
  std::list<HttpConnection*> streams_;  // the oldest first; they are among those that work
  std::vector<std::shared_ptr<HttpConnection>> again_;
  std::vector<std::shared_ptr<HttpConnection>> closed_;  // this turn; events for them may still be to come
  std::vector<Mail> mail_;
  std::vector<Arrival> arrivals_;
};

}  // namespace freshet::serve
