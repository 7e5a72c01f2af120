#pragma once

#include "train/job.h"
#include "train/members.h"

// How a job is run, between its files; for nobody else.
namespace freshet::train {

// What all workers of a process begin with.
struct Start {
  Job& job;
  Around& around;
  int workers = 1;  // in all processes
  data::Description description = {};
  model::ModelConfig config = {};
  const model::TrainedModel* earlier = nullptr;  // the model of job.from
  std::string fingerprint = {}, inputs = {};     // what must be the same when a run is resumed
  std::string common = {};                       // what must be the same for who comes later
  bool whole = true;                             // do all workers read all rows?
  std::uint64_t batch = 1;                       // rows of an update, of all workers
  TrainTrace* trace = nullptr;
  std::shared_ptr<optimize::Memory> scratch = nullptr;  // where all of a large model lies

  // Of all parameters of a worker that has `own` memory.
  optimize::Memory& WholeIn(optimize::Memory& own) const { return scratch == nullptr ? own : *scratch; }
};

// job_settle.cc: replaces every "auto" and unset number by what will be used.
void SettleDefaults(Job& job, const data::Description& description, int workers);

// job_settings.cc: the settings that must be the same when a run is resumed: all but those that say where things go.
std::string Fingerprint(const Job& job);
// Those that must be the same for all workers. What files are called may differ from host to host: what is in them is
// compared instead.
std::string CommonSettings(const Job& job);

// job_work.cc: trains alone, on a source that was opened for start.description and makes it grow.
Result<Outcome> WorkAlone(const base::Env& env, Start& start, optimize::Memory& memory,
                          std::unique_ptr<data::RowSource> source);
// Trains as N workers in this process, each a thread with its share of env's threads.
Result<Outcome> WorkTogether(const base::Env& env, const Start& start, optimize::Memory& memory);
// Trains as one process of several, by a source like that of WorkAlone, or, without one, by one that it opens.
Result<Outcome> WorkAsMember(const base::Env& env, Start& start, optimize::Memory& memory, fabric::Fabric& fabric,
                             std::unique_ptr<data::RowSource> source);

// Trains as one process of several that may come and go: with `members`, who begin together, or without, as one who begins
// alone or comes.
Result<Outcome> WorkElastic(const base::Env& env, Start& start, optimize::Memory& memory, Members* members,
                            std::unique_ptr<data::RowSource> source);

}  // namespace freshet::train
