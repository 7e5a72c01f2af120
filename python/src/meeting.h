#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "fabric/tcp/options.h"

namespace freshet::python {

// How a process meets the others that train one model, from a freshet.Place; nothing for None. What the place announces
// with is called with the interpreter's lock, from the thread that meets; its exceptions end the meeting.
std::optional<fabric::TcpOptions> MeetingOf(nanobind::handle place);

// Blocks until all have come, or *stop. Without the interpreter's lock; the place outlives the call.
Result<std::unique_ptr<fabric::Fabric>> Meet(fabric::TcpOptions options, const std::atomic<bool>& stop,
                                             base::Clock& clock);

}  // namespace freshet::python
