#include "world.h"

// Any bytes as a table: as it seems to be, and with its columns named by number.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  const std::string text(reinterpret_cast<const char*>(data), size);
  data::InputOptions input;
  input.format = "csv";
  fuzz::ReadAnything({{"input", text}}, "input", input);
  input.task = data::Labels::Kind::kReal;
  input.label = "none";
  input.header = "no";
  input.bits = 6;
  input.categorical = {"2"};
  input.weight_column = "-1";
  input.time_column = "1";
  fuzz::ReadAnything({{"input", text}}, "input", input);
  return 0;
}
