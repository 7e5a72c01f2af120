#include "data/tensor_file.h"
#include "world.h"

namespace freshet::fuzz {
namespace {

// What could be read can be written and read again.
void CheckRoundTrip(const data::TensorFile& file) {
  base::StringFile written;
  CHECK(data::WriteTensors(written, file.tensors(), file.metadata()).ok());
  const auto again = data::TensorFile::Parse(written.text, "again");
  CHECK(again.ok());
  CHECK(again.value().tensors().size() == file.tensors().size());
  for (const data::Tensor& tensor : file.tensors()) {
    const data::Tensor* const found = again.value().Find(tensor.name);
    CHECK(found != nullptr);
    CHECK(std::equal(found->bytes.begin(), found->bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
}

// A description from such a file either is refused or reads rows that hold together.
void CheckDescription(const data::TensorFile& file) {
  const auto description = data::Description::Load(file);
  if (!description.ok()) return;
  const auto format = data::FindFormat(description.value().format);
  if (!format.ok()) return;
  std::string text = "1 1:2 |a b\n1,2,x,\"y\"\na::b::3::4\n1\n";
  text.append(data::Parser::kPadding, '\n');
  const data::Head head{std::string_view(text).substr(0, text.size() - data::Parser::kPadding), "input"};
  MemoryFiles files({});
  for (const bool labelled : {true, false}) {
    const auto parser = format.value()->make(head, description.value(), {}, files, labelled);
    if (!parser.ok()) continue;
    data::Rows rows;
    rows.Clear();
    rows.text.Append(std::span(text));
    rows.text.Resize(head.bytes.size());
    parser.value()->Parse(rows);
    rows.samples.Resize(rows.size());
    CheckRows(rows);
  }
}

}  // namespace
}  // namespace freshet::fuzz

// Any bytes as a safetensors file, and as the input description in one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  const auto file = data::TensorFile::Parse({reinterpret_cast<const char*>(data), size}, "file");
  if (!file.ok()) {
    CHECK(file.error().code == Code::kCorrupt);
    return 0;
  }
  for (const data::Tensor& tensor : file.value().tensors()) {
    (void)file.value().Values<float>(tensor.name);
    (void)file.value().Values<std::uint64_t>(tensor.name);
  }
  fuzz::CheckRoundTrip(file.value());
  fuzz::CheckDescription(file.value());
  return 0;
}
