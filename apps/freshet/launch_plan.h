#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::cli {

// Where a worker is to run.
struct Seat {
  int rank = 0, node = 0;              // node: which of the hosts, from 0
  int local_rank = 0, local_size = 1;  // among those on its host
  std::string host;                    // as it was named
  bool here = true;                    // on this machine
};

// Seats for `workers` on hosts "a:4,user@b:2,c" (one seat when no number is given), filled in the order they are named.
// 0 workers: one for every seat. No hosts: all here. `machine` is the name of this one.
Result<std::vector<Seat>> MakeSeats(int workers, std::string_view hosts, const std::string& machine);

// Where rank 0 listens: on loopback when all are here, else on the first host, by a name that others can use too.
std::string MeetingHost(const std::vector<Seat>& seats, const std::string& machine);

// NAME=value for each variable by which a worker finds its place.
std::vector<std::string> PlaceOf(const Seat& seat, int size, const std::string& rendezvous, const std::string& job);

// One argument as a shell reads it.
std::string ShellQuoted(std::string_view text);

}  // namespace freshet::cli
