#pragma once

#include <string>

#include "base/result.h"

namespace freshet::bench {

// Writes JPEG files of `size` × `size` pixels into folders of ten classes, which differ by the slope of their stripes.
// The same files for the same arguments. kIo when a file cannot be written.
Result<void> WriteImages(const std::string& directory, int count, int size);

}  // namespace freshet::bench
