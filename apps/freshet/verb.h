#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/settings.h"
#include "base/thread_pool.h"
#include "base/writable.h"
#include "fabric/fabric.h"
#include "fabric/launch/environment.h"
#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"

namespace freshet::cli {

// Meets the other processes over MPI; none in a program without it.
using ConnectMpi =
    std::function<Result<std::unique_ptr<fabric::Fabric>>(const fabric::Place& place, base::Clock::Duration heartbeat)>;

// A network of any platform that is described; none in a program without SimGrid.
using MakeFlows = std::function<Result<std::unique_ptr<fabric::sim::Flows>>(const fabric::sim::Platform& platform)>;

// What some programs have and freshet itself has not.
struct Extras {
  ConnectMpi connect_mpi = {};
  MakeFlows make_flows = {};
};

// What main hands to a verb.
struct Door {
  base::Files& files;
  base::Clock& clock;
  base::Log& log;
  base::Faults& faults;
  const std::atomic<bool>& stop;                  // set by Ctrl-C or SIGTERM
  const std::vector<std::string> arguments = {};  // the whole command line, after the program's name
  const Extras extras = {};
  int exit_code = 0;   // set by a verb that answers for other processes; 0: the result says it
  bool speaks = true;  // false: another process prints the results, and failures as JSON

  base::Env env(base::Executor& executor) const { return {files, clock, log, executor, faults}; }
  // kStopped once somebody asked for it; for loops over blocks.
  Result<void> GoOn() const {
    if (stop.load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
    return {};
  }
};

struct Verb {
  std::string_view name;
  std::string_view summary;   // one line
  std::string_view usage;     // what follows the name
  std::string_view examples;  // shown first by --help
  Result<void> (*run)(Door& door, const Verb& verb, const std::vector<std::string>& arguments);
};

extern const Verb kAgent, kJoin, kPs, kMode, kTrain, kPredict, kEvaluate, kRecommend, kData, kInspect, kServe, kReplay,
    kExport, kImport, kLaunch, kBench, kSimulate, kPlan, kCompare, kSubmit;
std::vector<const Verb*> Verbs();

// Parses a verb's arguments. False when help was asked for and has been printed.
Result<bool> ParseArguments(Door& door, const Verb& verb, const std::vector<std::string>& arguments,
                            base::Settings& settings);

// The program's version, commit and features.
std::string VersionText(const Door& door);
std::string ProgramVersion();
std::string ProgramCommit();

// Prints results: text to standard output, wholly or with an error (a full disk, a closed pipe). Options are named as
// flags.
Result<void> Print(base::Files& files, std::string_view text);

using base::CheckPlaceFor;

// Threads to use: what was asked for, or every core.
int Threads(int asked);

}  // namespace freshet::cli
