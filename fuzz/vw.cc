#include "world.h"

// Any bytes as VW text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  const std::string text(reinterpret_cast<const char*>(data), size);
  data::InputOptions input;
  input.format = "vw";
  input.task = data::Labels::Kind::kReal;
  fuzz::ReadAnything({{"input", text}}, "input", input);
  input.task = data::Labels::Kind::kAuto;
  input.bits = 8;
  fuzz::ReadAnything({{"input", text}}, "input", input);
  return 0;
}
