#include "place_flags.h"

#include <algorithm>
#include <cstdlib>

#include "announce.h"
#include "fabric/tcp/tcp_fabric.h"
#include "launch_token.h"
#include "sibling.h"

namespace freshet::cli {

void PlaceFlags::Register(base::Settings& settings) {
  settings.Add("fabric", &fabric, "how processes exchange: tcp, or mpi for those that mpirun or srun started",
               {.value = "NAME", .choices = {"tcp", "mpi"}});
  settings.Add("rank", &rank,
               "of this process among several (else from the launcher: freshet launch, torchrun, MPI, Slurm)",
               {.value = "K", .least = -1});
  settings.Add("world", &world, "number of processes, with --rank", {.value = "N", .least = 0});
  settings.Add("rendezvous", &rendezvous,
               "where rank 0 listens, when the launcher does not say (rank 0: port 0 is any free one, see --announce)",
               {.value = "HOST:PORT"});
  settings.Add("announce", &announce, "rank 0 writes here where it listens, as HOST:PORT, once it does",
               {.value = "FILE|fd:N"});
  settings.Add("join-timeout", &join_timeout, "how long processes wait for each other at the start (tcp)",
               {.value = "S", .least = 1, .most = 86400});
  settings.Add("job", &job, "name of the job, the same for all its processes", {.value = "NAME"});
  settings.Add("token-file", &token_file, "32 secret bytes that members of the job share (mode 0600)",
               {.value = "FILE"});
  settings.Add("heartbeat", &heartbeat, "time between signs of life; a process silent for twelve is lost",
               {.value = "MS", .least = 10, .most = 60000});
  settings.Add("tls", &tls, "encrypt what travels between processes (TLS 1.3, keys from the token); in all or in none");
  settings.Add("shared-memory", &shared_memory, "processes of one host exchange large messages through shared memory");
}

Result<fabric::Place> PlaceFlags::FindPlace(const Door& door, int workers) const {
  const bool mpi = fabric == "mpi";
  if (mpi && tls)
    return Error{Code::kInvalid, "--tls goes with --fabric tcp: how MPI's bytes travel is the business of its network"};
  if (mpi && !door.extras.connect_mpi)
    return BecomeSibling("freshet-mpi", door.arguments, "--fabric mpi",
                         "install libopenmpi-dev (or libmpich-dev) and build again, or use --fabric tcp");
  const fabric::PlaceFlags flags{.rank = rank,
                                 .size = world,
                                 .rendezvous = rendezvous,
                                 .job = job,
                                 .announces = !announce.empty(),
                                 .needs_rendezvous = !mpi};
  const auto place = TRY(fabric::FindPlace([](const char* name) { return std::getenv(name); }, flags));
  if (place.size > 1 && workers > 0)
    return Error{Code::kInvalid, Str("--workers ", workers, " inside one of ", place.size, " processes started by ",
                                     place.launcher, "; leave it out: each process is a worker")};
  return place;
}

Result<fabric::TcpOptions> PlaceFlags::Tcp(const fabric::Place& place, const Door& door) const {
  const Token token = TRY(ReadToken(token_file, place, [](const char* name) { return std::getenv(name); }));
  fabric::TcpOptions options;
  options.rank = place.rank;
  options.size = place.size;
  options.rendezvous = place.rendezvous;
  options.job = place.job;
  std::copy(token.begin(), token.end(), options.token.begin());
  options.connect_timeout = std::chrono::seconds(join_timeout);
  options.heartbeat = std::chrono::milliseconds(heartbeat);
  options.shared_memory = shared_memory;
  options.tls = tls;
  options.stop = &door.stop;
  return options;
}

Result<std::unique_ptr<fabric::Fabric>> PlaceFlags::Connect(const fabric::Place& place, const Door& door) const {
  if (fabric == "mpi") return door.extras.connect_mpi(place, std::chrono::milliseconds(heartbeat));
  fabric::TcpOptions options = TRY(Tcp(place, door));
  if (place.rank == 0 && !announce.empty() && !announce.starts_with("fd:") && door.files.Exists(announce) &&
      !door.files.IsDevice(announce))
    TRY(door.files.Remove(announce));  // of an earlier run: nobody listens there
  if (place.rank == 0 && !announce.empty())
    options.listening = [&](int port) { return Announce(door.files, announce, place.rendezvous, port); };
  auto connected = fabric::TcpFabric::Connect(options, door.clock);
  if (!connected.ok()) TRY(door.GoOn());
  return std::unique_ptr<fabric::Fabric>(TRY(std::move(connected)));
}

}  // namespace freshet::cli
