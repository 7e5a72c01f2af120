#include <algorithm>

#include "model/onnx/import.h"
#include "model/onnx/outside.h"
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

// A file beside the model: a few zeros.
class SmallFile final : public base::InputFile {
 public:
  Result<std::size_t> Read(std::span<char> out) override { return ReadAt(0, out); }
  Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const override {
    CHECK(offset <= kSize && out.size() <= kSize - offset);  // places are looked at before they are read
    std::fill(out.begin(), out.end(), '\0');
    return out.size();
  }
  std::optional<std::uint64_t> size() const override { return kSize; }

 private:
  static constexpr std::uint64_t kSize = 64;
};

// Refused with the reason, or a network that makes sense.
void CheckImport(const model::onnx::Document& document, bool one_row) {
  optimize::HeapMemory memory;
  const auto imported = model::onnx::Import(document, memory, {.one_row = one_row});
  if (!imported.ok()) {
    CHECK(imported.error().code == Code::kBadInput);
    return;
  }
  CHECK(model::network::Infer(imported.value().graph).ok());
  CHECK(imported.value().parameters.AllFinite());
}

}  // namespace
}  // namespace freshet::fuzz

// Any bytes as an ONNX file, and as the network in one: refused with the reason, or whole.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  auto document = model::onnx::Read({reinterpret_cast<const char*>(data), size});
  if (!document.ok()) {
    CHECK(document.error().code == Code::kBadInput);
    return 0;
  }
  const auto outside = [](const model::onnx::Tensor& tensor) { return tensor.outside.has_value(); };
  const auto& tensors = document.value().initializers;
  if (std::none_of(tensors.begin(), tensors.end(), outside)) fuzz::CheckRoundTrip(document.value());
  fuzz::CheckImport(document.value(), false);
  const auto open = [](std::string_view) -> Result<std::unique_ptr<base::InputFile>> {
    return std::unique_ptr<base::InputFile>(std::make_unique<fuzz::SmallFile>());
  };
  if (const auto read = model::onnx::ReadOutside(document.value(), open); !read.ok())
    CHECK(read.error().code == Code::kBadInput);
  for (const bool one_row : {false, true}) fuzz::CheckImport(document.value(), one_row);
  return 0;
}
