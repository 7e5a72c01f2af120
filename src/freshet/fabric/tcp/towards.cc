#include "fabric/tcp/towards.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/descriptor.h"
#include "fabric/tcp/socket.h"

namespace freshet::fabric::tcp {

Result<std::string> AddressTowards(const std::string& where) {
  const auto to = TRY(ParseAddress(where));
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (const int failed = getaddrinfo(to.host.c_str(), Str(std::max(to.port, 1)).c_str(), &hints, &found); failed != 0)
    return Error{Code::kInvalid, Str(to.host, ": ", gai_strerror(failed))};
  std::string address;
  for (const addrinfo* each = found; each != nullptr && address.empty(); each = each->ai_next) {
    const base::Descriptor probe(socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (probe.open() && connect(probe.get(), each->ai_addr, each->ai_addrlen) == 0)
      address = LocalAddress(probe.get()).host;
  }
  freeaddrinfo(found);
  if (address.empty()) return Error{Code::kIo, Str("no way from here to ", where)};
  return address;
}

}  // namespace freshet::fabric::tcp
