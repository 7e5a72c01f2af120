#pragma once

#include <map>
#include <string>

#include "base/mutex.h"
#include "serve/http/server.h"

namespace freshet::serve {

// Counts connections, in all and by address, and says who may still come in.
//
// Threads: any. Blocking: never.
class HttpGate {
 public:
  explicit HttpGate(const HttpLimits& limits) : limits_(limits) {}

  enum class Verdict { kWelcome, kFull, kTooManyFromAddress };
  Verdict Enter(const std::string& address);
  bool EnterReserved(const std::string& address);  // when it is full: whether a seat beyond is free
  void Leave(const std::string& address);          // for every one that was welcome

 private:
  const HttpLimits limits_;

  base::Mutex mutex_;
  int connections_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> by_address_ GUARDED_BY(mutex_);
};

}  // namespace freshet::serve
