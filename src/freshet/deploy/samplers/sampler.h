#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

namespace freshet::deploy {

struct SamplerOptions {
  std::string kind = "uniform";
  std::uint64_t reservoir_rows = 100'000;  // reservoir, hard: the most rows held
  std::uint64_t window_rows = 100'000;     // window: only the newest so many are drawn
  double half_life = 0.25;                 // recent, hard: the share of the history after which the chance has halved

  Result<void> Validate() const;
};

// Chooses which rows of the history join the next training iteration. Rows are known by their numbers, 0 for the
// oldest.
//
//   uniform    every row has the same chance
//   sweep      every row is drawn once before any is drawn again, in an order that looks random; rows that have come
//              since the last draw join those not drawn yet
//   recent     a row's chance to be drawn halves with every half_life * end rows of age; where that would be above 1,
//              the newest rows are taken for certain
//   window     every one of the newest window_rows has the same chance, older rows have none
//   reservoir  draws evenly from a fixed number of rows, in which every row seen so far had the same chance to be: for
//              histories that are kept in memory only in part
//   hard       rows are drawn one by one with chances in proportion to loss * (number + 1)^b, so that rows lately
//              predicted badly come back often; b is such that half_life of the history ago counts half. It holds the
//              rows of a weighted reservoir (Efraimidis and Spirakis 2006) and makes up for what that did to chances.
//              Rows whose loss is 0, negative or not finite are never drawn.
//   none       draws nothing
//
// Threads:  none of its own; one thread at a time.
// Blocking: never. Draw takes time in proportion to `count`, whatever `end` is; hard, to the rows it holds; sweep, to
//           the draws of a sweep as well.
// Failure:  CHECKs that numbers are observed in rising order.
class Sampler {
 public:
  // The seed decides what reservoirs keep: the same rows, losses and seed give the same reservoir.
  static Result<std::unique_ptr<Sampler>> Make(const SamplerOptions& options, std::uint64_t seed);
  static std::vector<std::string> Kinds();
  virtual ~Sampler() = default;

  virtual std::string_view name() const = 0;
  // A row of the history: each once, in order, with the loss of the prediction made before it was learned.
  virtual void Observe(std::uint64_t /*number*/, double /*loss*/) {}
  // Rows before `begin` are not drawn any more. To be told again after Load.
  void Forget(std::uint64_t begin) { begin_ = std::max(begin_, begin); }
  // Replaces `numbers` by `count` different numbers below `end` in random order; by fewer when there are fewer.
  virtual void Draw(std::uint64_t end, std::uint64_t count, base::Random& random,
                    std::vector<std::uint64_t>& numbers) = 0;

  // All it remembers. A sampler with the same options and seed that loads it goes on as this one would.
  virtual std::vector<std::uint64_t> Save() const { return {}; }
  // False, and nothing has changed, when the state does not fit these options or cannot come from Save.
  [[nodiscard]] virtual bool Load(std::span<const std::uint64_t> state) { return state.empty(); }

 protected:
  std::uint64_t begin() const { return begin_; }  // older rows are forgotten

 private:
  std::uint64_t begin_ = 0;
};

}  // namespace freshet::deploy
