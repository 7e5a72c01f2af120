#include "model/onnx/read_tensor.h"

#include <bit>
#include <charconv>

#include "model/network/graph.h"

namespace freshet::model::onnx {
namespace {

constexpr std::size_t kMostDims = 8, kMostInts = 1 << 20;

// The data of a tensor as the fields hold it, before it is known what it should be.
struct Data {
  std::string_view raw;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  bool has_raw = false;
};

Error Wrong(const Tensor& tensor, const std::string& what) {
  return {Code::kBadInput, Str("tensor ", Quoted(tensor.name), ": ", what)};
}

// Elements by the shape; an error when they are absurd.
Result<std::int64_t> Elements(const Tensor& tensor) {
  std::int64_t product = 1;
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) return Wrong(tensor, Str("a dimension of size ", dim));
    if (dim > 0 && product > network::kMostElements / dim)
      return Wrong(tensor, Str("its shape stands for more than ", network::kMostElements, " elements"));
    product *= dim;
  }
  return product;
}

Result<std::uint64_t> Count(std::string_view text, const Tensor& tensor) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Wrong(tensor, Str("its place in another file is ", Quoted(text.substr(0, 40)), "; expected a number"));
  return number;
}

template <class T, class From>
std::string Packed(const std::vector<From>& values) {
  std::string bytes;
  bytes.reserve(values.size() * sizeof(T));
  for (const From value : values) {
    const auto narrow = static_cast<T>(value);
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  }
  return bytes;
}

std::string PackedAs(Type type, const Data& data) {
  if (type == Type::kFloat) return Packed<float>(data.floats);
  if (type == Type::kInt32) return Packed<std::int32_t>(data.ints);
  if (type == Type::kInt64) return Packed<std::int64_t>(data.ints);
  if (type == Type::kDouble) return Packed<double>(data.floats);
  return Packed<std::uint8_t>(data.ints);
}

// One of the pairs that say where data lies in another file.
Result<void> Outside(std::string_view bytes, const Tensor& tensor, OutsideData& outside) {
  std::string_view key, value;
  WireReader reader(bytes);
  while (const auto field = TRY(reader.Next())) {
    if (field->number == 1) key = field->bytes;
    if (field->number == 2) value = field->bytes;
  }
  if (key == "location") outside.file = value;
  if (key == "offset") outside.offset = TRY(Count(value, tensor));
  if (key == "length") outside.length = TRY(Count(value, tensor));
  return {};
}

}  // namespace

Result<void> AppendInts(const Field& field, std::vector<std::int64_t>& values) {
  const auto append = [&](std::uint64_t value) -> Result<void> {
    if (values.size() == kMostInts)
      return Error{Code::kBadInput, Str("a list of more than ", kMostInts, " whole numbers")};
    values.push_back(static_cast<std::int64_t>(value));
    return {};
  };
  if (field.type != Field::Type::kBytes) return append(field.value);
  for (WireReader reader(field.bytes); !reader.done();) TRY(append(TRY(reader.Varint())));
  return {};
}

Result<void> AppendFloats(const Field& field, std::vector<float>& values) {
  if (field.type != Field::Type::kBytes) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    return {};
  }
  for (WireReader reader(field.bytes); !reader.done();) values.push_back(std::bit_cast<float>(TRY(reader.Fixed32())));
  return {};
}

Result<Tensor> ReadTensor(std::string_view bytes) {
  Tensor tensor;
  tensor.type = Type::kNone;
  Data data;
  WireReader reader(bytes);
  while (const auto field = TRY(reader.Next())) {
    switch (field->number) {
      case 1:
        TRY(AppendInts(*field, tensor.dims));
        if (tensor.dims.size() > kMostDims) return Wrong(tensor, Str("more than ", kMostDims, " dimensions"));
        break;
      case 2:
        tensor.type = static_cast<Type>(field->value);
        break;
      case 3:
        return Wrong(tensor, "it is in segments, which are not known here");
      case 4:
        TRY(AppendFloats(*field, data.floats));
        break;
      case 5:
      case 7:
        TRY(AppendInts(*field, data.ints));
        break;
      case 8:
        tensor.name = field->bytes;
        break;
      case 9:
        data.raw = field->bytes;
        data.has_raw = true;
        break;
      case 13:
        if (!tensor.outside.has_value()) tensor.outside.emplace();
        TRY(Outside(field->bytes, tensor, *tensor.outside));
        break;
      case 14:
        if (field->value == 1 && !tensor.outside.has_value()) tensor.outside.emplace();
        break;
      default:
        break;
    }
  }
  const std::size_t size = BytesOf(tensor.type);
  const auto elements = static_cast<std::uint64_t>(TRY(Elements(tensor)));
  if (tensor.outside.has_value() && tensor.outside->file.empty())
    return Wrong(tensor, "its data is in another file (external_data), which it does not name");
  if (size == 0 || tensor.outside.has_value()) return tensor;  // whoever needs its data will say so
  if (!data.has_raw) {
    tensor.own = std::make_shared<const std::string>(PackedAs(tensor.type, data));
    data.raw = *tensor.own;
  }
  if (data.raw.size() != elements * size)
    return Wrong(tensor, Str(data.raw.size(), " bytes of data, its shape says ", elements * size));
  tensor.bytes = data.raw;
  return tensor;
}

}  // namespace freshet::model::onnx
