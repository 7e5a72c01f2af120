#include "strategy/ring/packing.h"

namespace freshet::strategy::ring {

std::size_t Packing::Take() {
  if (free_.empty()) {
    parcels_.emplace_back();
    return parcels_.size() - 1;
  }
  const std::size_t parcel = free_.back();
  free_.pop_back();
  return parcel;
}

std::size_t Packing::Pack(std::span<const float> values) {
  const std::size_t parcel = Take();
  codec_->Encode(values, {}, parcels_[parcel].bytes);
  return parcel;
}

std::size_t Packing::Expect(std::span<float> into) {
  const std::size_t parcel = Take();
  parcels_[parcel].bytes.resize(codec_->EncodedBytes(into.size()));
  parcels_[parcel].into = into;
  return parcel;
}

Result<void> Packing::Release(std::size_t parcel) {
  Parcel& one = parcels_[parcel];
  free_.push_back(parcel);
  const std::span<float> into = std::exchange(one.into, {});
  if (into.empty()) return {};
  return codec_->Decode(one.bytes, into, fabric::Codec::Onto::kReplace);
}

}  // namespace freshet::strategy::ring
