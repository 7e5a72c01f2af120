#include "fabric/codecs/codec.h"

#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

// The registry: one line for each codec, which has one file of its own.
struct Entry {
  std::string_view name;
  CodecPtr (*make)(const CodecOptions& options);
};
constexpr Entry kRegistry[] = {
    {"none", MakeNone},   {"fp16", MakeFp16}, {"bf16", MakeBf16},           {"int8", MakeInt8},
    {"1bit", MakeOneBit}, {"topk", MakeTopK}, {"threshold", MakeThreshold},
};

}  // namespace

std::vector<std::string> Codec::Names() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

Result<std::unique_ptr<Codec>> Codec::Make(std::string_view name, const CodecOptions& options) {
  if (!(options.fraction > 0) || !(options.fraction <= 1))
    return Error{Code::kInvalid, Str("codec fraction ", options.fraction, ": expected more than 0 and at most 1")};
  if (!(options.threshold > 0))
    return Error{Code::kInvalid, Str("codec threshold ", options.threshold, ": expected more than 0")};
  for (const Entry& entry : kRegistry)
    if (entry.name == name) return entry.make(options);
  return Error{Code::kInvalid, Str("codec ", Quoted(name), ": expected one of ", Join(Names(), ", "))};
}

Result<void> ExpectBytes(std::string_view codec, std::size_t bytes, std::size_t wanted, std::size_t count) {
  if (bytes == wanted) return {};
  return Error{Code::kCorrupt, Str("codec ", codec, ": ", bytes, " bytes came for ", count, " values, which take ",
                                   wanted, "; do all members use the same codec and model?")};
}

}  // namespace freshet::fabric
