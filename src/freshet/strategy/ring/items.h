#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// A member of a ring that factorizes ratings: it has some sides of the users for good, and between two rounds of a pass
// the items of one side go on to the next member, with what the optimizer remembers of them, and others come. So weights
// travel, those of the items alone, once round the ring in a pass; users never do. Each rating is met by one member, in
// the order in which one who is alone meets it: the model is the same, bit for bit.
//
// The trainer's parameters are where it computes; rows of users and items that are not here are as they were when all
// last met. Whenever they Settle, each tells all what it has.
//
// Steps of some rows are not how it works: kInvalid for them.
class Items final : public Strategy, public Walk {
 public:
  static Result<StrategyPtr> Make(const StrategyOptions& options, const World& world);

  int rank() const override { return world_.collectives.fabric().rank(); }
  int size() const override { return world_.collectives.fabric().size(); }
  bool interchangeable() const override { return true; }
  bool stays_apart() const override { return true; }
  std::size_t piece() const override { return 1; }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Walk* walk() override { return this; }
  Sides users() const override { return SidesOf(rank()); }
  Result<void> Pass(const Grid& grid, std::uint64_t ratings,
                    const std::function<void(std::size_t round)>& train) override;
  Result<void> Settle() override;

  void Ask(bool stop, bool save) override { asked_ = {stop, save}; }
  bool stop_agreed() const override { return agreed_.stop; }
  bool save_agreed() const override { return agreed_.save; }
  void Forget() override { agreed_ = {}; }
  void SetProgress(double progress) override { world_.optimizer.SetProgress(progress); }

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  StepTimes times() const override { return times_; }
  void CountRead(base::Clock::Duration time) override { times_.read += base::Seconds(time); }

  // What goes in front of the items that are handed on.
  static std::size_t HeadBytes() { return sizeof(Head); }

 private:
  struct Wishes {
    bool stop = false, save = false;
  };
  // In front of the items that are handed on. All members are the same program, so that their structs are the same.
  struct Head {
    std::uint64_t step = 0;  // of the optimizer, when the pass began
    std::uint32_t round = 0, side = 0;
    std::uint32_t stop = 0, save = 0;
  };
  using Rows = std::vector<std::vector<std::uint32_t>>;  // by side

  explicit Items(const World& world);
  Sides SidesOf(int member) const;
  void FindRows(const Grid& grid);
  // The items of the sides move on by one side of the users: of each member's, one side leaves and one comes.
  Result<void> HandOn(std::uint32_t round, Wishes& wishes);

  // Rows of these blocks, with what the optimizer remembers of them.
  std::size_t Floats(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows) const;
  void Pack(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows,
            std::vector<float>& values) const;
  std::span<const float> Unpack(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows,
                                std::span<const float> values);
  Result<void> Put(int member, std::span<const float> values);  // what it has told
  void AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end);
  Result<void> At(std::string_view place) const { return world_.at ? world_.at(place) : Result<void>(); }

  const World world_;
  const std::vector<std::size_t> user_blocks_, item_blocks_;
  Rows user_rows_, item_rows_;
  std::uint64_t users_found_ = 0, items_found_ = 0;
  std::size_t moved_ = 0;  // sides by which items stand behind where a pass begins
  bool newer_ = false;     // what members have than what they have told
  std::vector<float> leaving_, coming_;
  Wishes asked_, agreed_;
  StepTimes times_;
};

// For models of ratings (model::Ratings). kInvalid for options that do not go with it.
Result<StrategyPtr> MakeItems(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy::ring
