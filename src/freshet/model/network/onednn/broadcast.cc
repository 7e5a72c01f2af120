#include "model/network/onednn/broadcast.h"

namespace freshet::model::network {

std::vector<std::uint32_t> Repeated(const Shape& shape, const Shape& small) {
  std::vector<std::uint32_t> places = {0};
  std::uint32_t size = 1;
  for (const std::int64_t extent : small) size *= static_cast<std::uint32_t>(extent);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    size /= static_cast<std::uint32_t>(small[d]);
    std::vector<std::uint32_t> longer;
    longer.reserve(places.size() * static_cast<std::size_t>(shape[d]));
    for (const std::uint32_t place : places)
      for (std::int64_t k = 0; k < shape[d]; ++k)
        longer.push_back(place + (small[d] == 1 ? 0 : static_cast<std::uint32_t>(k) * size));
    places = std::move(longer);
  }
  return places;
}

PlainTensor::PlainTensor(const KernelSpec& spec, std::size_t input) {
  if (spec.layouts[input].plain) return;
  const Desc plain = Plain(DimsOf(spec.rows, spec.inputs[input]));
  to_ = Reorder(ContextOf(spec), DescOf(spec.layouts[input]), plain);
  from_ = Reorder(ContextOf(spec), plain, DescOf(spec.layouts[input]));
  bytes_ = Padded(plain.get_size());
}

const float* PlainTensor::Read(const float* data, std::byte* scratch) {
  if (!to_) return data;
  to_.Run(data, scratch);
  return reinterpret_cast<const float*>(scratch);
}

float* PlainTensor::Place(float* gradient, std::byte* scratch) const {
  return to_ && gradient != nullptr ? reinterpret_cast<float*>(scratch) : gradient;
}

void PlainTensor::Give(std::byte* scratch, float* gradient) {
  if (from_ && gradient != nullptr) from_.Run(scratch, gradient);
}

}  // namespace freshet::model::network
