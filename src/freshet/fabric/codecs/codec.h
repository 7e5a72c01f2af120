#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::fabric {

struct CodecOptions {
  double fraction =
      0.01;  // topk: the share of the values that travels, (0, 1]; threshold: the share that is expected to
  double threshold = 1e-3;  // threshold: values from this magnitude on travel, > 0
};

// A form in which floats travel, smaller than they are and mostly not quite what they were.
//
// With error feedback, what a form loses is kept in a residual and added to what is encoded next, so that over many
// steps everything arrives. A value that is not finite makes what is decoded not finite as well: no codec hides that
// training diverged.
//
//   none       as they are                                                                 32 bits a value
//   fp16       half precision; from 65520 on infinite                                      16
//   bf16       the upper half of each float                                                16
//   int8       a byte each and a scale for 512, with feedback                               8.06
//   1bit       a sign each and a mean for the positive and the negative of 512,
//              with feedback (Seide et al.)                                                 1.06
//   topk       the largest `fraction` of them, with feedback                               about 26 · fraction
//   threshold  those of magnitude `threshold` or more, with feedback                       as many as there are
//
// Numbers travel in the order of bytes of this machine; a group whose machines differ in that is refused by the fabric.
//
// Threads: Encode by one at a time; Decode by any.
class Codec {
 public:
  enum class Onto { kReplace, kAdd };

  static Result<std::unique_ptr<Codec>> Make(std::string_view name, const CodecOptions& options = {});
  static std::vector<std::string> Names();
  virtual ~Codec() = default;

  virtual std::string_view name() const = 0;
  virtual bool uses_residual() const = 0;

  // Replaces `out` by a form of values + residual and leaves in the residual what that form lost. An empty residual
  // means no feedback; codecs that use none leave it alone. Fewer than 2^32 values.
  virtual void Encode(std::span<const float> values, std::span<float> residual, std::vector<std::byte>& out) = 0;

  // Bytes that so many values take; where that depends on the values, what it is on the average when they are as likely
  // to travel here as there (threshold: CodecOptions::fraction of them).
  virtual std::size_t EncodedBytes(std::size_t count) const = 0;

  // Reads as many values as `into` holds. The bytes are a peer's: nothing in them is believed, and kCorrupt says what
  // does not fit. `into` is then in no particular state.
  virtual Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const = 0;
};

}  // namespace freshet::fabric
