#include "serve/http/gate.h"

#include "base/check.h"
#include "serve/http/host.h"

namespace freshet::serve {

HttpGate::Verdict HttpGate::Enter(const std::string& address) {
  const int from_loopback =
      limits_.connections_from_loopback > 0 ? limits_.connections_from_loopback : limits_.connections;
  const int most = IsLoopbackAddress(address) ? from_loopback : limits_.connections_per_address;
  const base::Lock lock(mutex_);
  const auto found = by_address_.find(address);
  const int here = found == by_address_.end() ? 0 : found->second;
  // An address that fills the house by itself finds it full, as the others do.
  if (here >= most && most < limits_.connections) return Verdict::kTooManyFromAddress;
  if (connections_ >= limits_.connections) return Verdict::kFull;
  ++connections_;
  ++by_address_[address];
  return Verdict::kWelcome;
}

bool HttpGate::EnterReserved(const std::string& address) {
  const base::Lock lock(mutex_);
  if (connections_ >= limits_.connections + limits_.reserved_connections) return false;
  ++connections_;
  ++by_address_[address];
  return true;
}

void HttpGate::Leave(const std::string& address) {
  const base::Lock lock(mutex_);
  const auto found = by_address_.find(address);
  CHECK(found != by_address_.end());
  CHECK(--connections_ >= 0);
  if (--found->second == 0) by_address_.erase(found);
}

}  // namespace freshet::serve
