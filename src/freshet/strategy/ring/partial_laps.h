#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fabric/collectives/collectives.h"
#include "strategy/ring/lap_clock.h"

namespace freshet::strategy::ring {

// What travels round a ring whose members each know a part of the numbers of rows: member i sends to member i+1 and hears
// from member i-1, the last sends to the first.
//
// Threads: one of a member. Blocking: at most as long as the fabric lets a transfer take. Failure: as the fabric's, and
// kInvalid when members are not at the same step.
class PartialLaps {
 public:
  struct Wishes {
    bool stop = false, save = false, admit = false;
  };
  struct Step {  // number, rows and width are the same for all
    std::uint64_t number = 0;
    std::size_t rows = 0, width = 0;  // width: numbers of a row
    Wishes mine;
    double busy = 0;  // seconds of a step in which this member works, as far as that is known
  };
  // Merges what this member knows of rows first … last-1 into their numbers; `begins`: there is nothing in those yet.
  using Merge = std::function<void(std::size_t first, std::size_t last, std::span<float> numbers, bool begins)>;

  explicit PartialLaps(fabric::Collectives& collectives)
      : collectives_(collectives), clock_(collectives.fabric().clock()) {}

  // The rows of a step are cut into as many parts as there are members, of which part i begins with member i, so that all
  // have something to do at any time. In the first lap each merges into a part what it knows and sends it on; in the second
  // what came of it is told to all. Each member sends every part but two twice, those once. Writes all rows' numbers
  // to `numbers`, and gives what anybody wished.
  Result<Wishes> Meet(const Step& step, const Merge& merge, std::span<float> numbers);

  // One lap with what each member gives: `take` is called with that of every other.
  Result<void> Tell(std::span<const float> mine,
                    const std::function<Result<void>(int member, std::span<const float> given)>& take);

  // Of the last Meet: spent waiting for others who were not as far, and for what was on its way; numbers that were sent.
  base::Clock::Duration waited() const { return clock_.waited(); }
  base::Clock::Duration exchanged() const { return clock_.exchanged(); }
  std::uint64_t numbers_sent() const { return numbers_sent_; }
  // How busy a member said it is, the same for all who ask; for this one and its neighbours.
  double busy(int member) const { return parts_[static_cast<std::size_t>(member)].head.busy * kBusyUnit; }
  // What each part that is sent has in front of its numbers, in bytes.
  static std::size_t HeadBytes();

 private:
  // In front of a part's numbers. All members are the same program, so that their structs are the same.
  struct Head {
    std::uint32_t step, rows;
    std::uint32_t stop : 1, save : 1, admit : 1, busy : 29;  // busy: that with whom it begins
    float sent;                                              // as LapClock's
  };
  struct Part {
    Head head{};
    std::size_t first = 0, last = 0;
    std::vector<float> letter;  // head and numbers
  };

  static constexpr double kBusyUnit = 1e-7;  // seconds; up to 53 of them

  void Cut(const Step& step);
  Part& part(int number);  // counted round
  std::span<float> Numbers(Part& part) const;
  Result<void> Expect(const Step& step, const Part& part) const;

  fabric::Collectives& collectives_;
  std::vector<Part> parts_;
  LapClock clock_;  // there is no end to the second lap before everybody has begun it
  std::uint64_t numbers_sent_ = 0;
};

}  // namespace freshet::strategy::ring
