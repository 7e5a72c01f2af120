#pragma once

#include <string_view>

#include "data/buffer.h"

namespace freshet::data {

// Appends each byte, as a number from 0 to 255, times `scale`.
inline void AppendPixels(std::string_view bytes, float scale, Buffer<float>& out) {
  float* const to = out.Room(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    to[i] = static_cast<float>(static_cast<unsigned char>(bytes[i])) * scale;
  out.SetEnd(to + bytes.size());
}

}  // namespace freshet::data
