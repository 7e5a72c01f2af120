#include "base/descriptor.h"

#include <unistd.h>

namespace freshet::base {

Descriptor Descriptor::Lent(int number) {
  Descriptor lent(number);
  lent.lent_ = true;
  return lent;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    Close();
    lent_ = other.lent_;
    number_ = other.Release();
  }
  return *this;
}

void Descriptor::Close() {
  if (open() && !lent_) ::close(number_);
  Release();
}

int Descriptor::Release() {
  lent_ = false;
  return std::exchange(number_, -1);
}

}  // namespace freshet::base
