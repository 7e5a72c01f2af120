#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "serve/http/body.h"
#include "serve/http/chunks.h"
#include "serve/http/exchange.h"
#include "serve/http/pace.h"
#include "serve/http/parser.h"
#include "serve/http/site.h"
#include "serve/http/socket.h"
#include "serve/http/stream.h"

namespace freshet::serve {

class HttpLoop;

// One client's connection: reads requests one after the other, checks them, hands them to the handler and sends the
// answers in the same order. A state machine that is told when the socket is ready, when time has passed and when an
// answer has come; it does not wait itself.
//
// Threads:   everything on the thread of its loop, except Send and OpenStream, which answer a request from any thread.
// Ownership: the loop owns it until it is closed; exchanges and streams keep its memory, and after that nothing else.
//            Loop and site are not touched once it is closed.
//
// Invariant: while a request is with the handler, its memory (in_, body_, request_) is not written to, even if the
//            client leaves or the time is up meanwhile.
class HttpConnection final : public Exchange::Sink, public std::enable_shared_from_this<HttpConnection> {
 public:
  // With a session it speaks TLS.
  HttpConnection(Arrival arrival, SslSession session, HttpLoop& loop, HttpSite& site,
                 std::shared_ptr<HttpMailbox> mailbox);

  // The handler's side.
  const Request& request() const override { return request_; }
  void Send(Response response) override;
  Stream OpenStream(std::string content_type) override;

  // The loop's side. Each of these may end in Close.
  void OnReady(std::uint32_t epoll_events);
  void OnMail(Mail::Kind kind);
  void OnTick();
  void Advance();    // goes on where it had to leave off to let others have a turn
  void Drain();      // the server stops: finish what is under way, begin nothing
  void EndStream();  // its place is needed
  void Close();
  int descriptor() const { return socket_.descriptor(); }
  const std::string& peer() const { return peer_; }
  bool reserved() const { return reserved_; }

  // Where the loop keeps it.
  struct Seat {
    std::list<std::shared_ptr<HttpConnection>>::iterator at;
    std::list<std::shared_ptr<HttpConnection>>* in = nullptr;
    bool again = false;                     // it is among those that go on in the next turn
    base::Clock::Duration since{0};         // for how long it has been waiting for its client
    base::Clock::Duration stream_since{0};  // when its stream began
  };
  Seat seat;

 private:
  enum class Phase {
    kHead,     // of the next request, from its first byte or from nothing at all
    kBody,     // the head has been accepted
    kHandler,  // the request is with the handler
    kStream,   // an answer without an end is being sent
    kClosing,  // the last answer is being sent
    kLinger,   // it has been sent; what the client still sends is read and dropped, else it would lose the answer
    kClosed,
  };

  // One step of the machine; true when another can be made at once.
  bool Step();
  bool StepHead();
  bool StepBody();
  bool StepChunkedBody();
  bool StepStream();
  bool StepClosing();
  bool StepLinger();

  bool AcceptHead();
  bool CheckSender(const Head& head);
  bool ResolveScope(const Head& head);
  bool CheckSeat(const Head& head);
  bool TokenStillGood();
  bool CheckLength(std::uint64_t bytes);
  void BeginBody(const Head& head);
  void MoveToFront();
  void NoteProgress();
  bool Unpack(std::string_view& body);
  void Dispatch(std::string_view body);
  void Answered();
  void TakeAnswer();
  void BeginStream();
  void NextRequest();
  void BeginPhase(Phase phase);
  // Answers with an error and closes the connection after it. Always true: the next step is to send that.
  bool Fail(const Mistake& mistake);
  bool Fail(int status, std::string_view reason, std::string_view text) { return Fail(Mistake{status, reason, text}); }
  bool FailForRoom();

  void AppendAnswer(Response response);
  bool HasOutput() const { return sent_ < out_.size() + tail_.size(); }
  bool Flush();
  Moved Receive(std::span<char> into);
  std::string_view Unread() const { return {in_.get() + begin_, end_ - begin_}; }

  // Constant, or only touched by the loop's thread.
  HttpLoop& loop_;
  HttpSite& site_;
  const HttpLimits& limits_;
  const std::shared_ptr<HttpMailbox> mailbox_;
  const std::string peer_;
  const std::string local_;
  const std::size_t in_bytes_;
  const bool reserved_;  // there was no other seat: it may ask for reserved paths, or as an admin
  HttpSocket socket_;
  Phase phase_ = Phase::kHead;
  base::Clock::Duration since_;  // when the phase began
  bool readable_ = false;        // until the socket says that there is no more
  bool writable_ = true;
  bool peer_ended_ = false;  // it will send no more
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool head_only_ = false;  // the request is a HEAD: its answer has no body
  bool failed_ = false;
  bool draining_ = false;
  bool dispatching_ = false;  // the handler is being called
  bool answered_ = false;     // it has answered before it returned
  std::uint64_t requests_ = 0;

  // The request. Bytes [begin_, end_) of in_ have been read and belong to this request or later ones.
  std::unique_ptr<char[]> in_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t next_ = 0;       // where the next request begins; while chunks are read, the next of them
  std::size_t body_mark_ = 0;  // so much of the body had come when we last told the loop
  HeadParser parser_;
  ChunkDecoder chunks_;
  HttpBody body_;
  HttpPace body_pace_;
  HttpBody unpacked_;  // of one that came compressed
  Request request_;
  std::string known_host_;              // the last that was allowed
  std::string known_authorization_;     // the last that was valid, …
  std::uint64_t known_generation_ = 0;  // … while the tokens were these
  Scope known_scope_ = Scope::kNone;
  std::string known_name_;  // of that token

  // The answer: out_, then tail_ (a large body, not worth copying), of which sent_ bytes are gone.
  std::string out_;
  std::string tail_;
  std::size_t sent_ = 0;
  bool stalled_ = false;  // the client has not taken all there is
  HttpPace answer_pace_;  // while it is so
  std::shared_ptr<HttpStream> stream_;

  const std::size_t stream_backlog_bytes_;

  // Handed over with the mail: written by whoever answers, read by the loop's thread when the mail has come.
  Response answer_;
  std::shared_ptr<HttpStream> opened_;
};

}  // namespace freshet::serve
