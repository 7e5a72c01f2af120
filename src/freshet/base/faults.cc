#include "base/faults.h"

#include <unistd.h>

#include <charconv>
#include <csignal>

namespace freshet::base {

Result<void> Faults::Arm(std::string_view text) {
  const auto parts = Split(text, ':');
  int nth = 0;
  const auto is_number = [&nth](std::string_view digits) {
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), nth);
    return error == std::errc{} && end == digits.end();
  };
  if (parts.size() != 3 || !is_number(parts[1]) || nth < 1 || (parts[2] != "error" && parts[2] != "kill"))
    return Error{Code::kInvalid, Str("fault ", Quoted(text), ": expected place:nth:error or place:nth:kill")};
  const Lock lock(mutex_);
  armed_[std::string(parts[0])] = {nth, parts[2] == "kill"};
  return {};
}

Result<void> Faults::Hit(std::string_view place) {
  const Lock lock(mutex_);
  if (armed_.empty()) return {};
  const auto found = armed_.find(place);
  if (found == armed_.end() || --found->second.visits_left > 0) return {};
  if (found->second.kill) kill(getpid(), SIGKILL);
  armed_.erase(found);
  return Error{Code::kIo, Str("injected fault at ", place)};
}

}  // namespace freshet::base
