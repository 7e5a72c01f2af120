// C channels; the image has H × W pixels, the result h × w. Each output row first sums the image rows that count in it,
// then resamples that one line: the first touches every pixel once or twice, in long runs.

#include "data/images/resize.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace freshet::data {

// `part` of the inputs, from the middle, become all of the outputs. The pixel j covers j … j+1 and has its weight at
// j + 0.5.
void Resizer::MakeTaps(std::size_t inputs, std::size_t outputs, double part, Taps& taps) {
  const double step = part / static_cast<double>(outputs);
  const double reach = std::max(step, 1.0);
  const double start = (static_cast<double>(inputs) - part) / 2;
  taps.count = std::min(inputs, static_cast<std::size_t>(std::ceil(2 * reach)) + 1);
  taps.begin.resize(outputs);
  taps.weights.resize(outputs * taps.count);
  std::vector<double> weights(taps.count);
  for (std::size_t i = 0; i < outputs; ++i) {
    const double centre = start + (static_cast<double>(i) + 0.5) * step;
    const double first = std::clamp(std::floor(centre - reach), 0.0, static_cast<double>(inputs - taps.count));
    taps.begin[i] = static_cast<std::size_t>(first);
    double sum = 0;
    for (std::size_t k = 0; k < taps.count; ++k) {
      const double distance = std::abs(first + static_cast<double>(k) + 0.5 - centre);
      weights[k] = std::max(0.0, 1 - distance / reach);
      sum += weights[k];
    }
    for (std::size_t k = 0; k < taps.count; ++k)
      taps.weights[i * taps.count + k] = static_cast<float>(weights[k] / sum);
  }
}

void Resizer::SumRows(const Image& from, std::size_t row) {
  const std::size_t length = from.width * from.channels;
  line_.assign(length, 0.0f);
  float* const line = line_.data();
  for (std::size_t k = 0; k < down_.count; ++k) {
    const float weight = down_.weights[row * down_.count + k];
    if (weight == 0) continue;
    const unsigned char* const pixels = from.pixels.data() + (down_.begin[row] + k) * length;
#pragma omp simd
    for (std::size_t j = 0; j < length; ++j) line[j] += weight * static_cast<float>(pixels[j]);
  }
}

template <std::size_t C>
void Resizer::EmitRow(std::size_t row, ImageSize size, std::vector<unsigned char>& to) const {
  unsigned char* const out = to.data() + row * size.width;
  const std::size_t plane = size.height * size.width;
  for (std::size_t i = 0; i < size.width; ++i) {
    const float* const weights = across_.weights.data() + i * across_.count;
    const float* const pixels = line_.data() + across_.begin[i] * C;
    std::array<float, C> sums{};
    for (std::size_t k = 0; k < across_.count; ++k)
      for (std::size_t c = 0; c < C; ++c) sums[c] += weights[k] * pixels[k * C + c];
    for (std::size_t c = 0; c < C; ++c)
      out[c * plane + i] = static_cast<unsigned char>(std::clamp(sums[c] + 0.5f, 0.0f, 255.0f));
  }
}

void Resizer::Resize(const Image& from, ImageSize size, std::vector<unsigned char>& to) {
  CHECK(from.channels == 1 || from.channels == 3);
  CHECK(from.height > 0 && from.width > 0 && size.height > 0 && size.width > 0);
  // How many of the image's pixels one of the result covers; the tighter side decides.
  const double scale = std::min(static_cast<double>(from.height) / static_cast<double>(size.height),
                                static_cast<double>(from.width) / static_cast<double>(size.width));
  MakeTaps(from.height, size.height, scale * static_cast<double>(size.height), down_);
  MakeTaps(from.width, size.width, scale * static_cast<double>(size.width), across_);
  to.resize(from.channels * size.height * size.width);
  for (std::size_t row = 0; row < size.height; ++row) {
    SumRows(from, row);
    if (from.channels == 1)
      EmitRow<1>(row, size, to);
    else
      EmitRow<3>(row, size, to);
  }
}

}  // namespace freshet::data
