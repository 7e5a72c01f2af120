#include "serve/http/host.h"

#include <arpa/inet.h>

#include <algorithm>

#include "serve/http/parser.h"

namespace freshet::serve {
namespace {

// The host without its port and brackets; "" when it is not well formed.
std::string_view NameOf(std::string_view host) {
  std::string_view name = host, rest;
  if (host.starts_with('[')) {
    const std::size_t close = host.find(']');
    if (close == host.npos) return {};
    name = host.substr(1, close - 1);
    rest = host.substr(close + 1);
  } else if (const std::size_t colon = host.find(':'); colon != host.npos) {
    name = host.substr(0, colon);
    rest = host.substr(colon);
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() && (rest[0] != ':' || !std::all_of(rest.begin() + 1, rest.end(), digit))) return {};
  return name;
}

}  // namespace

bool IsNumericAddress(std::string_view address) {
  const std::string text(address);
  in6_addr any;
  return inet_pton(AF_INET, text.c_str(), &any) == 1 || inet_pton(AF_INET6, text.c_str(), &any) == 1;
}

bool IsLoopbackAddress(std::string_view address) {
  const std::string text(address);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool HostRules::AllowsHost(std::string_view host, std::string_view local) const {
  const std::string_view name = NameOf(host);
  if (name.empty()) return false;
  if (EqualIgnoringCase(name, "localhost") || EqualIgnoringCase(name, local) || IsLoopbackAddress(name)) return true;
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [name](const std::string& one) { return one == "*" || EqualIgnoringCase(name, one); });
}

bool HostRules::SameOrigin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (EqualIgnoringCase(origin.substr(0, scheme.size()), scheme))
      return EqualIgnoringCase(origin.substr(scheme.size()), host);
  return false;
}

}  // namespace freshet::serve
