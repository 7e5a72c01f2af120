#include "strategy/scheduled/scheduled.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "strategy/scheduled/letter.h"

namespace freshet::strategy::scheduled {
namespace {

// In front of a member's proposals, and of each.
struct LetterHead {
  std::uint64_t round = 0;
  std::uint32_t stop = 0, proposals = 0;
};
struct ProposalHead {
  std::uint64_t slot = 0, tie = 0;
  double priority = 0, square = 0;
  std::uint32_t coordinate = 0, entries = 0, waited = 0, reserved = 0;
};

std::vector<double> WeightsOf(const data::Batch& rows) {
  std::vector<double> weights(rows.rows);
  double all = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) all += weights[r] = rows.weight(r);
  for (double& weight : weights) weight /= all;
  return weights;
}

}  // namespace

Scheduled::Scheduled(const Options& options, const World& world, const model::Loss& loss, const data::Batch& rows,
                     std::vector<float> weights)
    : Descending(world),
      options_(options),
      loss_(loss),
      rows_(rows),
      curvature_(loss.name() == "logistic" ? 0.25 : 1),
      row_weights_(WeightsOf(rows)),
      weights_(std::move(weights)),
      exact_scores_(rows.rows, 0),
      scores_(rows.rows),
      deltas_(rows.rows),
      columns_(rows, static_cast<std::uint32_t>(weights_.size() - 1),
               [this](std::uint32_t coordinate) { return Mine(ShareOf(coordinate)); }),
      squares_(weights_.size(), 0),
      dependencies_(options.rho, row_weights_),
      touched_in_(rows.rows, 0) {
  CHECK(loss.name() == "logistic" || loss.name() == "squared");
  const auto features = static_cast<std::uint32_t>(weights_.size() - 1);
  std::vector<std::vector<std::uint32_t>> shares(kShares);
  std::vector<bool> met(weights_.size(), false);
  met[features] = true;
  for (std::uint32_t r = 0; r < rows.rows; ++r) {
    double& score = exact_scores_[r] = weights_[features];
    const auto add = [&](std::uint32_t j, float value) {
      if (j >= features || value == 0) return;
      met[j] = true;
      score += static_cast<double>(weights_[j]) * static_cast<double>(value);
    };
    if (rows.sparse())
      for (std::uint32_t e = rows.offsets[r]; e < rows.offsets[r + 1]; ++e) add(rows.indices[e], rows.values[e]);
    else
      for (std::uint32_t j = 0; j < features; ++j) add(j, rows.dense[r * rows.width + j]);
    EvaluateRow(r);
  }
  for (std::uint32_t j = 0; j <= features; ++j) {
    if (!met[j]) continue;
    ++coordinates_;
    if (!Mine(ShareOf(j))) continue;
    const Column column = columns_.column(j);
    squares_[j] = Product(column, column, row_weights_);
    if (squares_[j] > 0) shares[ShareOf(j)].push_back(j);
  }
  for (std::uint64_t s = 0; s < kShares; ++s)
    shares_.emplace_back(shares[s], options.order, options.seed + base::Hash64(s));
}

std::uint64_t Scheduled::ShareOf(std::uint32_t coordinate) const {
  return base::Hash64(coordinate ^ base::Hash64(options_.seed)) % kShares;
}

void Scheduled::EvaluateRow(std::uint32_t row) {
  scores_[row] = static_cast<float>(exact_scores_[row]);
  loss_.Evaluate({&scores_[row], 1}, rows_.labels[row], {&deltas_[row], 1});
}

double Scheduled::Loss() const {
  double sum = 0;
  float delta = 0;
  for (std::size_t r = 0; r < rows_.rows; ++r)
    sum += rows_.weight(r) * loss_.Evaluate({&scores_[r], 1}, rows_.labels[r], {&delta, 1});
  return sum;
}

Result<double> Scheduled::Objective() {
  double weight = 0, held = 0;
  for (std::size_t r = 0; r < rows_.rows; ++r) weight += rows_.weight(r);
  for (std::size_t j = 0; j + 1 < weights_.size(); ++j) {
    const double w = weights_[j];
    held += options_.l1 * std::abs(w) + 0.5 * options_.l2 * w * w;
  }
  return Loss() / weight + held;
}

Result<bool> Scheduled::MakeRound(bool stop) {
  Propose();
  if (TRY(TellProposals(stop))) return false;
  PutOffDependents();
  std::vector<float> mine;
  for (const Proposal& proposal : proposals_)
    if (proposal.mine) mine.push_back(Changed(proposal));
  Apply(TRY(TellWeights(mine)));
  ++rounds_;
  return true;
}

// Slots go to shares in turn.
void Scheduled::Propose() {
  proposals_.clear();
  for (std::uint64_t slot = slot_; slot < slot_ + options_.coordinates; ++slot) {
    if (!Mine(slot % kShares)) continue;
    const auto entry = shares_[slot % kShares].Next();
    if (!entry) continue;
    proposals_.push_back({.slot = slot,
                          .entry = *entry,
                          .square = squares_[entry->coordinate],
                          .at = 0,
                          .column = columns_.column(entry->coordinate),
                          .mine = true});
  }
  slot_ += options_.coordinates;
}

Result<bool> Scheduled::TellProposals(bool stop) {
  if (size() > 1) {
    std::vector<std::byte> letter;
    const LetterHead head{rounds_, stop, static_cast<std::uint32_t>(proposals_.size())};
    Append(letter, std::span(&head, 1));
    for (const Proposal& each : proposals_) {
      const ProposalHead one{.slot = each.slot,
                             .tie = each.entry.tie,
                             .priority = each.entry.priority,
                             .square = each.square,
                             .coordinate = each.entry.coordinate,
                             .entries = static_cast<std::uint32_t>(each.column.rows.size()),
                             .waited = each.entry.waited};
      Append(letter, std::span(&one, 1));
      Append(letter, each.column.rows);
      Append(letter, each.column.values);
    }
    const auto letters = TRY(Gather(letter));
    came_rows_.clear();
    came_values_.clear();
    for (std::size_t from = 0; from < letters.size(); ++from)
      if (from != static_cast<std::size_t>(rank()))
        TRY(Take(letters[from], stop).While(Str("reading what rank ", from, " proposes")));
    for (Proposal& each : proposals_)
      if (!each.mine)
        each.column = {std::span(came_rows_).subspan(each.at, each.column.rows.size()),
                       std::span(came_values_).subspan(each.at, each.column.values.size())};
  }
  if (stop)
    for (const Proposal& each : proposals_)
      if (each.mine) shares_[each.slot % kShares].PutOff(each.entry);
  std::sort(proposals_.begin(), proposals_.end(),
            [](const Proposal& a, const Proposal& b) { return a.entry < b.entry; });
  return stop;
}

Result<void> Scheduled::Take(std::span<const std::byte> letter, bool& stop) {
  const Error damaged{Code::kCorrupt, Str("what came in round ", rounds_, " is damaged, or of another version")};
  LetterHead head;
  if (!TakeOff(letter, std::span(&head, 1)) || head.round != rounds_) return damaged;
  stop = stop || head.stop != 0;
  for (std::uint32_t i = 0; i < head.proposals; ++i) {
    ProposalHead one;
    if (!TakeOff(letter, std::span(&one, 1))) return damaged;
    if (one.coordinate >= weights_.size() || one.entries > rows_.rows) return damaged;
    const std::size_t at = came_rows_.size();
    came_rows_.resize(at + one.entries);
    came_values_.resize(at + one.entries);
    const auto rows = std::span(came_rows_).subspan(at);
    const auto values = std::span(came_values_).subspan(at);
    if (!TakeOff(letter, rows) || !TakeOff(letter, values)) return damaged;
    if (std::any_of(rows.begin(), rows.end(), [&](std::uint32_t row) { return row >= rows_.rows; })) return damaged;
    // Where its column lies is known when all have come.
    proposals_.push_back(
        {.slot = one.slot,
         .entry =
             {.coordinate = one.coordinate, .place = 0, .waited = one.waited, .priority = one.priority, .tie = one.tie},
         .square = one.square,
         .at = at,
         .column = {rows, values},
         .mine = false});
  }
  return {};
}

void Scheduled::PutOffDependents() {
  if (options_.order == Share::Order::kRandom) return;
  std::vector<Dependencies::Candidate> candidates;
  for (const Proposal& each : proposals_) candidates.push_back({each.entry.coordinate, each.column, each.square});
  const std::vector<bool> together = dependencies_.Together(candidates);
  std::vector<Proposal> left;
  for (std::size_t p = 0; p < proposals_.size(); ++p) {
    const Proposal& each = proposals_[p];
    if (together[p])
      left.push_back(each);
    else if (each.mine)
      shares_[each.slot % kShares].PutOff(each.entry);
  }
  put_off_ += proposals_.size() - left.size();
  proposals_ = std::move(left);
}

// Along the coordinate the objective is at most its slope, and a parabola of this curvature: exactly that for squared
// loss. That has its least where l1 lets it.
float Scheduled::Changed(const Proposal& proposal) const {
  const std::uint32_t j = proposal.entry.coordinate;
  const bool bias = j + 1 == weights_.size();
  const double l1 = bias ? 0 : options_.l1, l2 = bias ? 0 : options_.l2;
  const double w = weights_[j];
  double slope = l2 * w;
  for (std::size_t i = 0; i < proposal.column.rows.size(); ++i) {
    const std::uint32_t row = proposal.column.rows[i];
    slope += row_weights_[row] * static_cast<double>(deltas_[row]) * static_cast<double>(proposal.column.values[i]);
  }
  const double curvature = curvature_ * proposal.square + l2;
  const double least = w - slope / curvature;
  const double size = std::abs(least) - l1 / curvature;
  return size > 0 ? static_cast<float>(std::copysign(size, least)) : 0.0f;
}

// By all, in the order of proposals.
Result<std::vector<float>> Scheduled::TellWeights(const std::vector<float>& mine) {
  if (size() == 1) return mine;
  const auto letters = TRY(Gather(std::as_bytes(std::span(mine))));
  std::vector<std::span<const std::byte>> left(letters.begin(), letters.end());
  std::vector<float> weights(proposals_.size());
  for (std::size_t p = 0; p < proposals_.size(); ++p) {
    std::size_t of = 0;
    while (FirstShare(static_cast<int>(of) + 1) <= proposals_[p].slot % kShares) ++of;
    if (!TakeOff(left[of], std::span(&weights[p], 1)))
      return Error{Code::kCorrupt, Str("rank ", of, " has not told all weights of round ", rounds_)};
  }
  return weights;
}

void Scheduled::Apply(const std::vector<float>& weights) {
  touched_.clear();
  for (std::size_t p = 0; p < proposals_.size(); ++p) {
    const Proposal& each = proposals_[p];
    const std::uint32_t j = each.entry.coordinate;
    const double change = static_cast<double>(weights[p]) - static_cast<double>(weights_[j]);
    weights_[j] = weights[p];
    if (each.mine) {
      const double curvature = curvature_ * each.square + options_.l2;
      shares_[each.slot % kShares].Updated(each.entry, std::abs(change) * std::sqrt(curvature));
    }
    if (change == 0) continue;
    for (std::size_t i = 0; i < each.column.rows.size(); ++i) {
      const std::uint32_t row = each.column.rows[i];
      exact_scores_[row] += change * static_cast<double>(each.column.values[i]);
      if (touched_in_[row] == rounds_ + 1) continue;
      touched_in_[row] = rounds_ + 1;
      touched_.push_back(row);
    }
  }
  for (const std::uint32_t row : touched_) EvaluateRow(row);
  updates_ += proposals_.size();
}

}  // namespace freshet::strategy::scheduled
