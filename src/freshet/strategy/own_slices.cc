#include "strategy/own_slices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hollow.h"
#include "base/option.h"
#include "fabric/collectives/in_order.h"
#include "model/network/network.h"

namespace freshet::strategy {
namespace {

using model::network::Slicing;

bool IsWhole(Slicing::Cut cut) { return cut == Slicing::Cut::kWhole; }

void CopyFloats(const float* from, std::size_t count, float* to) {
  if (!base::IsHollow(to)) std::copy_n(from, count, to);
}

}  // namespace

Result<std::unique_ptr<OwnSlices>> OwnSlices::Make(const StrategyOptions& options, const Learner& learner, int member,
                                                   int members, std::uint64_t rows) {
  const model::network::Graph* const graph = model::network::GraphOf(learner.model);
  if (graph == nullptr)
    return Error{Code::kInvalid, Str(Option("strategy"), " ", options.kind, " is for networks, not for ",
                                     Option("model"), " ", learner.model.config().kind, "; use ring or allreduce")};
  const auto facts = TRY(model::network::Infer(*graph));
  Slicing slicing{.rank = member,
                  .size = members,
                  .cuts = model::network::CutIntoSlices(*graph, facts, members, rows, options.slice_all),
                  .rows = {}};
  if (members > 1 && std::all_of(slicing.cuts.begin(), slicing.cuts.end(), IsWhole))
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " ", options.kind, ": with ", rows, " rows in an update of ", members,
                     " workers no fully connected layer is so wide that less would travel; use allreduce, or ",
                     Option("slice-all"), " to cut them all the same")};
  std::unique_ptr<OwnSlices> own(new OwnSlices(learner, std::move(slicing)));
  for (Slicing of = own->slicing_; of.rank = static_cast<int>(own->portions_.size()), of.rank < members;)
    own->portions_.push_back(PortionOf(of, facts));
  for (std::size_t i = 0; i < facts.size(); ++i)
    for (std::size_t k = 0; k < facts[i].blocks.size(); ++k)
      own->sliced_.push_back(k == 0 && !IsWhole(own->slicing_.cuts[i]));
  own->parameters_ = TRY(optimize::Parameters::Create(own->portion().Of(learner.model.Blocks()), learner.memory));
  own->optimizer_ = TRY(optimize::Optimizer::Make(learner.optimizer.options(), learner.memory));
  TRY(own->optimizer_->Follow(*own->parameters_));
  return own;
}

Slicing OwnSlices::Of(std::vector<std::size_t> rows) const {
  Slicing slicing = slicing_;
  slicing.rows = std::move(rows);
  return slicing;
}

// visit(first float in a row of the whole, row of the whole, first float of the part, floats), in the order of the part.
template <class Visit>
void OwnSlices::VisitPart(std::size_t b, int member, std::size_t slots, const Visit& visit) const {
  const optimize::Portion::Range& range = (*portions_[static_cast<std::size_t>(member)].ranges)[b];
  const std::uint64_t rows = std::min(range.rows, learner_.parameters.rows(b));
  const std::uint64_t width = learner_.parameters.width(b), columns = std::min(range.columns, width);
  std::uint64_t at = 0;
  for (std::uint64_t row = range.first_row; row < range.first_row + rows; ++row)
    for (std::size_t slot = 0; slot < slots; ++slot, at += columns)
      visit(slot * width + range.first_column, row, at, columns);
}

void OwnSlices::Take() {
  if (!std::exchange(behind_, false)) return;
  const auto take = [&](optimize::Parameters& whole, optimize::Parameters& part, std::size_t b, std::size_t slots) {
    float* const to = part.Values(b).data();
    VisitPart(b, slicing_.rank, slots, [&](std::size_t first, std::uint64_t row, std::uint64_t at, std::size_t count) {
      CopyFloats(whole.Row(b, row) + first, count, to + at);
    });
  };
  const auto slots = static_cast<std::size_t>(optimizer_->slots());
  for (std::size_t b = 0; b < sliced_.size(); ++b) {
    take(learner_.parameters, *parameters_, b, 1);
    if (slots > 0) take(learner_.optimizer.state(), optimizer_->state(), b, slots);
  }
  optimizer_->SetStep(learner_.optimizer.step());
}

void OwnSlices::Changed() {
  learner_.optimizer.SetStep(optimizer_->step());
  ahead_ = true;
}

Result<void> OwnSlices::Give(fabric::Collectives& collectives) {
  if (!std::exchange(ahead_, false)) return {};
  const auto put = [&](optimize::Parameters& whole, std::size_t b, std::size_t slots, int member,
                       std::span<const std::byte> values) -> Result<void> {
    std::size_t wanted = 0;
    VisitPart(b, member, slots, [&](std::size_t, std::uint64_t, std::uint64_t, std::size_t count) { wanted += count; });
    if (values.size() != wanted * sizeof(float))
      return Error{Code::kCorrupt, Str("rank ", member, " gave ", values.size(), " bytes of block '",
                                       whole.block(b).name, "', of which it has ", wanted * sizeof(float))};
    if (base::IsHollow(whole.Row(b, 0)) || base::IsHollow(values.data())) return {};
    VisitPart(b, member, slots, [&](std::size_t first, std::uint64_t row, std::uint64_t at, std::size_t count) {
      std::memcpy(whole.Row(b, row) + first, values.data() + at * sizeof(float), count * sizeof(float));
    });
    return {};
  };
  const auto give = [&](optimize::Parameters& whole, optimize::Parameters& part, std::size_t b,
                        std::size_t slots) -> Result<void> {
    const std::span<const std::byte> mine = std::as_bytes(std::span<const float>(part.Values(b)));
    if (!sliced_[b]) return put(whole, b, slots, slicing_.rank, mine);
    return fabric::ExchangeInOrder(
        collectives.fabric(), collectives.NextTag(), "bringing the slices of all to all", [&](int) { return mine; },
        [&](int from, std::span<const std::byte> bytes) {
          return put(whole, b, slots, from, from == slicing_.rank ? mine : bytes);
        });
  };
  const auto slots = static_cast<std::size_t>(optimizer_->slots());
  for (std::size_t b = 0; b < sliced_.size(); ++b) {
    TRY(give(learner_.parameters, *parameters_, b, 1));
    if (slots > 0) TRY(give(learner_.optimizer.state(), optimizer_->state(), b, slots));
  }
  behind_ = true;
  return {};
}

}  // namespace freshet::strategy
