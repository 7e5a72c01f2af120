#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/codecs/codec.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

// The sum over all members of a buffer of floats, every byte of which travels in a codec's form. Sums do not stay in
// such a form, so chunk r of the buffer has an owner, rank r: each member sends it that chunk encoded; the owner
// decodes and adds up, its own share unencoded, in the order of ranks, encodes the sum and sends it to all. Everyone,
// the owner too, ends with what these bytes decode to: the same bits everywhere. Each member sends 2 (n-1)/n of the
// encoded buffer, as a ring would of the plain one. With the codec "none" it is an exact all-reduce in the order of
// ranks.
//
// What the codec lost stays here, in one residual as long as the buffer: in other members' chunks what was lost of this
// member's share, in its own chunk what was lost of the sum. Either is an amount still to be delivered, so the residual
// stays right when ranks and sizes change; a member that leaves takes its own with it. It is part of a checkpoint.
//
// A group of one exchanges nothing and loses nothing: the values (and what is left in the residual) stay exact.
//
// Threads:  one at a time; Collectives::Start may run it on the fabric's.
// Blocking: as ExchangeInOrder.
// Failure:  the fabric's, or kCorrupt for bytes that are no encoding of a chunk. The fabric is then aborted, the values
//           are in no particular state, and the residual may hold part of them: restore it with the rest of the
//           checkpoint, or Clear it.
class CompressedAllReduce {
 public:
  static constexpr Tag kTags = 2;  // how many it uses, from the given one on

  // `hollow`: only the size of the values is of interest (base/hollow.h), and so only as much is sent.
  CompressedAllReduce(std::unique_ptr<Codec> codec, std::size_t length, bool hollow = false);

  // values.size() is `length`, on every member.
  Result<void> Run(Fabric& fabric, Tag tag, std::span<float> values);

  const Codec& codec() const { return *codec_; }
  std::size_t length() const { return length_; }

  // Empty if the codec uses none, else one for each value.
  std::span<const float> residual() const { return residual_; }
  Result<void> Restore(std::span<const float> residual);
  void Clear() { residual_.assign(residual_.size(), 0.0f); }

  // What was sent to others so far, without the fabric's headers.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  Result<void> RunHollow(Fabric& fabric, Tag tag);
  std::span<const std::byte> Encode(int chunk, int count, std::span<const float> values);

  const std::unique_ptr<Codec> codec_;
  const std::size_t length_;
  const bool hollow_;
  const std::string encoding_, decoding_;  // what that work is called
  std::vector<float> residual_;
  std::uint64_t bytes_sent_ = 0;
  std::vector<float> sum_;                       // of the owned chunk
  std::vector<std::vector<std::byte>> encoded_;  // by chunk
};

}  // namespace freshet::fabric
