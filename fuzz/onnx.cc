#include "model/onnx/import.h"
#include "model/onnx/read.h"
#include "model/onnx/write.h"
#include "world.h"

namespace freshet::fuzz {
namespace {

// What could be read can be written and read again, with the same nodes and numbers.
void CheckRoundTrip(const model::onnx::Document& document) {
  base::StringFile written;
  CHECK(model::onnx::Write(document, written).ok());
  const auto again = model::onnx::Read(written.text);
  CHECK(again.ok());
  CHECK(again.value().nodes.size() == document.nodes.size());
  CHECK(again.value().initializers.size() == document.initializers.size());
  for (std::size_t i = 0; i < document.initializers.size(); ++i)
    CHECK(again.value().initializers[i].bytes == document.initializers[i].bytes);
}

}  // namespace
}  // namespace freshet::fuzz

// Any bytes as an ONNX file, and as the network in one: refused with the reason, or whole.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  const auto document = model::onnx::Read({reinterpret_cast<const char*>(data), size});
  if (!document.ok()) {
    CHECK(document.error().code == Code::kBadInput);
    return 0;
  }
  fuzz::CheckRoundTrip(document.value());
  optimize::HeapMemory memory;
  const auto imported = model::onnx::Import(document.value(), memory);
  if (!imported.ok()) {
    CHECK(imported.error().code == Code::kBadInput);
    return 0;
  }
  const auto facts = model::network::Infer(imported.value().graph);
  CHECK(facts.ok());
  CHECK(imported.value().parameters.AllFinite());
  return 0;
}
