#include "strategy/whole_state.h"

#include <algorithm>
#include <vector>

namespace freshet::strategy {
namespace {

template <class T>
void Put(std::string& out, const T* values, std::size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

}  // namespace

std::string EncodeWhole(const Learner& learner) {
  std::string bytes;
  const std::uint64_t step = learner.optimizer.step();
  Put(bytes, &step, 1);
  for (std::size_t b = 0; b < learner.parameters.blocks(); ++b) {
    const std::uint64_t rows = learner.parameters.rows(b);
    Put(bytes, &rows, 1);
  }
  for (const optimize::Parameters* const part : {&learner.parameters, &learner.optimizer.state()})
    for (std::size_t b = 0; b < part->blocks(); ++b) {
      const std::vector<float> values = part->Gather(b);
      Put(bytes, values.data(), values.size());
    }
  return bytes;
}

Result<void> AdoptWhole(const Learner& learner, std::string_view bytes, bool same_rows) {
  const Error unfit{Code::kCorrupt, "another worker has a model of another size; do all see the same rows?"};
  const auto take = [&](void* to, std::size_t size) {
    if (bytes.size() < size) return false;
    bytes.copy(static_cast<char*>(to), size);  // which may be nothing, to nowhere
    bytes.remove_prefix(size);
    return true;
  };
  optimize::Parameters& parameters = learner.parameters;
  std::uint64_t step = 0;
  std::vector<std::uint64_t> rows(parameters.blocks());
  if (!take(&step, sizeof step) || !take(rows.data(), rows.size() * sizeof rows[0])) return unfit;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (same_rows && rows[b] != parameters.rows(b)) return unfit;
    if (rows[b] > parameters.rows(b)) TRY(parameters.Grow(b, rows[b]));
  }
  TRY(learner.optimizer.Follow(parameters));
  for (optimize::Parameters* const part : {&parameters, &learner.optimizer.state()})
    for (std::size_t b = 0; b < part->blocks(); ++b) {
      std::vector<float> values = part->Gather(b);
      const std::size_t theirs =
          part->rows(b) == 0 ? 0 : values.size() / part->rows(b) * std::min(rows[b], part->rows(b));
      if (!take(values.data(), theirs * sizeof(float))) return unfit;
      part->Scatter(b, values);
    }
  if (!bytes.empty()) return unfit;
  learner.optimizer.SetStep(step);
  return {};
}

}  // namespace freshet::strategy
