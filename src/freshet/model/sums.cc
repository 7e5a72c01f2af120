#include "model/sums.h"

#include <algorithm>
#include <charconv>

#include "model/cut_out.h"

namespace freshet::model {
namespace {

constexpr char kRule[] = "sums_rule", kStep[] = "sums_step";  // metadata of a model file

std::string TensorOf(const optimize::Parameters& parameters, std::size_t b) {
  return "sums." + parameters.block(b).name;
}

}  // namespace

Sums Sums::Of(const optimize::Parameters& parameters, const optimize::Optimizer& optimizer) {
  Sums sums{std::string(optimizer.name()), optimizer.step(), {}};
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    Block& block = sums.blocks.emplace_back();
    if (!parameters.held(b)) continue;
    block.width = parameters.width(b) * static_cast<std::uint64_t>(optimizer.slots());
    if (block.width == 0) continue;
    const auto take = [&](std::span<const float> piece) -> Result<void> {
      block.values.insert(block.values.end(), piece.begin(), piece.end());
      return {};
    };
    const bool beside = parameters.block(b).beside > 0;
    CHECK((beside ? parameters.VisitBeside(b, take) : optimizer.state().VisitRows(b, take)).ok());
  }
  return sums;
}

bool Sums::Give(optimize::Parameters& parameters, optimize::Optimizer& optimizer) const {
  if (rule != optimizer.name() || blocks.size() != parameters.blocks()) return false;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!parameters.held(b)) continue;
    const std::uint64_t width = parameters.width(b) * static_cast<std::uint64_t>(optimizer.slots());
    if (blocks[b].width != width || blocks[b].values.size() != width * parameters.rows(b)) return false;
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].width == 0) continue;
    if (parameters.block(b).beside > 0)
      parameters.ScatterBeside(b, blocks[b].values);
    else
      optimizer.state().Scatter(b, blocks[b].values);
  }
  optimizer.SetStep(step);
  return true;
}

void Sums::Save(const optimize::Parameters& parameters, data::Metadata& metadata,
                std::vector<data::Tensor>& tensors) const {
  metadata[kRule] = rule;
  metadata[kStep] = Str(step);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].width > 0)
      tensors.push_back({TensorOf(parameters, b),
                         data::DType::kF32,
                         {parameters.rows(b), blocks[b].width},
                         std::as_bytes(std::span(blocks[b].values))});
}

bool Sums::In(const data::TensorFile& file) { return file.metadata().contains(kRule); }

Result<Sums> Sums::Load(const data::TensorFile& file, const optimize::Parameters& parameters) {
  Sums sums{TRY(file.Meta(kRule)), 0, {}};
  const std::string step = TRY(file.Meta(kStep));
  if (std::from_chars(step.data(), step.data() + step.size(), sums.step).ptr != step.data() + step.size())
    return Error{Code::kCorrupt, Str(kStep, " is ", Quoted(step), ", expected a number")};
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    Block& block = sums.blocks.emplace_back();
    const std::string name = TensorOf(parameters, b);
    const data::Tensor* const tensor = file.Find(name);
    if (tensor == nullptr || !parameters.held(b)) continue;
    if (const optimize::Block range = parameters.block(b); range.within) {
      block.values = TRY(CutOut(*tensor, range));
      block.width = tensor->shape[1] / range.within->width * range.width;
      if (block.values.size() == block.width * range.rows) continue;
      return Error{Code::kCorrupt, Str("tensor '", name, "' has fewer rows than its model")};
    }
    if (tensor->dtype != data::DType::kF32 || tensor->shape.size() != 2 || tensor->shape[0] != parameters.rows(b) ||
        tensor->shape[1] == 0)
      return Error{Code::kCorrupt, Str("tensor '", name, "' is of another shape than its model has")};
    block.width = tensor->shape[1];
    block.values = TRY(file.Values<float>(name));
  }
  return sums;
}

}  // namespace freshet::model
