#pragma once

#include "data/images/image.h"

namespace freshet::data {

// Brings images to one size: the largest part from the middle that has the wanted proportions is resampled, which is
// what scaling the shorter side to fit and cutting off the rest of the longer side comes to.
//
// Resampling is bilinear where the image grows; where it shrinks by a factor f the triangle is f times as wide, so that
// every pixel counts. What is beyond the part but within the image counts at its edges; what is beyond the image does
// not. An image of the wanted size stays as it is, bit for bit.
//
// Threads: one at a time; memory is kept for the next image.
class Resizer {
 public:
  // `to` gets the pixels channel after channel, each row by row: to.size() is channels × height × width. The image has
  // at least one pixel, and so has `size`.
  void Resize(const Image& from, ImageSize size, std::vector<unsigned char>& to);

 private:
  // Along one axis: output i is the sum of `count` inputs from begin[i] on, weighted by weights[i * count].
  struct Taps {
    std::size_t count = 0;
    std::vector<std::size_t> begin;
    std::vector<float> weights;
  };
  static void MakeTaps(std::size_t inputs, std::size_t outputs, double part, Taps& taps);
  void SumRows(const Image& from, std::size_t row);
  template <std::size_t C>
  void EmitRow(std::size_t row, ImageSize size, std::vector<unsigned char>& to) const;

  Taps across_, down_;
  std::vector<float> line_;  // one output row at the image's full width
};

}  // namespace freshet::data
