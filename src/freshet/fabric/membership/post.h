#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace freshet::fabric {

// Short letters between the processes of a job, outside of any group: between those who belong to one, and those who want
// to. Each arrives whole, or not at all.
//
// Threads: any; one at a time receives.
class Post {
 public:
  virtual ~Post() = default;

  virtual const std::string& address() const = 0;                         // where letters for this process go
  virtual void Send(const std::string& address, std::string letter) = 0;  // does not wait
  // The next that has come; nothing when it was woken, or at `until`.
  virtual std::optional<std::string> Receive(base::Clock::Duration until) = 0;
  virtual void Wake() = 0;
};

}  // namespace freshet::fabric
