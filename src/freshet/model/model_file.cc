#include "model/model_file.h"

#include "model/cut_out.h"

namespace freshet::model {
namespace {

constexpr char kRated[] = "rated";  // the tensor with what was rated

Error Misshapen(const std::string& name) {
  return {Code::kCorrupt, Str("tensor '", name, "' is missing or of another shape than its model has")};
}

Result<void> LoadBlock(const data::TensorFile& file, Part part, const std::string& prefix,
                       optimize::Parameters& parameters, std::size_t b) {
  const std::uint64_t width = part == Part::kRows ? parameters.width(b) : parameters.block(b).beside;
  if (width == 0 || !parameters.held(b)) return {};
  const std::string name = prefix + parameters.block(b).name;
  const data::Tensor* const tensor = file.Find(name);
  if (tensor == nullptr || tensor->dtype != data::DType::kF32 || tensor->shape.size() != 2 ||
      tensor->shape[1] != width || tensor->shape[0] < parameters.rows(b))
    return Misshapen(name);
  TRY(parameters.Grow(b, tensor->shape[0]));
  const std::vector<float> values = TRY(file.Values<float>(name));
  if (part == Part::kRows)
    parameters.Scatter(b, values);
  else
    parameters.ScatterBeside(b, values);
  return {};
}

// A range of a block, from the tensor of the whole.
Result<void> LoadRange(const data::TensorFile& file, optimize::Parameters& parameters, std::size_t b) {
  const optimize::Block block = parameters.block(b);
  const data::Tensor* const tensor = file.Find(block.name);
  if (tensor == nullptr) return Misshapen(block.name);
  const std::vector<float> values = TRY(CutOut(*tensor, block));
  if (tensor->shape[1] != block.within->width || values.size() < block.rows * block.width) return Misshapen(block.name);
  TRY(parameters.Grow(b, values.size() / block.width));
  parameters.Scatter(b, values);
  return {};
}

}  // namespace

void AddBlocks(const optimize::Parameters& parameters, Part part, const std::string& prefix,
               std::vector<data::Tensor>& tensors) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const optimize::Block block = parameters.block(b);
    const std::uint64_t width = part == Part::kRows ? block.width : block.beside;
    if (width == 0 || !block.held) continue;
    data::Tensor tensor{prefix + block.name, data::DType::kF32, {block.rows, width}, {}};
    if (part == Part::kRows && parameters.plain(b)) {
      tensor.bytes = std::as_bytes(parameters.Values(b));
    } else {
      tensor.pieces = [&parameters, part, b](const data::Tensor::Take& take) {
        const auto visit = [&](std::span<const float> piece) { return take(std::as_bytes(piece)); };
        return part == Part::kRows ? parameters.VisitRows(b, visit) : parameters.VisitBeside(b, visit);
      };
    }
    tensors.push_back(std::move(tensor));
  }
}

Result<void> LoadBlocks(const data::TensorFile& file, Part part, const std::string& prefix,
                        optimize::Parameters& parameters) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) TRY(LoadBlock(file, part, prefix, parameters, b));
  return {};
}

Result<void> WriteModel(base::OutputFile& file, const Model& model, const optimize::Parameters& parameters,
                        const data::Description& description, data::Metadata metadata, const Rated& rated,
                        const Sums* sums) {
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  metadata["format"] = "freshet model 1";
  metadata["model"] = model.config().ToJson();
  AddBlocks(parameters, Part::kRows, "", tensors);
  if (sums != nullptr) sums->Save(parameters, metadata, tensors);
  description.Save(metadata, tensors, storage);
  const std::string packed = rated.Pack();
  if (!packed.empty()) tensors.push_back({kRated, data::DType::kU8, {packed.size()}, std::as_bytes(std::span(packed))});
  return data::WriteTensors(file, tensors, metadata);
}

Result<void> SaveModel(base::Files& files, const std::string& path, const Model& model,
                       const optimize::Parameters& parameters, const data::Description& description,
                       data::Metadata metadata, const Rated& rated, const Sums* sums) {
  return base::WriteAtomic(files, path, [&](base::OutputFile& file) {
    return WriteModel(file, model, parameters, description, metadata, rated, sums);
  });
}

Result<TrainedModel> ModelFrom(const data::TensorFile& file, optimize::Memory& memory,
                               const optimize::Portion& portion) {
  auto model = TRY(Model::Make(TRY(ModelConfig::FromJson(TRY(file.Meta("model"))))));
  auto parameters = TRY(model->NewParameters(memory, 0, portion));
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    TRY(parameters.block(b).within ? LoadRange(file, parameters, b) : LoadBlock(file, Part::kRows, "", parameters, b));
  auto description = TRY(data::Description::Load(file));
  Rated rated;
  if (file.Find(kRated) != nullptr) {
    const auto bytes = TRY(file.Values<std::uint8_t>(kRated));
    rated = TRY(Rated::Unpack({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    const auto& names = description.dictionaries;
    for (const auto& [user, item] : rated.pairs())
      if (names.size() != 2 || user >= names[0].size() || item >= names[1].size())
        return Error{Code::kCorrupt, Str("user ", user, " has rated item ", item, ", and there are no such names")};
  }
  std::optional<Sums> sums;
  if (Sums::In(file)) sums = TRY(Sums::Load(file, parameters));
  return TrainedModel{std::move(model), std::move(parameters), std::move(description),
                      file.metadata(),  std::move(rated),      std::move(sums)};
}

Result<TrainedModel> LoadModel(base::Files& files, const std::string& path, optimize::Memory& memory,
                               const optimize::Portion& portion) {
  auto loaded = ModelFrom(TRY(data::TensorFile::Read(files, path)), memory, portion);
  if (loaded.ok()) return loaded;
  // Whatever the file asks for that cannot be had is the file's fault, not the user's.
  return Error{Code::kCorrupt, Str(path, ": ", loaded.error().text)};
}

}  // namespace freshet::model
