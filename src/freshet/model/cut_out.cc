#include "model/cut_out.h"

#include <algorithm>
#include <cstring>

namespace freshet::model {

Result<std::vector<float>> CutOut(const data::Tensor& tensor, const optimize::Block& block) {
  const optimize::Block::Within& whole = *block.within;
  if (tensor.dtype != data::DType::kF32 || tensor.shape.size() != 2 || tensor.shape[0] > whole.most_rows ||
      tensor.shape[1] == 0 || tensor.shape[1] % whole.width != 0)
    return Error{Code::kCorrupt, Str("tensor '", tensor.name, "' is of another shape than its model has")};
  const std::uint64_t end = std::min(tensor.shape[0], whole.first_row + block.most_rows);
  std::vector<float> values;
  for (std::uint64_t row = whole.first_row; row < end; ++row)
    for (std::uint64_t column = whole.first_column; column < tensor.shape[1]; column += whole.width) {
      values.resize(values.size() + block.width);
      std::memcpy(values.data() + values.size() - block.width,
                  tensor.bytes.data() + (row * tensor.shape[1] + column) * sizeof(float), block.width * sizeof(float));
    }
  return values;
}

}  // namespace freshet::model
