#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/tcp/door.h"
#include "fabric/tcp/options.h"

namespace freshet::fabric::tcp {

// How a group comes together. Everybody dials rank 0 and tells where it listens itself; rank 0 gives the list to all;
// then each dials those of lower rank and lets in those of higher. At last rank 0 hears from all that they have
// everybody and tells them to begin. Nobody listens after that.
//
// Threads:  one.
// Blocking: until all are there, at most the connect timeout.
// Failure:  kTimeout names the ranks that did not come; kPeerLost when one left meanwhile; kInvalid when a member
// refused
//           us, with its reason.
class Bootstrap {
 public:
  Bootstrap(const TcpOptions& options, base::Clock& clock);

  // A connection to each member, by rank; the own place stays empty but for where we are.
  Result<std::vector<Link>> Run();
  std::uint64_t strangers() const { return strangers_; }

 private:
  Result<void> RunFirst();
  Result<void> RunOther();
  Result<void> HearFromAll();
  Result<void> LetIn(Door& door, int first);  // until every rank from `first` on is there
  Result<Link> DialUntilThere(int rank, const Address& address);
  Result<Link> Greet(int rank, Conduit conduit);
  Result<std::vector<Address>> ReceiveTable();
  // To and from who has been met, and is lost when that fails.
  Result<void> Tell(std::size_t rank, std::string_view bytes);
  Result<std::string> Hear(std::size_t rank, std::size_t bytes);
  Error OfMet(std::size_t rank, const Error& why) const;
  std::string Table() const;
  std::string MissingFrom(int first) const;
  Door::Settings DoorSettings() const;

  const TcpOptions& options_;
  base::Clock& clock_;
  const Badge badge_;
  const Deadline deadline_;
  Home home_;
  std::shared_ptr<const TlsKeys> tls_;  // none: in the clear
  base::Descriptor listener_;
  std::vector<Link> links_;
  std::uint64_t strangers_ = 0;
};

}  // namespace freshet::fabric::tcp
