#include "strategy/make_codec.h"

namespace freshet::strategy {

Result<std::unique_ptr<fabric::Codec>> MakeCodec(const StrategyOptions& options) {
  fabric::CodecOptions how;
  (options.codec == "threshold" ? how.threshold : how.fraction) = options.top;
  return fabric::Codec::Make(options.codec, how);
}

}  // namespace freshet::strategy
