#include "strategy/server/encoding.h"

#include <algorithm>

#include "base/option.h"
#include "base/str.h"

namespace freshet::strategy::server {

Encoding::Encoding(fabric::Codec* codec, const optimize::Parameters& parameters)
    : codec_(codec), parameters_(parameters), residuals_(parameters.blocks()) {}

float* Encoding::Begin(Writer& writer, Parcel parcel, std::span<const std::uint32_t> rows) {
  parcel.values = encodes() ? Parcel::Values::kEncoded : Parcel::Values::kFloats;
  writer.Begin(parcel, parcel.form == Parcel::Form::kRows ? rows : std::span<const std::uint32_t>());
  const std::size_t count = parcel.count * parameters_.width(parcel.block);
  if (!encodes()) return writer.Floats(count);
  parcel_ = parcel;
  rows_ = rows;
  values_.resize(count);
  return values_.data();
}

std::size_t Encoding::End(Writer& writer) {
  if (!encodes()) return 0;
  codec_->Encode(values_, TakeResidual(), encoded_);
  KeepResidual();
  const std::uint64_t bytes = encoded_.size();
  writer.Put(&bytes, sizeof bytes);
  writer.Put(encoded_.data(), encoded_.size());
  const std::size_t plain = values_.size() * sizeof(float), taken = sizeof bytes + encoded_.size();
  return plain - std::min(plain, taken);
}

std::span<float> Encoding::TakeResidual() {
  if (!codec_->uses_residual()) return {};
  const std::uint64_t width = parameters_.width(parcel_.block);
  std::vector<float>& residual = residuals_[parcel_.block];
  if (residual.size() < parameters_.rows(parcel_.block) * width)
    residual.resize(parameters_.rows(parcel_.block) * width, 0.0f);
  if (parcel_.form == Parcel::Form::kStretch)
    return std::span(residual).subspan(parcel_.first * width, parcel_.count * width);
  lost_.resize(values_.size());
  float* to = lost_.data();
  for (const std::uint32_t row : rows_) to = std::copy_n(residual.data() + row * width, width, to);
  return lost_;
}

void Encoding::KeepResidual() {
  if (!codec_->uses_residual() || parcel_.form == Parcel::Form::kStretch) return;
  const std::uint64_t width = parameters_.width(parcel_.block);
  const float* from = lost_.data();
  for (const std::uint32_t row : rows_) {
    std::copy_n(from, width, residuals_[parcel_.block].data() + row * width);
    from += width;
  }
}

void Encoding::Save(std::vector<data::Tensor>& tensors) const {
  for (std::size_t b = 0; b < residuals_.size(); ++b)
    if (!residuals_[b].empty())
      tensors.push_back({Str("server.residual.", b),
                         data::DType::kF32,
                         {residuals_[b].size()},
                         std::as_bytes(std::span<const float>(residuals_[b]))});
}

Result<void> Encoding::Load(const data::TensorFile& file) {
  for (std::size_t b = 0; b < residuals_.size(); ++b) {
    const std::string name = Str("server.residual.", b);
    if (file.Find(name) == nullptr) continue;
    residuals_[b] = TRY(file.Values<float>(name));
    if (residuals_[b].size() > parameters_.rows(b) * parameters_.width(b))
      return Error{Code::kCorrupt,
                   Str(Option("codec"), ": of block ", b, " ", residuals_[b].size(),
                       " floats were saved that had not been delivered, and it has ",
                       parameters_.rows(b) * parameters_.width(b), "; continue with the model of the checkpoint")};
  }
  return {};
}

}  // namespace freshet::strategy::server
