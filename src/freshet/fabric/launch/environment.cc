#include "fabric/launch/environment.h"

#include <charconv>
#include <optional>

#include "base/option.h"
#include "fabric/launch/environment_slurm.h"

namespace freshet::fabric {
namespace {

constexpr std::string_view kUnnamedJob = "freshet";
constexpr int kFirstPort = 20'000, kPorts = 12'000;

// The variables by which a launcher tells a process its place.
struct Family {
  const char *launcher, *rank, *size, *local_rank, *local_size;
};
constexpr Family kFamilies[] = {
    {"freshet", "FRESHET_RANK", "FRESHET_WORLD", "FRESHET_LOCAL_RANK", "FRESHET_LOCAL_WORLD"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};
constexpr Family kSlurm = {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                           "SLURM_STEP_TASKS_PER_NODE"};

// What one launcher said.
struct Found {
  Family family;
  Place place;
  bool knows_local = false;
};

// Reads variables; unset and empty are the same.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::string Text(const char* name) const {
    const char* const text = environment_(name);
    return text == nullptr ? "" : text;
  }
  Result<int> Number(const char* name) const {
    const std::string text = Text(name);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 0)
      return Error{Code::kInvalid, Str(name, ": found ", Quoted(text), ", expected a whole number from 0 up")};
    return number;
  }
  // A rank and the number of those it counts among; nothing when neither is set.
  Result<std::optional<std::pair<int, int>>> RankOf(const char* rank, const char* size) const {
    if (Text(rank).empty() && Text(size).empty()) return std::optional<std::pair<int, int>>();
    if (Text(rank).empty() || Text(size).empty())
      return Error{Code::kInvalid,
                   Str(Text(rank).empty() ? size : rank, " is set and ", Text(rank).empty() ? rank : size,
                       " is not: set both, or unset both to train alone")};
    const int number = TRY(Number(rank)), count = TRY(Number(size));
    if (number >= count)
      return Error{Code::kInvalid, Str(rank, "=", number, " and ", size, "=", count,
                                       " contradict each other: ranks count from 0 and stay below the size")};
    return std::optional(std::pair(number, count));
  }

 private:
  const Environment& environment_;
};

std::string At(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? Str(host, ":", port) : Str("[", host, "]:", port);
}

bool IsLoopback(const std::string& rendezvous) {
  return rendezvous.starts_with("127.") || rendezvous.starts_with("localhost:") || rendezvous.starts_with("[::1]:");
}

Result<void> ReadTorchrun(const Reader& reader, Place& place) {
  const std::string host = reader.Text("MASTER_ADDR");
  if (!host.empty()) {
    int port = reader.Text("MASTER_PORT").empty() ? 29'400 : TRY(reader.Number("MASTER_PORT"));
    // torchrun's own agent may be listening at the port; the next one is ours.
    if (reader.Text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++port;
    place.rendezvous = At(host, port);
  }
  const std::string id = reader.Text("TORCHELASTIC_RUN_ID");
  if (id != "none") place.job = id;
  if (!id.empty()) place.mark = "TORCHELASTIC_RUN_ID";
  return {};
}

Result<std::optional<Found>> ReadFamily(const Reader& reader, const Family& family) {
  const auto rank = TRY(reader.RankOf(family.rank, family.size));
  if (!rank) return std::optional<Found>();
  Found found{family, {.rank = rank->first, .size = rank->second, .launcher = family.launcher}};
  const std::string_view launcher = family.launcher;
  if (!reader.Text(family.local_size).empty()) {
    const auto local = TRY(reader.RankOf(family.local_rank, family.local_size));
    if (local->second > found.place.size)
      return Error{Code::kInvalid, Str(family.local_size, "=", local->second, " and ", family.size, "=",
                                       found.place.size, " contradict each other: a host has more workers than all")};
    found.place.local_rank = local->first, found.place.local_size = local->second;
    found.knows_local = true;
  }
  if (launcher == "torchrun") TRY(ReadTorchrun(reader, found.place));
  if (launcher == "openmpi") found.place.job = reader.Text("PMIX_NAMESPACE"), found.place.mark = family.rank;
  if (launcher == "hydra") found.place.job = reader.Text("PMI_JOBID"), found.place.mark = family.rank;
  return std::optional(found);
}

// Within a step only: a batch script sees the variables of tasks that nobody has started yet.
Result<std::optional<Found>> ReadSlurm(const Reader& reader) {
  if (reader.Text("SLURM_STEP_ID").empty()) return std::optional<Found>();
  Family family = kSlurm;
  if (reader.Text(family.size).empty()) family.size = "SLURM_NTASKS";
  const auto rank = TRY(reader.RankOf(family.rank, family.size));
  if (!rank) return std::optional<Found>();
  Found found{family, {.rank = rank->first, .size = rank->second, .launcher = family.launcher}};
  Place& place = found.place;
  place.mark = family.rank;
  place.job = Str(reader.Text("SLURM_JOB_ID"), ".", reader.Text("SLURM_STEP_ID"));
  if (const std::string nodes = reader.Text("SLURM_STEP_NODELIST"); !nodes.empty())
    place.rendezvous = At(TRY(ExpandNodes(nodes).While("reading SLURM_STEP_NODELIST"))[0], PortOf(place.job));
  if (const std::string tasks = reader.Text(family.local_size); !tasks.empty()) {
    const auto counts = TRY(ExpandCounts(tasks).While(Str("reading ", family.local_size)));
    const auto node = static_cast<std::size_t>(TRY(reader.Number("SLURM_NODEID")));
    place.local_rank = TRY(reader.Number(family.local_rank));
    if (node >= counts.size() || place.local_rank >= counts[node])
      return Error{Code::kInvalid, Str(family.local_size, "=", tasks, " and SLURM_NODEID=", node, ", ",
                                       family.local_rank, "=", place.local_rank, " contradict each other")};
    place.local_size = counts[node];
    found.knows_local = true;
  }
  return std::optional(found);
}

// Slurm often starts the agents of another launcher, one on each node, and those start the workers.
bool StartsAgents(const Reader& reader, const Found& slurm, const Found& inner) {
  const auto counts = ExpandCounts(reader.Text(kSlurm.local_size));
  return counts.ok() && counts.value().size() == static_cast<std::size_t>(slurm.place.size) &&
         inner.place.size > slurm.place.size;
}

Result<std::vector<Found>> ReadAll(const Reader& reader) {
  std::vector<Found> all;
  for (const Family& family : kFamilies)
    if (const auto found = TRY(ReadFamily(reader, family))) all.push_back(*found);
  if (const auto slurm = TRY(ReadSlurm(reader)))
    if (all.empty() || !StartsAgents(reader, *slurm, all[0])) all.push_back(*slurm);
  return all;
}

Error TwoSizes(const Found& a, const Found& b) {
  return Error{Code::kInvalid,
               Str(a.family.size, "=", a.place.size, " (", a.family.launcher, ") and ", b.family.size, "=",
                   b.place.size, " (", b.family.launcher,
                   ") contradict each other: unset the variables of the one that did not start this process")};
}

// The first launcher's word, and what others know besides.
Result<Found> Merge(const std::vector<Found>& all) {
  Found merged = all[0];
  for (const Found& other : all) {
    if (other.place.size != merged.place.size) return TwoSizes(merged, other);
    if (other.place.rank != merged.place.rank) continue;
    if (!merged.knows_local && other.knows_local) {
      merged.place.local_rank = other.place.local_rank, merged.place.local_size = other.place.local_size;
      merged.knows_local = true;
    }
    if (merged.place.rendezvous.empty()) merged.place.rendezvous = other.place.rendezvous;
    if (merged.place.job.empty()) merged.place.job = other.place.job;
  }
  return merged;
}

Result<Found> FoundByFlags(const PlaceFlags& flags) {
  if (flags.rank < 0 || flags.size < 1 || flags.rank >= flags.size)
    return Error{Code::kInvalid, Str(Option("rank"), " ", flags.rank, " and ", Option("world"), " ", flags.size,
                                     ": give both, the rank from 0 up and below the number of workers")};
  return Found{{}, {.rank = flags.rank, .size = flags.size, .launcher = "flags"}};
}

Result<Found> FoundInEnvironment(const Reader& reader) {
  const auto all = TRY(ReadAll(reader));
  if (!all.empty()) return Merge(all);
  if (const std::string rank = reader.Text("PMIX_RANK"); !rank.empty())
    return Error{Code::kInvalid, Str("PMIX_RANK=", rank, " is set, but nothing says how many workers there are: pass ",
                                     Option("rank"), " and ", Option("world"), ", or unset it to train alone")};
  return Found{};
}

// `any_port`: 0 will do.
Result<void> CheckRendezvous(const std::string& rendezvous, bool any_port) {
  const std::size_t colon = rendezvous.rfind(':');
  int port = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* const end = rendezvous.data() + rendezvous.size();
    const auto [stop, error] = std::from_chars(rendezvous.data() + colon + 1, end, port);
    if (error == std::errc{} && stop == end && port >= (any_port ? 0 : 1) && port < 65'536) return {};
  }
  if (port == 0 && rendezvous.ends_with(":0"))
    return Error{Code::kInvalid,
                 Str("rendezvous: found ", Quoted(rendezvous), ": port 0, any free one, is for rank 0 together with ",
                     Option("announce"), " FILE; give the others the address that it announces")};
  return Error{Code::kInvalid, Str("rendezvous: found ", Quoted(rendezvous),
                                   ", expected HOST:PORT where rank 0 listens, such as node1:29400")};
}

}  // namespace

Result<Place> FindPlace(const Environment& environment, const PlaceFlags& flags) {
  const Reader reader(environment);
  const bool by_flags = flags.rank >= 0 || flags.size != 0;
  Found found = TRY(by_flags ? FoundByFlags(flags) : FoundInEnvironment(reader));
  Place& place = found.place;
  for (const std::string& job : {reader.Text("FRESHET_JOB_ID"), flags.job})
    if (!job.empty()) place.job = job;
  for (const std::string& rendezvous : {reader.Text("FRESHET_RENDEZVOUS"), flags.rendezvous})
    if (!rendezvous.empty()) place.rendezvous = rendezvous;
  if (place.size == 1 || !flags.needs_rendezvous) return place;
  if (place.rendezvous.empty()) {
    if (!found.knows_local || !place.OnOneHost())
      return Error{Code::kInvalid, Str(place.launcher, " started ", place.size,
                                       " workers, perhaps on several hosts, and does not say where they meet: pass ",
                                       Option("rendezvous"), " HOST:PORT, a free port of rank 0's host")};
    place.rendezvous = At("127.0.0.1", PortOf(place.job));
  }
  TRY(CheckRendezvous(place.rendezvous, place.rank == 0 && flags.announces));
  if (!found.knows_local && IsLoopback(place.rendezvous)) place.local_rank = place.rank, place.local_size = place.size;
  if (place.job.empty()) place.job = kUnnamedJob;  // not by the address, which each may know by another name
  return place;
}

std::vector<std::string> PlaceVariables() {
  std::vector<std::string> names = {"FRESHET_RENDEZVOUS", "FRESHET_JOB_ID",      "MASTER_ADDR",
                                    "MASTER_PORT",        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE",
                                    "PMIX_RANK",          "PMIX_NAMESPACE",      "PMI_JOBID",
                                    "SLURM_STEP_ID",      "SLURM_NTASKS",        "SLURM_STEP_NODELIST",
                                    "SLURM_NODEID"};
  for (const Family& family : kFamilies)
    for (const char* const name : {family.rank, family.size, family.local_rank, family.local_size})
      names.emplace_back(name);
  for (const char* const name : {kSlurm.rank, kSlurm.size, kSlurm.local_rank, kSlurm.local_size})
    names.emplace_back(name);
  return names;
}

int PortOf(const std::string& job, int attempt) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same on every host
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return kFirstPort + static_cast<int>((hash + static_cast<std::uint64_t>(attempt)) % kPorts);
}

}  // namespace freshet::fabric
