#include "model/onnx/builder.h"

namespace freshet::model::onnx {
namespace {

template <class T>
std::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

std::vector<std::int64_t> WithBatch(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> all = {-1};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

}  // namespace

std::string Builder::Unique(std::string_view wanted) {
  std::string name(wanted);
  for (int number = 2; !names_.insert(name).second; ++number) name = Str(wanted, "_", number);
  return name;
}

std::string Builder::Node(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes,
                          std::string_view name, std::string_view output) {
  std::string out(output.empty() ? (name.empty() ? op : name) : output);
  return Nodes(op, std::move(inputs), {std::move(out)}, std::move(attributes), name)[0];
}

std::vector<std::string> Builder::Nodes(std::string_view op, std::vector<std::string> inputs,
                                        std::vector<std::string> outputs, std::vector<Attribute> attributes,
                                        std::string_view name, std::string_view domain) {
  for (std::string& output : outputs)
    if (!output.empty()) output = Unique(output);
  document_.nodes.push_back({.op = std::string(op),
                             .name = name.empty() ? outputs.back() : std::string(name),
                             .domain = std::string(domain),
                             .inputs = std::move(inputs),
                             .outputs = outputs,
                             .attributes = std::move(attributes)});
  return outputs;
}

std::string Builder::Keep(std::string_view name, Type type, std::vector<std::int64_t> dims, std::string bytes) {
  auto own = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *own;
  document_.initializers.push_back({Unique(name), type, std::move(dims), view, std::move(own)});
  return document_.initializers.back().name;
}

std::string Builder::Floats(std::string_view name, std::vector<std::int64_t> dims, std::vector<float> values) {
  return Keep(name, Type::kFloat, std::move(dims), std::string(BytesOf<float>(values)));
}

std::string Builder::Ints(std::string_view name, std::vector<std::int64_t> values) {
  return Keep(name, Type::kInt64, {static_cast<std::int64_t>(values.size())},
              std::string(BytesOf<std::int64_t>(values)));
}

std::string Builder::Scalar(std::string_view name, float value) { return Floats(name, {}, {value}); }

std::string Builder::Block(const optimize::Parameters& parameters, std::size_t b, std::vector<std::int64_t> dims) {
  if (!parameters.plain(b)) return Floats(parameters.block(b).name, std::move(dims), parameters.Gather(b));
  document_.initializers.push_back(
      {Unique(parameters.block(b).name), Type::kFloat, std::move(dims), BytesOf<float>(parameters.Values(b))});
  return document_.initializers.back().name;
}

std::string Builder::Input(std::string_view name, Type type, std::vector<std::int64_t> dims) {
  document_.inputs.push_back({Unique(name), type, WithBatch(dims)});
  return document_.inputs.back().name;
}

void Builder::Output(std::string_view name, Type type, std::vector<std::int64_t> dims) {
  document_.outputs.push_back({std::string(name), type, WithBatch(dims)});
}

}  // namespace freshet::model::onnx
