#include "strategy/server/near_rows.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace freshet::strategy::server {

Result<std::unique_ptr<NearRows>> NearRows::Make(const model::Model& model, optimize::Memory& memory) {
  auto parameters = TRY(model.NewParameters(memory));
  return std::unique_ptr<NearRows>(new NearRows(model, std::move(parameters)));
}

NearRows::NearRows(const model::Model& model, optimize::Parameters parameters)
    : ratings_(model.ratings() != nullptr), parameters_(std::move(parameters)) {
  for (std::size_t b = 0; b < parameters_.blocks(); ++b)
    grows_.push_back(parameters_.block(b).most_rows > parameters_.rows(b));
  Forget();
}

void NearRows::Forget() {
  far_.clear();
  most_met_ = 0;
  slots_.assign(1024, {});
}

Result<data::Batch> NearRows::Show(const data::Batch& far) {
  data::Batch shown = far;
  if (far.rows == 0) return shown;
  const std::size_t begin = far.offsets[0], end = far.offsets[far.rows];
  indices_.resize(std::max(indices_.size(), end));
  most_met_ = std::max(most_met_, end - begin);
  for (std::size_t e = begin; e < end; ++e) {
    const std::uint32_t index = far.indices[e];
    const bool item = ratings_ && (e - begin) % 2 == 1;
    indices_[e] = index == data::kUnseen ? index : Number(index | (item ? std::uint64_t{1} << 32 : 0));
  }
  shown.indices = indices_.data();
  for (std::size_t b = 0; b < parameters_.blocks(); ++b)
    if (grows_[b]) TRY(parameters_.Grow(b, far_.size()));
  return shown;
}

std::span<const std::uint32_t> NearRows::Far(std::size_t b, std::span<const std::uint32_t> near) {
  named_.clear();
  for (const std::uint32_t row : near) named_.push_back(Far(b, row));
  return named_;
}

std::uint32_t NearRows::Number(std::uint64_t key) {
  std::size_t at = base::Hash64(key) & (slots_.size() - 1);
  for (; slots_[at].near != 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].key == key) return slots_[at].near - 1;
  far_.push_back(static_cast<std::uint32_t>(key));
  slots_[at] = {key, static_cast<std::uint32_t>(far_.size())};
  const auto number = static_cast<std::uint32_t>(far_.size() - 1);
  if (2 * far_.size() > slots_.size()) Rehash(2 * slots_.size());
  return number;
}

void NearRows::Rehash(std::size_t slots) {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& each : before) {
    if (each.near == 0) continue;
    std::size_t at = base::Hash64(each.key) & (slots - 1);
    while (slots_[at].near != 0) at = (at + 1) & (slots - 1);
    slots_[at] = each;
  }
}

}  // namespace freshet::strategy::server
