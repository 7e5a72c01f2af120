#include "fabric/tcp/descriptor.h"

#include <unistd.h>

namespace freshet::fabric::tcp {

void Descriptor::Close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

}  // namespace freshet::fabric::tcp
