#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace freshet::serve {

bool IsNumericAddress(std::string_view address);   // v4 or v6
bool IsLoopbackAddress(std::string_view address);  // numeric: 127.x.y.z or ::1

// Whether a web page can have sent a request that only our own clients should send. A name that an attacker points at
// our address (DNS rebinding) shows in Host, a page of another site in Origin.
class HostRules {
 public:
  // "*" among the names allows any.
  explicit HostRules(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  // `host` is the field with or without a port; `local` the numeric address at which the request arrived.
  bool AllowsHost(std::string_view host, std::string_view local) const;
  // Either scheme will do, since a proxy before us may speak TLS for us.
  static bool SameOrigin(std::string_view origin, std::string_view host);

 private:
  const std::vector<std::string> allowed_;
};

}  // namespace freshet::serve
