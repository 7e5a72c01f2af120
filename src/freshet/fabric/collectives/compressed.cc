#include "fabric/collectives/compressed.h"

#include "base/check.h"
#include "base/hollow.h"
#include "base/str.h"
#include "fabric/collectives/collectives.h"
#include "fabric/collectives/in_order.h"

namespace freshet::fabric {
namespace {

constexpr std::string_view kDoing = "making a compressed sum";

}  // namespace

CompressedAllReduce::CompressedAllReduce(std::unique_ptr<Codec> codec, std::size_t length, bool hollow)
    : codec_(std::move(codec)),
      length_(length),
      hollow_(hollow),
      encoding_(Str("encode ", codec_->name())),
      decoding_(Str("decode ", codec_->name())),
      residual_(codec_->uses_residual() && !hollow ? length : 0) {}

Result<void> CompressedAllReduce::RunHollow(Fabric& fabric, Tag tag) {
  const int rank = fabric.rank(), size = fabric.size();
  const auto length = [&](int chunk) {
    return ChunkBegin(length_, chunk + 1, size) - ChunkBegin(length_, chunk, size);
  };
  const auto send = [&](std::size_t floats) {
    const std::span<const std::byte> encoded = base::HollowBytes(codec_->EncodedBytes(floats));
    bytes_sent_ += encoded.size();
    return encoded;
  };
  const auto take = [&](std::size_t floats) -> Result<void> {
    fabric.Spend(decoding_, floats * sizeof(float));
    return {};
  };
  fabric.Spend(encoding_, length_ * sizeof(float));
  TRY(ExchangeInOrder(
      fabric, tag, kDoing, [&](int to) { return send(length(to)); },
      [&](int, std::span<const std::byte>) { return take(length(rank)); }));
  fabric.Spend(encoding_, length(rank) * sizeof(float));
  return ExchangeInOrder(
      fabric, tag + 1, kDoing, [&](int) { return send(length(rank)); },
      [&](int from, std::span<const std::byte>) { return take(length(from)); });
}

Result<void> CompressedAllReduce::Run(Fabric& fabric, Tag tag, std::span<float> values) {
  CHECK(values.size() == length_);
  if (hollow_) return fabric.size() == 1 ? Result<void>() : RunHollow(fabric, tag);
  const int rank = fabric.rank(), size = fabric.size();
  if (size == 1) {
    for (std::size_t i = 0; i < residual_.size(); ++i) values[i] += residual_[i];
    Clear();
    return {};
  }
  encoded_.resize(static_cast<std::size_t>(size));
  const std::span<float> mine = Chunk(values, rank, size);
  sum_.assign(mine.size(), 0.0f);
  TRY(ExchangeInOrder(
      fabric, tag, kDoing,
      [&](int to) {
        const std::span<const std::byte> encoded = Encode(to, size, Chunk(values, to, size));
        fabric.Spend(encoding_, Chunk(values, to, size).size_bytes());
        bytes_sent_ += encoded.size();
        return encoded;
      },
      [&](int from, std::span<const std::byte> bytes) -> Result<void> {
        fabric.Spend(decoding_, mine.size_bytes());
        if (from != rank) return codec_->Decode(bytes, sum_, Codec::Onto::kAdd);
        for (std::size_t i = 0; i < mine.size(); ++i) sum_[i] += mine[i];
        return {};
      }));

  const std::span<const std::byte> encoded_sum = Encode(rank, size, sum_);
  fabric.Spend(encoding_, mine.size_bytes());
  return ExchangeInOrder(
      fabric, tag + 1, kDoing,
      [&](int) {
        bytes_sent_ += encoded_sum.size();
        return encoded_sum;
      },
      [&](int from, std::span<const std::byte> bytes) {
        fabric.Spend(decoding_, Chunk(values, from, size).size_bytes());
        return codec_->Decode(from == rank ? encoded_sum : bytes, Chunk(values, from, size), Codec::Onto::kReplace);
      });
}

std::span<const std::byte> CompressedAllReduce::Encode(int chunk, int count, std::span<const float> values) {
  std::vector<std::byte>& out = encoded_[static_cast<std::size_t>(chunk)];
  codec_->Encode(values, residual_.empty() ? residual_ : Chunk(residual_, chunk, count), out);
  return out;
}

Result<void> CompressedAllReduce::Restore(std::span<const float> residual) {
  if (residual.size() != residual_.size())
    return Error{Code::kInvalid, Str("codec ", codec_->name(), " for ", length_, " values: a residual of ",
                                     residual.size(), " floats was saved, expected ", residual_.size(),
                                     "; continue with the codec and model of the checkpoint")};
  residual_.assign(residual.begin(), residual.end());
  return {};
}

}  // namespace freshet::fabric
