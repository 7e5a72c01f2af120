#pragma once

#include <string>

#include "base/settings.h"
#include "fabric/launch/environment.h"
#include "fabric/tcp/options.h"
#include "verb.h"

namespace freshet::cli {

// The flags about one process among several that work together.
struct PlaceFlags {
  int heartbeat = 250, join_timeout = 30;
  bool shared_memory = true, tls = false;
  std::string fabric = "tcp", rendezvous, announce, job, token_file;
  int rank = -1, world = 0;

  void Register(base::Settings& settings);
  // This process's place among several, by flags or the launcher's variables; `workers` are those that were asked for
  // within it. With --fabric mpi the process may become another program, so nothing may have been begun.
  Result<fabric::Place> FindPlace(const Door& door, int workers) const;
  // How processes meet over TCP, less where.
  Result<fabric::TcpOptions> Tcp(const fabric::Place& place, const Door& door) const;
  // Meets the other processes, having announced where, if that is asked for.
  Result<std::unique_ptr<fabric::Fabric>> Connect(const fabric::Place& place, const Door& door) const;
};

}  // namespace freshet::cli
