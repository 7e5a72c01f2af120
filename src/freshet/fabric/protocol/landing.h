#pragma once

#include <cstddef>
#include <span>

namespace freshet::fabric {

// Where the bytes of one message go, in order and in pieces of any size: to a place, or onto floats that are there.
class Landing {
 public:
  Landing() = default;
  explicit Landing(std::span<std::byte> into) : into_(into) {}
  explicit Landing(std::span<float> onto) : into_(std::as_writable_bytes(onto)), adds_(true) {}

  std::size_t room() const { return into_.size(); }
  bool adds() const { return adds_; }
  std::size_t landed() const { return landed_; }

  // Where the next bytes can be put without a copy; empty when they must be added. Then Advance.
  std::span<std::byte> Direct() const { return adds_ ? std::span<std::byte>() : into_.subspan(landed_); }
  void Advance(std::size_t bytes) { landed_ += bytes; }

  void Put(std::span<const std::byte> bytes);

 private:
  std::span<std::byte> into_;
  bool adds_ = false;
  std::size_t landed_ = 0;
  std::byte part_[sizeof(float)];  // the bytes there are of a float that came cut in two
};

}  // namespace freshet::fabric
