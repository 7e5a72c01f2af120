#include "meeting.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>

#include "attend.h"
#include "base/str.h"
#include "fabric/tcp/tcp_fabric.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

base::Clock::Duration SecondsOf(nb::handle place, const char* name) {
  return std::chrono::duration_cast<base::Clock::Duration>(
      std::chrono::duration<double>(nb::cast<double>(place.attr(name))));
}

// Tells Python where rank 0 listens: the host of the rendezvous, with the port that was found.
std::function<Result<void>(int)> Announcing(nb::handle announce, const std::string& rendezvous) {
  return [announce, host = rendezvous.substr(0, rendezvous.rfind(':'))](int port) -> Result<void> {
    const nb::gil_scoped_acquire held;
    try {
      announce(nb::cast(Str(host, ":", port)));
    } catch (nb::python_error& problem) {
      return Error{Code::kIo, Str("announcing where workers meet: ", problem.what())};
    }
    return {};
  };
}

}  // namespace

std::optional<fabric::TcpOptions> MeetingOf(nb::handle place) {
  if (place.is_none()) return std::nullopt;
  fabric::TcpOptions options;
  options.rank = nb::cast<int>(place.attr("rank"));
  options.size = nb::cast<int>(place.attr("world"));
  options.rendezvous = nb::cast<std::string>(place.attr("rendezvous"));
  options.job = nb::cast<std::string>(place.attr("job"));
  const auto token = nb::cast<nb::bytes>(place.attr("token"));
  if (token.size() != options.token.size())
    Raise({Code::kInvalid, Str("a token of ", token.size(), " bytes, expected ", options.token.size(),
                               ": secrets.token_bytes(", options.token.size(), "), the same for all")});
  std::copy_n(static_cast<const std::byte*>(token.data()), token.size(), options.token.begin());
  options.connect_timeout = SecondsOf(place, "join_timeout");
  options.heartbeat = SecondsOf(place, "heartbeat");
  options.tls = nb::cast<bool>(place.attr("tls"));
  const nb::handle announce = place.attr("announce");
  if (options.rank == 0 && !announce.is_none()) options.listening = Announcing(announce, options.rendezvous);
  return options;
}

Result<std::unique_ptr<fabric::Fabric>> Meet(fabric::TcpOptions options, const std::atomic<bool>& stop,
                                             base::Clock& clock) {
  options.stop = &stop;
  auto connected = fabric::TcpFabric::Connect(options, clock);
  if (!connected.ok() && stop) return Error{Code::kStopped, "stopped while waiting for the others"};
  return std::unique_ptr<fabric::Fabric>(TRY(std::move(connected)));
}

}  // namespace freshet::python
