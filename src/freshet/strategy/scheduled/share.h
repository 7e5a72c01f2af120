#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace freshet::strategy::scheduled {

// The scheduler of one share of the coordinates: which of them should be updated next.
//
// In recent order it goes by laps: a lap has the coordinates that their last update changed, those that changed most first,
// each once (since what has just been set to where the objective is least gains nothing before others have moved). What
// stays where it is, as most weights that l1 holds at zero, has no place in a lap; but every kSweep-th turn is of whoever
// comes next of all, in an order that is drawn from the seed, so that none is forgotten. The first lap has all. In random
// order there are such sweeps alone.
//
// Threads: one.
class Share {
 public:
  enum class Order { kRecent, kRandom };
  static constexpr std::uint64_t kSweep = 8;

  struct Entry {
    std::uint32_t coordinate = 0;
    std::uint32_t place = 0;                   // in the share
    std::uint32_t waited = 0;                  // times it was put off since its last update
    double priority = 0;                       // how much its last update changed; never updated: infinite
    std::uint64_t tie = 0;                     // drawn from the seed
    bool operator<(const Entry& other) const;  // does it come before the other?
  };

  Share() = default;
  Share(const std::vector<std::uint32_t>& coordinates, Order order, std::uint64_t seed);

  // Takes one out; nothing when all are. It comes back by PutOff, or by Updated, which changed it so much.
  std::optional<Entry> Next();
  void PutOff(const Entry& entry);
  void Updated(Entry entry, double change);

 private:
  std::optional<std::uint32_t> NextOfLap();
  std::optional<std::uint32_t> NextOfSweep();

  Order order_ = Order::kRecent;
  std::uint64_t seed_ = 1;
  std::uint64_t turns_ = 0;
  std::vector<Entry> entries_;        // by place, as they were last
  std::vector<bool> out_;             // by place
  std::deque<std::uint32_t> lap_;     // places that are still to come in it
  std::vector<std::uint32_t> sweep_;  // places, in the order in which all come by
  std::size_t swept_ = 0;             // so many of them have, this time round
  std::uint64_t times_round_ = 0;
};

}  // namespace freshet::strategy::scheduled
