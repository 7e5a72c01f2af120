#include "base/version.h"

namespace freshet {

std::string_view Version() { return FRESHET_VERSION; }

}  // namespace freshet
