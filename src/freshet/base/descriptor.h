#pragma once

#include <utility>

namespace freshet::base {

// Owns a file descriptor and closes it. A negative number is none: what a call that failed returned can be put in and
// asked for.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  // One that somebody else owns, as standard input is the process's: it stays open.
  static Descriptor Lent(int number);
  Descriptor(Descriptor&& other) noexcept : number_(other.number_), lent_(other.lent_) { other.Release(); }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { Close(); }

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void Close();
  // Gives it away unclosed.
  int Release();

 private:
  int number_ = -1;
  bool lent_ = false;
};

}  // namespace freshet::base
