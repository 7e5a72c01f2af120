#include "base/mutex.h"

#include "base/fibers.h"

namespace freshet::base {

void Mutex::LockContended() {
  for (bool again = false; Fibers::LetOthersRun(again); again = true)
    if (mutex_.try_lock()) return;
  mutex_.lock();
}

}  // namespace freshet::base
