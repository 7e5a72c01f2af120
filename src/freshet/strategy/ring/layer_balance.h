#pragma once

#include <cstddef>
#include <span>

namespace freshet::strategy::ring {

// When neighbours on a ring compare how busy they are: after every few steps, at first soon and later seldom. One half of
// the pairs does so, next time the other, so that nobody gives and takes at once. The same for all members, who count the
// same steps; the last member and the first are no pair.
class BalanceRounds {
 public:
  BalanceRounds(int rank, int size) : rank_(rank), size_(size) {}

  void BeginStep();
  bool starts() const { return at_ == 2; }  // what follows is to be measured, up to the end of the round
  bool measures() const { return at_ >= 2 && at_ < length(); }
  bool ends() const { return at_ == length(); }
  // With whom, when the round ends with this step: 1 is the next member, -1 the one before, 0 nobody.
  int partner() const;

 private:
  std::size_t length() const;
  const int rank_, size_;
  std::size_t rounds_ = 0, at_ = 0;  // rounds that are over; steps of this one that have begun
};

// Is there anything to be gained between two who take so long? Below that they leave it as it is.
bool Unequal(double one, double other);

// What a member could hand on: so many seconds of its step, after which so many floats of a row would travel.
struct Offer {
  double seconds = 0, floats = 0;
};
// Which of them makes the larger of both times clearly smaller, of mine, who gives, and theirs, for whom it is taken to last
// as long; little travels where that is nearly as good. `offers.size()` for none. So nothing is handed to and fro: after it,
// giving back would make the larger time no smaller, however fast the other is.
std::size_t BestOffer(std::span<const Offer> offers, double mine, double theirs);

}  // namespace freshet::strategy::ring
