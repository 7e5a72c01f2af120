#include "world.h"

// Any bytes as a table: as it seems to be, with its columns named by number, and with a decimal comma.
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
  data::InputOptions other;
  other.format = "csv";
  other.decimal = "comma";
  other.numeric = {"1"};
  other.task = data::Labels::Kind::kReal;
  fuzz::ReadAnything({{"input", text}}, "input", other);
  return 0;
}
