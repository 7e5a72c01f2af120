#include "worker_flags.h"

#include <algorithm>
#include <cstdlib>

#include "announce.h"
#include "fabric/codec.h"
#include "fabric/tcp/tcp_fabric.h"
#include "launch_token.h"
#include "mpi_program.h"

namespace freshet::cli {

void WorkerFlags::Register(base::Settings& settings) {
  std::vector<std::string> codecs = fabric::Codec::Names();
  codecs.emplace_back("power");
  settings.Add("workers", &workers, "workers in this process, each with its share of the threads (0: one, alone)",
               {.letter = 'w', .value = "N", .least = 0, .most = 1024});
  settings.Add(
      "strategy", &strategy.kind,
      "how workers' updates meet (average, when neither this nor --batch is given, for models that learn row by "
      "row: linear, fm, factorization)",
      {.value = "NAME", .choices = strategy::Strategy::Kinds()});
  settings.Add("topology", &topology, "how sums travel", {.value = "NAME", .choices = fabric::AlgorithmNames()});
  settings.Add("calibrate", &calibrate,
               "topology auto: by measurements made at the start (a resumed run keeps what it had), not a fixed table");
  settings.Add("algorithm-table", &algorithm_table, "topology auto: what goes how from which size on, in bytes",
               {.value = "\"0 tree, 65536 ring\""});
  settings.Add("batch-per-worker", &batch_per_worker, "--batch is of each worker, not of all together");
  settings.Add("scale-rate", &scale_rate, "linear: the rate times the number of workers, reached by a warm-up",
               {.value = "HOW", .choices = {"none", "linear"}});
  settings.Add("split", &split,
               "rows: all workers read everything and take their share of each batch, as one worker would have it; "
               "bytes: each reads its own part of the files (once more, before training, where names or moments are "
               "to be learned); own: what each process is given is its share, {rank} in a path being its rank",
               {.value = "HOW", .choices = {"auto", "rows", "bytes", "own"}});
  settings.Add("codec", &strategy.codec, "form in which gradients travel", {.value = "NAME", .choices = codecs});
  settings.Add("top", &strategy.top, "topk: share of values that travel; threshold: least size of those",
               {.value = "X", .least = 0});
  settings.Add("power-rank", &strategy.power_rank, "columns of the factors of codec power",
               {.value = "N", .least = 1, .most = 1024});
  settings.Add("layer-factors", &strategy.factors,
               "dense layers travel as inputs and deltas where that is fewer bytes");
  settings.Add("overlap", &strategy.overlap, "exchange what is finished while the rest is computed");
  settings.Add("bucket", &strategy.bucket_bytes, "gradients travel in buckets of at most about so many bytes",
               {.value = "BYTES", .least = 1});
  settings.Add("accumulate", &strategy.accumulate, "parts in which a worker computes its share of an update",
               {.value = "N", .least = 1});
  settings.Add("batch-norm", &strategy.batch_norm,
               "statistics of batch norm: of all workers' rows together, or local to each worker",
               {.value = "HOW", .choices = {"together", "local"}});
  settings.Add("every", &strategy.every,
               "average, groups: updates between two averages (if not given, of single rows: 256, factorization 16384)",
               {.value = "N", .least = 1});
  settings.Add("average-state", &strategy.average_state, "average what the optimizer remembers, too");
  settings.Add("block-momentum", &strategy.block_momentum, "momentum of the averages",
               {.value = "X", .least = 0, .most = 1});
  settings.Add("warm-start", &strategy.warm_start, "updates by plain all-reduce before averaging or compression begins",
               {.value = "N"});
  settings.Add("group", &strategy.group, "groups: workers of a group", {.value = "N", .least = 1});
  RegisterPlace(settings);
}

void WorkerFlags::RegisterPlace(base::Settings& settings) {
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

Result<fabric::Place> WorkerFlags::FindPlace(const Door& door) {
  const bool mpi = fabric == "mpi";
  if (mpi && tls)
    return Error{Code::kInvalid, "--tls goes with --fabric tcp: how MPI's bytes travel is the business of its network"};
  if (mpi && !door.connect_mpi) return BecomeMpiProgram(door.arguments);
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
  count = std::max(place.size, std::max(workers, 1));
  return place;
}

std::uint64_t WorkerFlags::GlobalBatch(std::uint64_t batch) const {
  return batch_per_worker ? batch * static_cast<std::uint64_t>(count) : batch;
}

Result<std::unique_ptr<fabric::Fabric>> WorkerFlags::Connect(const fabric::Place& place, const Door& door) const {
  if (fabric == "mpi") return door.connect_mpi(place, std::chrono::milliseconds(heartbeat));
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
  if (place.rank == 0 && !announce.empty() && !announce.starts_with("fd:") && door.files.Exists(announce) &&
      !door.files.IsDevice(announce))
    TRY(door.files.Remove(announce));  // of an earlier run: nobody listens there
  if (place.rank == 0 && !announce.empty())
    options.listening = [&](int port) { return Announce(door.files, announce, place.rendezvous, port); };
  auto connected = fabric::TcpFabric::Connect(options, door.clock);
  if (!connected.ok()) TRY(door.GoOn());
  return std::unique_ptr<fabric::Fabric>(TRY(std::move(connected)));
}

Result<fabric::Collectives::Options> WorkerFlags::Collectives() const {
  fabric::Collectives::Options options;
  options.algorithm = TRY(fabric::AlgorithmOf(topology));
  if (options.algorithm != fabric::Algorithm::kAuto && (calibrate || !algorithm_table.empty()))
    return Error{Code::kInvalid,
                 Str(calibrate ? "--calibrate" : "--algorithm-table", " chooses for --topology auto; --topology ",
                     topology, " leaves nothing to choose")};
  if (!algorithm_table.empty())
    TRY(fabric::AlgorithmTable::FromText(algorithm_table).While("reading --algorithm-table"));
  return options;
}

}  // namespace freshet::cli
