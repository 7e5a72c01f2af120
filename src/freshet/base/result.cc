#include "base/result.h"

namespace freshet {

std::string_view Name(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kBadInput:
      return "bad-input";
    case Code::kNotFound:
      return "not-found";
    case Code::kIo:
      return "io";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kBusy:
      return "busy";
    case Code::kTimeout:
      return "timeout";
    case Code::kPeerLost:
      return "peer-lost";
    case Code::kDiverged:
      return "diverged";
    case Code::kStopped:
      return "stopped";
  }
  return "unknown";
}

}  // namespace freshet
