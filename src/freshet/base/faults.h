#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"

namespace freshet::base {

// Named places in the code where a test, or an operator rehearsing a disaster, can make something fail. They are always
// compiled in; a place that nobody armed costs one look at an empty map.
//
//   faults.Arm("checkpoint.rename:2:error")     the second time we get there: an I/O error
//   faults.Arm("checkpoint.rename:1:kill")      kill -9 ourselves on the spot
//
// Threads: any.
class Faults {
 public:
  Faults() = default;
  // name:nth:action, action one of error, kill. kInvalid when it does not read like that.
  Result<void> Arm(std::string_view text);
  // Call at the place. An error exactly when it is armed for this visit.
  Result<void> Hit(std::string_view place);

 private:
  struct Armed {
    int visits_left;
    bool kill;
  };
  Mutex mutex_;
  std::map<std::string, Armed, std::less<>> armed_ GUARDED_BY(mutex_);
};

}  // namespace freshet::base
