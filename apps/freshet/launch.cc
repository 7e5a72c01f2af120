#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "held_signals.h"
#include "launch_agent.h"
#include "launch_crew.h"
#include "launch_plan.h"
#include "progress.h"
#include "verb.h"
#include "witness.h"

extern char** environ;

namespace freshet::cli {
namespace {

struct Flags {
  int workers = 0;
  double grace = 5, frozen = 4;
  int restarts = 3;
  bool all_output = false, agent = false;
  std::string hosts, rendezvous, program, elastic, job, token_file, ssh = "ssh -o BatchMode=yes -o ConnectTimeout=10";

  void Register(base::Settings& settings) {
    settings.Group("Workers");
    settings.Add("workers", &workers, "how many to start (0: as many as the hosts take)",
                 {.letter = 'n', .value = "N", .least = 0, .most = 4096});
    settings.Add("hosts", &hosts, "where, and how many on each: HOST:WORKERS,… (here when none is given)",
                 {.letter = 'H', .value = "HOSTS"});
    settings.Add("rendezvous", &rendezvous, "where workers meet, when the first host and a port of the job do not do",
                 {.value = "HOST:PORT"});
    settings.Add("elastic", &elastic,
                 "workers may come and go: who dies is done without, as long as MIN are left, and started again "
                 "(train --elastic)",
                 {.value = "MIN:MAX"});
    settings.Add("restarts", &restarts, "with --elastic: how often a worker that was killed is started again, in all",
                 {.value = "N", .least = 0});
    settings.Add("job", &job, "a name for the job (else a random one), for freshet join and ps", {.value = "NAME"});
    settings.Add("token-file", &token_file, "its secret (else a random one), for the same: 32 bytes, mode 0600",
                 {.value = "FILE"});
    settings.Group("Watching");
    settings.Add("all-output", &all_output, "show standard output of all workers, marked, not of rank 0 alone");
    settings.Add("grace", &grace, "seconds for the others to end when one has failed; then SIGTERM, then SIGKILL",
                 {.value = "S", .least = 0, .most = 86'400});
    settings.Add("frozen", &frozen, "seconds after which workers that are all frozen (SIGSTOP) are ended; 0: never",
                 {.value = "S", .least = 0, .most = 86'400});
    settings.Group("Other hosts");
    settings.Add("ssh", &ssh, "command that reaches a host; the host and what to run there follow it",
                 {.value = "COMMAND"});
    settings.Add("program", &program, "path of freshet on other hosts (the same as here)", {.value = "PATH"});
    settings.Add("agent", &agent, "what launch itself runs on other hosts: one worker, watched from here");
  }
};

// What all workers of a job have in common.
struct Job {
  std::string id, rendezvous;
  std::vector<std::string> arguments;    // of each worker
  std::vector<std::string> environment;  // of each worker, less its place
  Token token;
  base::Descriptor held_token;
};

std::string MachineName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string Hex(const Token& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes)
    out += Str(kDigits[static_cast<int>(byte) >> 4], kDigits[static_cast<int>(byte) & 15]);
  return out;
}

// A port of loopback that is free now; 0 when it is not.
int IfFree(int port) {
  const base::Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? port : 0;
}

std::string Rendezvous(const std::vector<Seat>& seats, const std::string& machine, const std::string& job) {
  const std::string host = MeetingHost(seats, machine);
  int port = fabric::PortOf(job);  // on another host it cannot be tried from here
  if (seats[0].here)
    for (int attempt = 1; IfFree(port) == 0 && attempt < 100; ++attempt) port = fabric::PortOf(job, attempt);
  return Str(host, ":", port);
}

// Our own environment without anybody's word on who we are.
std::vector<std::string> Inherited() {
  std::vector<std::string> dropped = fabric::PlaceVariables();
  dropped.insert(dropped.end(), {"FRESHET_NODE", "FRESHET_TOKEN_FD", "FRESHET_TOKEN_FILE"});
  std::vector<std::string> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable, name = text.substr(0, text.find('='));
    if (std::find(dropped.begin(), dropped.end(), name) == dropped.end()) kept.emplace_back(text);
  }
  return kept;
}

WorkerStart Here(const Job& job, std::vector<std::string> place) {
  WorkerStart start;
  start.arguments = {"freshet"};
  start.arguments.insert(start.arguments.end(), job.arguments.begin(), job.arguments.end());
  start.environment = job.environment;
  place.push_back(Str("FRESHET_TOKEN_FD=", job.held_token.get()));
  start.environment.insert(start.environment.end(), place.begin(), place.end());
  start.token = job.held_token.get();
  return start;
}

// Through ssh: a shell there goes to the directory we are in and becomes the agent. Of our variables, those about
// freshet go along.
Result<WorkerStart> There(const Job& job, const Flags& flags, const std::string& host, std::vector<std::string> place) {
  char path[4096] = {}, directory[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0 || getcwd(directory, sizeof directory) == nullptr)
    return Error{Code::kIo, "cannot find out where freshet and its working directory are"};
  for (const std::string& variable : job.environment)
    if (variable.starts_with("FRESHET_")) place.push_back(variable);
  std::string command = Str("cd ", ShellQuoted(directory), " && exec env");
  for (const std::string& variable : place) command += Str(" ", ShellQuoted(variable));
  command += Str(" ", ShellQuoted(flags.program.empty() ? path : flags.program), " launch --agent --frozen ",
                 flags.frozen, " --");
  for (const std::string& argument : job.arguments) command += Str(" ", ShellQuoted(argument));
  WorkerStart start;
  for (const std::string_view word : Split(flags.ssh, ' '))
    if (!word.empty()) start.arguments.emplace_back(word);
  if (start.arguments.empty()) return Error{Code::kInvalid, "--ssh: found nothing, expected a command"};
  start.program = start.arguments[0];
  start.arguments.insert(start.arguments.end(), {host, command});
  start.environment = job.environment;
  start.far = true;
  return start;
}

// `join`: where those are whom it joins; none when it begins with them.
Result<std::unique_ptr<Worker>> StartWorker(const Job& job, const Flags& flags, const Seat& seat, int size,
                                            const std::vector<std::string>& join = {}) {
  auto place = PlaceOf(seat, size, job.rendezvous, job.id);
  if (!join.empty()) place.push_back(Str("FRESHET_JOIN=", Join(join, ",")));
  WorkerStart start = seat.here ? Here(job, place) : TRY(There(job, flags, seat.host, place));
  start.rank = seat.rank;
  start.host = seat.host;
  start.testifies = !flags.elastic.empty() && seat.here;
  if (seat.rank == 0 || !flags.elastic.empty())  // whoever is the first in the end
    start.out = WorkerStart::Output::kInherit;   // results are for programs, too
  else if (flags.all_output)
    start.out = WorkerStart::Output::kMark;
  auto worker = TRY(Worker::Start(start));
  if (start.far) worker->Tell({reinterpret_cast<const char*>(job.token.data()), job.token.size()});
  return worker;
}

base::Clock::Duration Span(double seconds) {
  return std::chrono::duration_cast<base::Clock::Duration>(std::chrono::duration<double>(seconds));
}

Result<void> Launch(Door& door, const Flags& flags, std::vector<std::string> arguments) {
  const std::string machine = MachineName();
  const auto seats = TRY(MakeSeats(flags.workers, flags.hosts, machine));
  Job job;
  job.id = flags.job.empty() ? Hex(TRY(MakeToken())).substr(0, 16) : flags.job;
  job.rendezvous = flags.rendezvous.empty() ? Rendezvous(seats, machine, job.id) : flags.rendezvous;
  job.arguments = std::move(arguments);
  job.environment = Inherited();
  job.token = flags.token_file.empty() ? TRY(MakeToken())
                                       : TRY(ReadToken(flags.token_file, {}, [](const char*) { return nullptr; }));
  job.held_token = TRY(HoldToken(job.token));

  const int size = static_cast<int>(seats.size());
  std::unique_ptr<Witness> witness;
  if (!flags.elastic.empty()) {
    job.arguments.insert(job.arguments.end(), {"--elastic", flags.elastic});
    witness = TRY(Witness::Open(job.token, job.id, door.clock));
  }
  HeldSignals signals(door);
  Crew::Options how{.grace = Span(flags.grace), .frozen = Span(flags.frozen)};
  Crew* running = nullptr;
  int restarts = flags.restarts;
  const auto goes_on = [&](Worker& ended) {
    const bool missed = witness->Tell(ended);
    if (missed && witness->MayComeBack(ended) && restarts-- > 0)
      if (auto next = StartWorker(job, flags, seats[static_cast<std::size_t>(ended.rank())], size, witness->others());
          next.ok())
        running->Add(std::move(next).value());
    return missed;
  };
  if (witness != nullptr) {
    how.goes_on = goes_on;
    how.begins_again = [&](const Ended& ended) {
      if (!witness->NeverBegan(ended) || restarts-- <= 0) return false;
      WriteError(Str("freshet: ", ended.Text(), ", before all had met; all begin again\n"));
      return true;
    };
  }
  Crew::Outcome outcome{.again = true};
  while (outcome.again) {
    Crew crew(door.clock, how);
    running = &crew;
    for (const Seat& seat : seats) crew.Add(TRY(StartWorker(job, flags, seat, size)));
    outcome = crew.Run([&] { return signals.Next(); });
  }
  door.exit_code = outcome.code;
  if (outcome.cause)
    return Error{Code::kPeerLost,
                 outcome.cause->frozen > 0
                     ? outcome.cause->Text()
                     : Str(outcome.cause->Text(), "; what it said is above, after [rank ", outcome.cause->rank, "]")};
  if (outcome.code != 0) return Error{Code::kStopped, "stopped"};
  return {};
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, {arguments.begin(), dashes}, settings))) return {};
  if (dashes == arguments.end() || dashes + 1 == arguments.end())
    return Error{Code::kInvalid, "say what the workers do, after --: freshet launch -n 4 -- train a.svm -o a.model"};
  if (flags.agent) return RunAgent(door, Span(flags.frozen), {dashes + 1, arguments.end()});
  return Launch(door, flags, {dashes + 1, arguments.end()});
}

}  // namespace

const Verb kLaunch = {
    "launch", "start workers that train together, here or on several hosts", "[-n N] [-H HOST:WORKERS,…] -- VERB …",
    "  freshet launch -n 4 -- train big.svm -o big.model            four workers here\n"
    "  freshet launch -H node1:4,node2:4 -- train big.svm -o big.model      eight, over ssh; paths are the same there\n"
    "  freshet launch -n 4 --elastic 2:4 -- train big.svm -o big.model      goes on when workers are killed\n"
    "  freshet launch -n 2 --all-output -- train a.csv -o a.model --json    results of both, marked [rank N]\n"
    "  freshet launch -H me@node1:2 --ssh 'ssh -p 2222' --program /opt/freshet -- train a.csv -o a.model\n",
    Run};

}  // namespace freshet::cli
