#include "train/together.h"

#include <algorithm>
#include <charconv>

#include "base/option.h"
#include "fabric/codecs/codec.h"

namespace freshet::train {

void Together::Register(base::Settings& settings) {
  settings.Add("workers", &workers, "workers in this process, each with its share of the threads (0: one, alone)",
               {.letter = 'w', .value = "N", .least = 0, .most = 1024});
  settings.Add(
      "elastic", &elastic,
      "processes may come and go while they train: who is lost is done without, as long as MIN are left, and who "
      "comes is let in up to MAX (not slices, hybrid, modules, scheduled)",
      {.value = "MIN:MAX"});
  settings.Add(
      "elastic-wait", &elastic_wait,
      "elastic: seconds for which fewer than MIN wait for others to come, before they keep a checkpoint and stop",
      {.value = "S", .least = 0, .most = 86'400});
  settings.Add("evict", &evict,
               "elastic: a worker that takes more than X times as long as the others is left out; it may come back",
               {.value = "X", .least = 0, .most = 1e6});
  settings.Add("evict-after", &evict_after, "seconds for which it has to be that slow",
               {.value = "S", .least = 0, .most = 86'400});
  settings.Add(
      "copy-every", &copy_every,
      "elastic with a codec: steps after which each worker copies what it has not sent yet to the next; 0: never. Of a "
      "ring: its part of the model",
      {.value = "N"});
  settings.Add("calibrate", &calibrate,
               "topology auto: by measurements made at the start (a resumed run keeps what it had), not a fixed table");
  settings.Add("algorithm-table", &algorithm_table, "topology auto: what goes how from which size on, in bytes",
               {.value = "\"0 tree, 65536 ring\""});
  settings.Add("batch-per-worker", &batch_per_worker, Str(Option("batch"), " is of each worker, not of all together"));
  settings.Add("scale-rate", &scale_rate, "linear: the rate times the number of workers, reached by a warm-up",
               {.value = "HOW", .choices = {"none", "linear"}});
  settings.Add("split", &split,
               "rows: all workers read everything and take their share of each batch, as one worker would have it; "
               "bytes: each reads its own part of the files (once more, before training, where names or moments are "
               "to be learned); own: what each process is given is its share, {rank} in a path being its rank",
               {.value = "HOW", .choices = {"auto", "rows", "bytes", "own"}});
  settings.Add("order", &descent.order,
               "scheduled: which coordinates come next: recent (those that changed most of late), random (whatever "
               "they depend on; of linear models no more than one in a round is safe)",
               {.value = "HOW", .choices = {"recent", "random"}});
  settings.Add("coordinates", &descent.coordinates,
               "scheduled: coordinates of a round, of all workers together (0: 16; factorization: one of each of an "
               "eighth of the users, or of the items)",
               {.value = "N", .least = 0});
  settings.Add(
      "rho", &descent.rho,
      "scheduled: coordinates that are correlated by more than this are not updated in the same round (linear)",
      {.value = "X", .least = 0, .most = 1});
  std::vector<std::string> strategies = strategy::Strategy::Kinds();
  strategies.insert(strategies.end(), {"scheduled", "auto"});  // of which one makes no steps, and one is chosen
  RegisterExchange(settings, std::move(strategies));
  RegisterServers(settings);
}

void Together::RegisterServers(base::Settings& settings) {
  settings.Add(
      "servers", &strategy.servers,
      "server: so many members, the last ones, have the parameters and read no rows (0: every worker serves, too; of "
      "groups, every leader)",
      {.value = "N", .least = 0, .most = 4096});
}

void Together::RegisterExchange(base::Settings& settings, std::vector<std::string> strategies) {
  std::vector<std::string> codecs = fabric::Codec::Names();
  codecs.emplace_back("power");
  settings.Add("strategy", &strategy.kind,
               Str("how workers' updates meet (average, when neither this nor ", Option("batch"),
                   " is given, for models that learn row by row: linear, fm, factorization)",
                   strategies == strategy::Strategy::Kinds()
                       ? ""
                       : "; auto: all-reduce by the topology and in the buckets that are fastest for this model and "
                         "group, by measurements and simulation at the start; scheduled: descent by coordinates, of "
                         "linear models and factorization; lbfgs: allreduce, or server, which divides its history "
                         "among the workers"),
               {.value = "NAME", .choices = std::move(strategies)});
  settings.Add("topology", &topology, "how sums travel", {.value = "NAME", .choices = fabric::AlgorithmNames()});
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
  settings.Add(
      "backup", &strategy.backup,
      "all-reduce, server in bulk: an update does not wait for the N slowest workers; the others do their rows",
      {.value = "N", .least = 0, .most = 1024});
  settings.Add(
      "lossy", &strategy.lossy,
      "average, groups with elastic: what a lost worker had learned since the last mean is given up and counted, "
      "not done again");
  settings.Add(
      "exact", &strategy.exact,
      "all-reduce: sums by blocks of rows, so that any number of workers, whoever comes and goes, makes the same "
      "model, bit for bit");
  settings.Add("exact-blocks", &strategy.exact_blocks,
               "exact: blocks of an update's rows; a power of two, at least as many as workers",
               {.value = "N", .least = 1, .most = 4096});
  settings.Add("every", &strategy.every,
               "average, groups, gossip: updates between two averages or letters (if not given, of single rows: 256, "
               "factorization 16384)",
               {.value = "N", .least = 1});
  settings.Add("average-state", &strategy.average_state, "average what the optimizer remembers, too");
  settings.Add("block-momentum", &strategy.block_momentum, "momentum of the averages",
               {.value = "X", .least = 0, .most = 1});
  settings.Add("warm-start", &strategy.warm_start, "updates by plain all-reduce before averaging or compression begins",
               {.value = "N"});
  settings.Add("gossip", &strategy.gossip,
               "gossip: two take their mean, or one gives half of its weight to another, or models walk about",
               {.value = "HOW", .choices = {"pairs", "push-sum", "walk"}});
  settings.Add("neighbours", &strategy.neighbours,
               "gossip: whom a worker may write to: ring, random, exponential, or pairs of ranks as 0-1,1-2,2-0 (with "
               "elastic of as many as there may be)",
               {.value = "GRAPH"});
  settings.Add(
      "replicas", &strategy.replicas,
      "server, with --elastic: members that have each part of the parameters, of which all but one may be lost "
      "at a time",
      {.value = "N", .least = 1, .most = 64});
  settings.Add("synchrony", &strategy.synchrony,
               "server (and groups, which then meet through one): how far workers may drift apart: bsp (not at all), "
               "ssp:S (S updates), asp:V (rows that would move "
               "by less than V of their length are held back, and what is read is read ahead), bap (nobody waits)",
               {.value = "MODE"});
  settings.Add("fetch-every", &strategy.fetch_every, "server, not bsp: steps for which a worker uses what it has read",
               {.value = "N", .least = 1});
  settings.Add("push-every", &strategy.push_every, "server, not bsp: steps whose gradients a worker pushes together",
               {.value = "N", .least = 1});
  settings.Add(
      "large-model", &strategy.large,
      Str("server, ring, modules: the model is larger than memory: servers keep their rows alone, workers those of "
          "their batches, others their part; all of it lies in files in ",
          Option("scratch"), " when they meet"));
  settings.Add("slower-when-stale", &strategy.slower_when_stale,
               "server, not bsp: an update counts the less, the more others came before it since its worker read");
  settings.Add(
      "slice-all", &strategy.slice_all,
      "slices, hybrid: cut every fully connected layer, also where the gradient of its weights would be fewer bytes");
  settings.Add("group", &strategy.group, "groups, hybrid: workers of a group", {.value = "N", .least = 1});
  settings.Add(
      "pipeline", &strategy.pipeline,
      "ring, of networks, and modules: order of a step: flush (all forward, then all backward), 1f1b (backward as soon "
      "as "
      "possible), interleaved (the same with several stages for each worker), stash (1f1b that does not run empty "
      "between updates: gradients are of weights one update older)",
      {.value = "NAME", .choices = {"flush", "1f1b", "interleaved", "stash"}});
  settings.Add(
      "micro", &strategy.micro,
      "ring, of networks, and modules: micro-batches of an update (0: four for each worker, of at least four rows)",
      {.value = "N"});
  settings.Add("stages", &strategy.stages,
               "ring, of networks: stages that each worker holds (0: 1, interleaved 2); the way goes round the ring as "
               "often",
               {.value = "N", .least = 0, .most = 64});
  settings.Add(
      "recompute", &strategy.recompute,
      "ring, of networks, and modules: activations of a stage are computed again in place of being kept, which "
      "takes a third longer and the memory of one micro-batch");
  settings.Add(
      "balance", &strategy.balance,
      "ring: layers of networks, or columns, move between neighbours by the time they are measured to take; what is "
      "learned then differs in the last digits from run to run");
}

Result<Together::Bounds> Together::ElasticBounds() const {
  Bounds bounds;
  const std::size_t colon = elastic.find(':');
  const auto number = [](std::string_view text, int& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc{} && end == text.data() + text.size() && to >= 1 && to <= 4096;
  };
  const std::string_view text = elastic;
  if (colon == std::string::npos || !number(text.substr(0, colon), bounds.least) ||
      !number(text.substr(colon + 1), bounds.most) || bounds.least > bounds.most)
    return Error{Code::kInvalid, Str(Option("elastic"), ": found ", Quoted(elastic),
                                     ", expected MIN:MAX, the numbers of workers between which it may go on, as 2:8")};
  return bounds;
}

int Together::MostWorkers(int begin) const {
  const auto bounds = elastic.empty() ? Result<Bounds>(Bounds{.most = begin}) : ElasticBounds();
  return bounds.ok() ? std::max(bounds.value().most, begin) : begin;
}

Result<fabric::Collectives::Options> Together::Collectives() const {
  fabric::Collectives::Options options;
  options.algorithm = TRY(fabric::AlgorithmOf(topology));
  if (options.algorithm != fabric::Algorithm::kAuto && (calibrate || !algorithm_table.empty()))
    return Error{Code::kInvalid,
                 Str(Option(calibrate ? "calibrate" : "algorithm-table"), " chooses for ", Option("topology"),
                     " auto; ", Option("topology"), " ", topology, " leaves nothing to choose")};
  if (!algorithm_table.empty())
    TRY(fabric::AlgorithmTable::FromText(algorithm_table).While(Str("reading ", Option("algorithm-table"))));
  return options;
}

}  // namespace freshet::train
