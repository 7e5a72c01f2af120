#pragma once

#include <cstddef>
#include <string_view>

#include "serve/http/body.h"

namespace freshet::serve {

enum class Unpacked {
  kDone,
  kBad,       // these are not one or more whole gzip files, one behind the other
  kTooLarge,  // it would be more than it may
  kNoRoom,    // the budget of bodies is spent
};

// Unpacks gzip behind what `into` holds, at most `most` bytes: no more than that is ever made, however small it came.
Unpacked Gunzip(std::string_view packed, std::size_t most, HttpBody& into);

}  // namespace freshet::serve
