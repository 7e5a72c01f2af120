#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/result.h"

namespace freshet::serve {

// A connection that has been accepted and has no home yet. Whoever holds it closes the descriptor.
struct Arrival {
  int descriptor = -1;
  std::string peer;  // numeric addresses without ports; v4 also when it came through v6
  std::string local;
  bool replaces = false;  // the house is full: another one has to go for it
  bool reserved = false;  // it is full and nobody can go: this one may ask for little
};

// The listening socket.
//
// Threads: any. Blocking: never. Failure: Open: kInvalid for an address that is not numeric, kBusy when it is taken,
// kIo.
class HttpAcceptor {
 public:
  static Result<std::unique_ptr<HttpAcceptor>> Open(const std::string& address, int port);
  ~HttpAcceptor();

  int descriptor() const { return descriptor_; }  // readable when somebody knocks
  int port() const { return port_; }

  enum class Outcome { kArrived, kNobody, kNoDescriptors, kFailed };
  // kNoDescriptors: the process has too many files open, and the connection was turned away rather than left hanging.
  Outcome Accept(Arrival& arrival);

  // Refuses all that come from now on.
  void ShutDown();

 private:
  HttpAcceptor(int descriptor, int port);
  Outcome TurnAway();

  const int descriptor_;
  const int port_;
  base::Mutex mutex_;
  int reserve_ GUARDED_BY(mutex_);  // kept open so that it can be given up for a connection that must be turned away
};

}  // namespace freshet::serve
