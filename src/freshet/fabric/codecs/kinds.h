#pragma once

#include <memory>

#include "fabric/codecs/codec.h"

// The codecs. A new one is a file in codecs/, a line here and a line in the registry of codec.cc.
namespace freshet::fabric {

using CodecPtr = std::unique_ptr<Codec>;
CodecPtr MakeNone(const CodecOptions& options);
CodecPtr MakeFp16(const CodecOptions& options);
CodecPtr MakeBf16(const CodecOptions& options);
CodecPtr MakeInt8(const CodecOptions& options);
CodecPtr MakeOneBit(const CodecOptions& options);
CodecPtr MakeTopK(const CodecOptions& options);
CodecPtr MakeThreshold(const CodecOptions& options);

// How many values share a scale or a pair of means.
inline constexpr std::size_t kCodecGroup = 512;

// For forms whose size follows from the number of values: kCorrupt when `bytes` are not what `count` values take.
Result<void> ExpectBytes(std::string_view codec, std::size_t bytes, std::size_t wanted, std::size_t count);

}  // namespace freshet::fabric
