#include "train/watch.h"

namespace freshet::train {

void Watch::Tell(Progress progress) {
  told_ = clock_.Now();
  if (!listener_) return;
  progress.seconds = base::Seconds(told_ - started_);
  listener_(progress);
}

double Watch::Lap() {
  const Moment now = clock_.Now();
  return base::Seconds(now - std::exchange(lap_, now));
}

}  // namespace freshet::train
