#include "world.h"

// Any bytes as images and their labels. The first two say how many bytes behind them are labels.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t labels = std::min<std::size_t>(data[0] | data[1] << 8, bytes.size());
  data::InputOptions input;
  input.format = "idx";
  fuzz::ReadAnything({{"t-labels-idx1", bytes.substr(0, labels)}, {"t-images-idx3", bytes.substr(labels)}},
                     "t-images-idx3", input);
  return 0;
}
