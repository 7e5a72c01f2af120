#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"
#include "model/network/layer.h"

namespace freshet::model::network {

// Every operation of a network, computed the plain way: double precision, one loop after another, row-major. These
// functions are what the engine is held against, so they are written to be read, not to be fast.
//
// N rows; an image is C × H × W, a sequence T × C.
using Values = std::vector<double>;

// How near a computation came to a point where its derivative jumps: the smallest distance of an input of relu from 0,
// or of a pool's largest value from its second largest. Exact ties are left out: they come from values that are zero
// together (dropped, cut off), and then all sides have the same derivative.
struct Margin {
  double nearest = std::numeric_limits<double>::infinity();
  void Meet(double distance) {
    if (distance > 1e-12) nearest = std::min(nearest, distance);
  }
};

inline std::size_t Size(std::int64_t number) { return static_cast<std::size_t>(number); }
inline std::size_t At(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
  return Size(((n * shape[0] + c) * shape[1] + y) * shape[2] + x);
}
inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// y = W x + b, for N vectors.
inline Values PlainDense(std::int64_t N, std::int64_t features, std::int64_t outputs, const Values& in,
                         const Values& weight, const Values* bias) {
  Values out;
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = bias != nullptr ? (*bias)[Size(o)] : 0;
      for (std::int64_t i = 0; i < features; ++i) sum += weight[Size(o * features + i)] * in[Size(n * features + i)];
      out.push_back(sum);
    }
  return out;
}

// Calls visit(n, channel, y, x) for every value of an output image, in order.
template <class Visit>
void EveryPixel(std::int64_t N, const Shape& shape, const Visit& visit) {
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t c = 0; c < shape[0]; ++c)
      for (std::int64_t y = 0; y < shape[1]; ++y)
        for (std::int64_t x = 0; x < shape[2]; ++x) visit(n, c, y, x);
}

// Calls visit(ky, kx, iy, ix) for every place of the window over (y, x) that lies on the image.
template <class Visit>
void EveryPlace(const Layer& layer, const Shape& image, std::int64_t y, std::int64_t x, const Visit& visit) {
  for (std::int64_t ky = 0; ky < layer.kernel[0]; ++ky)
    for (std::int64_t kx = 0; kx < layer.kernel[1]; ++kx) {
      const std::int64_t iy = y * layer.stride[0] - layer.pad[0] + ky * layer.dilation[0];
      const std::int64_t ix = x * layer.stride[1] - layer.pad[1] + kx * layer.dilation[1];
      if (0 <= iy && iy < image[1] && 0 <= ix && ix < image[2]) visit(ky, kx, iy, ix);
    }
}

inline Values PlainConvolution(std::int64_t N, const Layer& layer, const Shape& from, const Shape& to, const Values& in,
                               const Values& weight, const Values* bias) {
  const std::int64_t channels = from[0] / layer.groups, outputs = to[0] / layer.groups;
  Values out;
  EveryPixel(N, to, [&](std::int64_t n, std::int64_t o, std::int64_t y, std::int64_t x) {
    double sum = bias != nullptr ? (*bias)[Size(o)] : 0;
    for (std::int64_t c = 0; c < channels; ++c)
      EveryPlace(layer, from, y, x, [&](std::int64_t ky, std::int64_t kx, std::int64_t iy, std::int64_t ix) {
        const std::int64_t at = ((o * channels + c) * layer.kernel[0] + ky) * layer.kernel[1] + kx;
        sum += weight[Size(at)] * in[At(from, n, o / outputs * channels + c, iy, ix)];
      });
    out.push_back(sum);
  });
  return out;
}

inline Values PlainMaxPool(std::int64_t N, const Layer& layer, const Shape& from, const Shape& to, const Values& in,
                           Margin& margin) {
  Values out;
  EveryPixel(N, to, [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    double largest = -std::numeric_limits<double>::infinity(), second = largest;
    EveryPlace(layer, from, y, x, [&](std::int64_t, std::int64_t, std::int64_t iy, std::int64_t ix) {
      const double value = in[At(from, n, c, iy, ix)];
      second = std::max(second, std::min(value, largest));
      largest = std::max(largest, value);
    });
    margin.Meet(largest - second);
    out.push_back(largest);
  });
  return out;
}

inline Values PlainAveragePool(std::int64_t N, const Layer& layer, const Shape& from, const Shape& to,
                               const Values& in) {
  Values out;
  EveryPixel(N, to, [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    double sum = 0, count = 0;
    EveryPlace(layer, from, y, x, [&](std::int64_t, std::int64_t, std::int64_t iy, std::int64_t ix) {
      sum += in[At(from, n, c, iy, ix)];
      ++count;
    });
    out.push_back(sum / (layer.include_padding ? static_cast<double>(layer.kernel[0] * layer.kernel[1]) : count));
  });
  return out;
}

inline Values PlainGlobalAveragePool(std::int64_t N, const Shape& from, const Values& in) {
  const auto pixels = static_cast<double>(from[1] * from[2]);
  Values out(Size(N * from[0]), 0.0);
  EveryPixel(N, from, [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    out[Size(n * from[0] + c)] += in[At(from, n, c, y, x)] / pixels;
  });
  return out;
}

inline Values PlainLrn(std::int64_t N, const Layer& layer, const Shape& shape, const Values& in) {
  Values out;
  EveryPixel(N, shape, [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    double squares = 0;
    for (std::int64_t near = std::max<std::int64_t>(c - layer.size / 2, 0);
         near <= std::min(c + layer.size / 2, shape[0] - 1); ++near)
      squares += in[At(shape, n, near, y, x)] * in[At(shape, n, near, y, x)];
    const double scale = layer.k + layer.alpha / static_cast<double>(layer.size) * squares;
    out.push_back(in[At(shape, n, c, y, x)] * std::pow(scale, -layer.beta));
  });
  return out;
}

// Mean and variance of every channel over the batch. Features are channels of one pixel.
struct Moments {
  Values mean, variance;
};
inline Moments MomentsOf(std::int64_t N, std::int64_t channels, std::int64_t pixels, const Values& in) {
  Moments moments{Values(Size(channels), 0.0), Values(Size(channels), 0.0)};
  const auto every = [&](const auto& visit) {
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t p = 0; p < pixels; ++p) visit(Size(c), in[Size((n * channels + c) * pixels + p)]);
  };
  const auto count = static_cast<double>(N * pixels);
  every([&](std::size_t c, double value) { moments.mean[c] += value / count; });
  every([&](std::size_t c, double value) {
    moments.variance[c] += (value - moments.mean[c]) * (value - moments.mean[c]) / count;
  });
  return moments;
}

inline Values PlainBatchNorm(std::int64_t channels, std::int64_t pixels, double epsilon, const Values& in,
                             const Moments& by, const Values& scale, const Values& shift) {
  Values out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t c = i / Size(pixels) % Size(channels);
    out.push_back((in[i] - by.mean[c]) / std::sqrt(by.variance[c] + epsilon) * scale[c] + shift[c]);
  }
  return out;
}

// Over `classes` values that lie `apart` from one another.
inline Values PlainSoftmax(std::int64_t classes, std::int64_t apart, const Values& in) {
  Values out(in.size());
  const std::size_t group = Size(classes * apart);
  for (std::size_t first = 0; first < in.size(); first += group)
    for (std::size_t offset = 0; offset < Size(apart); ++offset) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      const auto every = [&](const auto& visit) {
        for (std::size_t i = first + offset; i < first + group; i += Size(apart)) visit(i);
      };
      every([&](std::size_t i) { largest = std::max(largest, in[i]); });
      every([&](std::size_t i) { sum += out[i] = std::exp(in[i] - largest); });
      every([&](std::size_t i) { out[i] /= sum; });
    }
  return out;
}

// Calls make(value, row, place in a row of `small`) for every value of rows of `shape`, in order.
template <class Make>
Values PlainRepeated(const Shape& shape, const Shape& small, const Values& in, const Make& make) {
  std::size_t each = 1;
  for (const std::int64_t extent : shape) each *= Size(extent);
  Values out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::size_t place = 0, rest = i % each, group = each;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      group /= Size(shape[d]);
      place = place * Size(small[d]) + (small[d] == 1 ? 0 : rest / group);
      rest %= group;
    }
    out.push_back(make(in[i], i / each, place));
  }
  return out;
}

// Extent d of the output is extent order[d] of the input.
inline Values PlainTranspose(const Shape& shape, const Shape& order, const Values& in) {
  const std::size_t rank = shape.size();
  Values out(in.size());
  std::size_t each = 1;
  for (const std::int64_t extent : shape) each *= Size(extent);
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::vector<std::size_t> at(rank);
    std::size_t rest = i % each, to = 0;
    for (std::size_t d = rank; d-- > 0; rest /= Size(shape[d])) at[d] = rest % Size(shape[d]);
    for (std::size_t d = 0; d < rank; ++d) to = to * Size(shape[Size(order[d])]) + at[Size(order[d])];
    out[i / each * each + to] = in[i];
  }
  return out;
}

// One step of T × C to the outputs of all gates before their functions: W x, or U h.
inline double Gate(const Values& matrix, std::int64_t row, std::int64_t width, const double* vector) {
  double sum = 0;
  for (std::int64_t k = 0; k < width; ++k) sum += matrix[Size(row * width + k)] * vector[k];
  return sum;
}

// Gates in the order input, forget, candidate, output.
inline Values PlainLstm(std::int64_t N, std::int64_t T, std::int64_t C, std::int64_t H, bool sequence, const Values& in,
                        const Values& weight, const Values& recurrent, const Values& bias) {
  Values out;
  for (std::int64_t n = 0; n < N; ++n) {
    Values hidden(Size(H), 0.0), cell(Size(H), 0.0);
    for (std::int64_t t = 0; t < T; ++t) {
      const double* const x = &in[Size((n * T + t) * C)];
      Values now(Size(H));
      for (std::int64_t j = 0; j < H; ++j) {
        const auto gate = [&](std::int64_t g) {
          return Gate(weight, g * H + j, C, x) + Gate(recurrent, g * H + j, H, hidden.data()) + bias[Size(g * H + j)];
        };
        double& state = cell[Size(j)];
        state = Sigmoid(gate(1)) * state + Sigmoid(gate(0)) * std::tanh(gate(2));
        now[Size(j)] = Sigmoid(gate(3)) * std::tanh(state);
      }
      hidden = now;
      if (sequence || t == T - 1) out.insert(out.end(), hidden.begin(), hidden.end());
    }
  }
  return out;
}

// Gates in the order update, reset, candidate; the reset gate weighs U h and its bias (the fourth) together.
inline Values PlainGru(std::int64_t N, std::int64_t T, std::int64_t C, std::int64_t H, bool sequence, const Values& in,
                       const Values& weight, const Values& recurrent, const Values& bias) {
  Values out;
  for (std::int64_t n = 0; n < N; ++n) {
    Values hidden(Size(H), 0.0);
    for (std::int64_t t = 0; t < T; ++t) {
      const double* const x = &in[Size((n * T + t) * C)];
      Values now(Size(H));
      for (std::int64_t j = 0; j < H; ++j) {
        const auto from_input = [&](std::int64_t g) { return Gate(weight, g * H + j, C, x) + bias[Size(g * H + j)]; };
        const auto from_state = [&](std::int64_t g) { return Gate(recurrent, g * H + j, H, hidden.data()); };
        const double update = Sigmoid(from_input(0) + from_state(0)), reset = Sigmoid(from_input(1) + from_state(1));
        const double candidate = std::tanh(from_input(2) + reset * (from_state(2) + bias[Size(3 * H + j)]));
        now[Size(j)] = update * hidden[Size(j)] + (1 - update) * candidate;
      }
      hidden = now;
      if (sequence || t == T - 1) out.insert(out.end(), hidden.begin(), hidden.end());
    }
  }
  return out;
}

}  // namespace freshet::model::network
