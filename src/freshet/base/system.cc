#include "base/system.h"

#include "base/cores.h"

namespace freshet::base {

System::System(Log::Sink sink, int threads)
    : log_(clock_, std::move(sink), Level::kWarn), pool_(threads > 0 ? threads : AvailableCores(), &clock_) {}

}  // namespace freshet::base
