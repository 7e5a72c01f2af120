// freshet agent and freshet join: a process between a launcher and a worker that may come and go. It is what the launcher
// sees, tells the other workers how its own ended, and starts it again.

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ask.h"
#include "held_signals.h"
#include "launch_crew.h"
#include "launcher_watch.h"
#include "witness.h"

extern char** environ;

namespace freshet::cli {
namespace {

struct Flags {
  int restarts = 3;
  double frozen = 4;
  AskFlags ask;

  void Register(base::Settings& settings) {
    settings.Group("Watching");
    settings.Add("restarts", &restarts, "how often a worker that was killed is started again",
                 {.value = "N", .least = 0});
    settings.Add("frozen", &frozen, "seconds after which a worker that is frozen (SIGSTOP) is killed; 0: never",
                 {.value = "S", .least = 0, .most = 86'400});
  }
};

std::optional<std::string> ValueOf(const std::string& flag, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size()) return arguments[i + 1];
    if (arguments[i].starts_with(flag + "=")) return arguments[i].substr(flag.size() + 1);
  }
  return std::nullopt;
}

// A worker with this environment beside our own.
Result<std::unique_ptr<Worker>> StartWorker(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment) {
  WorkerStart start;
  start.out = start.err = WorkerStart::Output::kInherit;
  start.arguments = {"freshet"};
  start.arguments.insert(start.arguments.end(), arguments.begin(), arguments.end());
  start.environment = environment;  // the first of two is the one that counts
  for (char** variable = environ; *variable != nullptr; ++variable) start.environment.emplace_back(*variable);
  start.testifies = true;
  return Worker::Start(start);
}

// Does somebody train on, of a job that has left this worker out, or from which it was cut off?
bool GoesOn(Door& door, const Token& token, const std::string& job, const std::vector<std::string>& others) {
  if (others.empty()) return false;
  const auto asker = Asker::Open(token, job, others[0], door);
  return asker.ok() && asker.value()->AskAny(others, std::chrono::seconds(2)).ok();
}

Result<void> Watch(Door& door, const Flags& flags, const Token& token, const std::string& job,
                   const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  const auto witness = TRY(Witness::Open(token, job, door.clock));
  HeldSignals signals(door);
  Crew* running = nullptr;
  int restarts = flags.restarts;
  bool missed = false;
  Crew::Options how{.frozen =
                        std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(flags.frozen))};
  how.goes_on = [&](Worker& ended) {
    if (!witness->Tell(ended)) return false;
    missed = ended.signal() != 0 && !witness->others().empty();
    if (!witness->MayComeBack(ended) || restarts-- <= 0) return true;
    std::vector<std::string> again = {Str("FRESHET_JOIN=", Join(witness->others(), ","))};
    again.insert(again.end(), environment.begin(), environment.end());
    if (auto next = StartWorker(arguments, again); next.ok()) running->Add(std::move(next).value());
    return true;
  };
  how.begins_again = [&](const Ended& ended) {
    if (!witness->NeverBegan(ended) || restarts-- <= 0) return false;
    door.log.Warn("worker lost before all had met", "how", ended.Text(), "it", "begins again");
    return true;
  };
  Crew::Outcome outcome{.again = true};
  while (outcome.again) {
    Crew crew(door.clock, how);
    running = &crew;
    crew.Add(TRY(StartWorker(arguments, environment)));
    outcome = crew.Run([&] { return signals.Next(); });
  }
  // A launcher such as mpirun ends all when one fails: who is done without has not failed the job.
  if (outcome.code == kPeerLost && outcome.stopped_by == 0) missed = GoesOn(door, token, job, witness->others());
  if (missed && outcome.code != 0 && outcome.stopped_by == 0) {
    door.log.Warn("worker lost", "how", outcome.cause ? outcome.cause->Text() : "", "others", "go on");
    return {};
  }
  door.exit_code = outcome.code;
  return {};
}

Result<std::vector<std::string>> Behind(const std::vector<std::string>& arguments, const char* verb) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end() || dashes + 1 == arguments.end())
    return Error{Code::kInvalid,
                 Str("say what the worker does, after --: freshet ", verb, " … -- train a.svm --elastic 2:8")};
  return std::vector<std::string>(dashes + 1, arguments.end());
}

Result<void> RunAgent(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, {arguments.begin(), dashes}, settings))) return {};
  const auto worker = TRY(Behind(arguments, "agent"));
  if (!ValueOf("--elastic", worker))
    return Error{Code::kInvalid, "an agent is for workers that may come and go: give train --elastic MIN:MAX"};
  const auto environment = [](const char* name) { return std::getenv(name); };
  fabric::PlaceFlags place_flags;
  place_flags.job = ValueOf("--job", worker).value_or("");
  place_flags.rendezvous = ValueOf("--rendezvous", worker).value_or("");
  if (const auto rank = ValueOf("--rank", worker)) place_flags.rank = std::atoi(rank->c_str());
  if (const auto world = ValueOf("--world", worker)) place_flags.size = std::atoi(world->c_str());
  const fabric::Place place = TRY(fabric::FindPlace(environment, place_flags));
  const Token token = TRY(ReadToken(ValueOf("--token-file", worker).value_or(""), place, environment));
  const LauncherWatch launcher(place.mark);
  return Watch(door, flags, token, place.job, worker, {});
}

// Asks how the job began, and starts a worker that finds itself told so.
Result<void> RunJoin(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Flags flags;
  base::Settings settings;
  flags.ask.Register(settings);
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, {arguments.begin(), dashes}, settings))) return {};
  const auto worker = TRY(Behind(arguments, "join"));
  auto asked = TRY(Asker::Open(flags.ask, door));
  const auto found = nlohmann::json::parse(TRY(asked->Ask(flags.ask.address)), nullptr, false);
  if (!found.is_object() || !found.contains("began_with") || !found.contains("members"))
    return Error{Code::kCorrupt, Str(flags.ask.address, " gave no answer that could be read")};
  std::vector<std::string> others, arguments_of_worker = worker;
  for (const auto& member : found["members"]) others.push_back(member.value("address", ""));
  if (!ValueOf("--elastic", worker))
    arguments_of_worker.insert(arguments_of_worker.end(),
                               {"--elastic", Str(found.value("least", 1), ":", found.value("most", 1))});
  if (!flags.ask.token_file.empty())
    arguments_of_worker.insert(arguments_of_worker.end(), {"--token-file", flags.ask.token_file});
  const std::string workers = Str(found["began_with"].get<int>());
  return Watch(door, flags, asked->token(), flags.ask.job, arguments_of_worker,
               {Str("FRESHET_JOIN=", Join(others, ",")), "FRESHET_NAME=a worker", "FRESHET_RANK=0",
                Str("FRESHET_WORLD=", workers), "FRESHET_LOCAL_RANK=0", "FRESHET_LOCAL_WORLD=1",
                Str("FRESHET_RENDEZVOUS=", flags.ask.address), Str("FRESHET_JOB_ID=", flags.ask.job)});
}

}  // namespace

const Verb kAgent = {"agent", "watch a worker that may come and go, for mpirun or srun",
                     "[FLAGS] -- train … --elastic MIN:MAX",
                     "  mpirun -n 8 freshet agent -- train big.svm --elastic 4:8 -o big.model\n"
                     "  srun -n 8 freshet agent -- train big.svm --elastic 4:8 --token-file job.token -o big.model\n",
                     RunAgent};
const Verb kJoin = {"join", "add a worker to a running elastic job", "HOST:PORT --job NAME [FLAGS] -- train …",
                    "  freshet join node1:41513 --job 5f2c… --token-file job.token -- train big.svm -o big.model\n",
                    RunJoin};

}  // namespace freshet::cli
