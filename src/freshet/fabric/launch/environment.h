#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace freshet::fabric {

// A worker's place among those that were started together.
struct Place {
  int rank = 0, size = 1;              // among all
  int local_rank = 0, local_size = 1;  // among those on this host, as far as the launcher tells
  std::string launcher = "single";     // flags, freshet, torchrun, openmpi, hydra, slurm or single
  std::string rendezvous = {};         // HOST:PORT where rank 0 listens; may be empty when size is 1
  std::string job = {};                // the same for all workers of a job; may be empty when size is 1
  // A variable that the launcher set for what it started and does not have itself; empty when the variables may have
  // been set by hand, or it ends its workers by its own means (freshet launch).
  std::string mark = {};

  bool OnOneHost() const { return local_size == size; }
};

// What a user said about it; each part wins over what the environment says.
struct PlaceFlags {
  int rank = -1, size = 0;  // given together
  std::string rendezvous = {}, job = {};
  bool announces = false;        // rank 0 will tell where it listens: its port may be 0, any free one
  bool needs_rendezvous = true;  // false where workers find each other without (MPI)
};

// A variable of the environment, or nullptr: std::getenv at the door, a map in tests.
using Environment = std::function<const char*(const char* name)>;

// Finds this process's place: from the flags, else from the variables of the first launcher that set any, in the order
// FRESHET_*, torchrun, Open MPI, Hydra (MPICH, Intel MPI), Slurm; else it is alone. What the first does not tell is
// taken from a later one that gives the same rank and size. docs/distributed.md lists the variables.
//
// Threads: any. Blocking: never.
// Failure: kInvalid that names the variables: no numbers, a rank without a size, a rank not below the size, two
//          launchers with different sizes, or no address to meet at.
Result<Place> FindPlace(const Environment& environment, const PlaceFlags& flags);

// All variables FindPlace looks at. Who starts workers under another launcher removes them first.
std::vector<std::string> PlaceVariables();

// The port where the workers of a job meet when nobody chose one: below those that systems give to outgoing
// connections, which could otherwise be in use, or meet themselves. `attempt` leads to others.
int PortOf(const std::string& job, int attempt = 0);

}  // namespace freshet::fabric
