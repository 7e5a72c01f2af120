#include "model/onnx/outside.h"

#include <map>

namespace freshet::model::onnx {
namespace {

Error Wrong(const Tensor& tensor, const std::string& what) {
  return {Code::kBadInput,
          Str("tensor ", Quoted(tensor.name), ", whose data is in ", Quoted(tensor.outside->file), ": ", what)};
}

class Outside {
 public:
  explicit Outside(const OpenOutside& open) : open_(open) {}

  Result<void> One(Tensor& tensor) {
    const std::uint64_t wanted = tensor.elements() * BytesOf(tensor.type);
    if (wanted == 0 && tensor.elements() > 0) return {};  // of a type that nobody can use
    const base::InputFile& file = TRY(Open(tensor));
    const std::uint64_t size = file.size().value_or(0), from = tensor.outside->offset;
    const std::uint64_t length = tensor.outside->length.value_or(from <= size ? size - from : 0);
    if (length != wanted) return Wrong(tensor, Str(length, " bytes of data, its shape says ", wanted));
    if (from > size || length > size - from)
      return Wrong(tensor, Str("bytes ", from, " and ", length, " more of a file of ", size,
                               "; is the file whole, and of this model?"));
    if (length > room_) return Wrong(tensor, "tensors name the same parts of files again and again");
    room_ -= length;
    auto bytes = std::make_shared<std::string>(static_cast<std::size_t>(length), '\0');
    if (TRY(file.ReadAt(from, std::span(bytes->data(), bytes->size()))) != bytes->size())
      return Wrong(tensor, "the file ended early");
    tensor.own = bytes;
    tensor.bytes = *bytes;
    tensor.outside.reset();
    return {};
  }

 private:
  // One file is kept open: most models have one.
  Result<std::reference_wrapper<const base::InputFile>> Open(const Tensor& tensor) {
    const std::string& name = tensor.outside->file;
    if (file_ == nullptr || name != name_) {
      auto opened = open_(name);
      if (!opened.ok())
        return Error{opened.error().code, Str("tensor ", Quoted(tensor.name), ": ", opened.error().text)};
      file_ = std::move(opened).value();
      name_ = name;
      if (sizes_.emplace(name, 0).second) room_ += file_->size().value_or(0);
    }
    return std::cref(*file_);
  }

  const OpenOutside& open_;
  std::string name_;
  std::unique_ptr<base::InputFile> file_;
  std::map<std::string, int> sizes_;  // files that have been counted
  std::uint64_t room_ = 0;            // bytes that may still be read
};

}  // namespace

Result<void> ReadOutside(Document& document, const OpenOutside& open) {
  Outside outside(open);
  for (Tensor& tensor : document.initializers)
    if (tensor.outside.has_value()) TRY(outside.One(tensor));
  return {};
}

}  // namespace freshet::model::onnx
