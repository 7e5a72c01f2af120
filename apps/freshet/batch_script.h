#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch_job.h"

namespace freshet::cli {

// A scheduler of a cluster, as its users speak to it.
struct Scheduler {
  std::string_view name, submit, program;  // program: by which it is known that it is here
  // What the script says to it, before anything is run.
  std::string (*directives)(const BatchJob& job);
  // The shell's word for the hosts as freshet launch --hosts takes them, and what reaches one of them.
  std::string_view hosts, reach;
  // Of a job that was submitted.
  std::string_view status, cancel;  // commands, which the job's number follows
};

// By name; null for one that is not known.
const Scheduler* FindScheduler(std::string_view name);
std::vector<std::string> SchedulerNames();

// What the scheduler is to run: everything is started, run and taken down by it. The exit code of the run is left in
// the job's file "ended".
std::string BatchScript(const BatchJob& job, const Scheduler& scheduler);

// [train] as the workers read it: with a checkpoint and a model in the job's directory where none were named.
std::string TrainConfigOf(const BatchJob& job);

// The job's number, in what a scheduler says when it takes one; "" when there is none.
std::string JobNumber(const Scheduler& scheduler, std::string_view answer);

// "running", "waiting" or "", in what a scheduler says of a job: neither of those.
std::string StateIn(const Scheduler& scheduler, std::string_view answer);

}  // namespace freshet::cli
