#include "launch_plan.h"

#include <algorithm>
#include <charconv>

namespace freshet::cli {
namespace {

struct Host {
  std::string name;
  int slots = 1;
};

bool IsName(std::string_view name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@';
  };
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), allowed);
}

bool IsHere(std::string_view name, std::string_view machine) {
  return name == "localhost" || name == "127.0.0.1" || name == machine;
}

Result<std::vector<Host>> ParseHosts(std::string_view text) {
  std::vector<Host> hosts;
  for (const std::string_view part : Split(text, ',')) {
    const std::size_t colon = part.find(':');
    Host host{std::string(part.substr(0, colon))};
    bool good = IsName(host.name);
    if (colon != std::string_view::npos) {
      const auto [end, error] = std::from_chars(part.data() + colon + 1, part.data() + part.size(), host.slots);
      good = good && error == std::errc{} && end == part.data() + part.size() && host.slots > 0;
    }
    if (!good)
      return Error{Code::kInvalid, Str("--hosts: found ", Quoted(part),
                                       ", expected a name and how many workers it "
                                       "takes, such as node1:4 or me@node1:4")};
    if (std::any_of(hosts.begin(), hosts.end(), [&](const Host& other) { return other.name == host.name; }))
      return Error{Code::kInvalid, Str("--hosts: ", host.name, " is named twice; give it all its workers at once")};
    hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace

Result<std::vector<Seat>> MakeSeats(int workers, std::string_view hosts, const std::string& machine) {
  std::vector<Host> named = hosts.empty() ? std::vector{Host{"localhost", workers}} : TRY(ParseHosts(hosts));
  int slots = 0;
  for (const Host& host : named) slots += host.slots;
  if (slots == 0) return Error{Code::kInvalid, "say how many workers to start: -n 4, or where: -H node1:4,node2:4"};
  if (workers > slots)
    return Error{Code::kInvalid, Str("-n ", workers, ": the hosts of -H take ", slots,
                                     " workers; name more, or raise their numbers: HOST:WORKERS")};
  int left = workers == 0 ? slots : workers, rank = 0;
  std::vector<Seat> seats;
  for (std::size_t node = 0; node < named.size(); ++node) {
    const int count = std::min(left, named[node].slots);
    for (int local = 0; local < count; ++local)
      seats.push_back(
          {rank++, static_cast<int>(node), local, count, named[node].name, IsHere(named[node].name, machine)});
    left -= count;
  }
  return seats;
}

std::string MeetingHost(const std::vector<Seat>& seats, const std::string& machine) {
  if (std::all_of(seats.begin(), seats.end(), [](const Seat& seat) { return seat.here; })) return "127.0.0.1";
  if (seats[0].here) return machine;
  return seats[0].host.substr(seats[0].host.rfind('@') + 1);
}

std::vector<std::string> PlaceOf(const Seat& seat, int size, const std::string& rendezvous, const std::string& job) {
  return {Str("FRESHET_RANK=", seat.rank),
          Str("FRESHET_WORLD=", size),
          Str("FRESHET_LOCAL_RANK=", seat.local_rank),
          Str("FRESHET_LOCAL_WORLD=", seat.local_size),
          Str("FRESHET_NODE=", seat.node),
          Str("FRESHET_RENDEZVOUS=", rendezvous),
          Str("FRESHET_JOB_ID=", job)};
}

std::string ShellQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace freshet::cli
