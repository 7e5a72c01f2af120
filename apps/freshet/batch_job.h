#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/settings.h"

namespace freshet::cli {

// A job for a cluster's scheduler, as one file describes it: [job], where it runs; [train], the settings of freshet train;
// and, for those who run on Spark, [spark]. Names of files are relative to where that file lies, which is where the job
// runs. What the job writes lies in a directory of its own beside it.
struct BatchJob {
  std::string name, engine = "freshet", scheduler = "auto";
  int nodes = 1, workers = 1, cores = 0;  // workers of a node, cores of a worker (0: what the scheduler gives)
  std::string time, memory, queue, account, directory, elastic, program;
  std::vector<std::string> options, setup;  // lines for the scheduler, and for the shell

  std::string spark_home, application, local, executor_memory;
  std::vector<std::string> arguments, conf;
  int port = 0;

  std::string source;        // the file that describes it, as it was named
  std::string place;         // where the file lies: an absolute path
  std::string train;         // the settings of freshet train, as TOML
  std::int64_t seconds = 0;  // time

  int total() const { return nodes * workers; }
  // A file of the job's own directory, as an absolute path.
  std::string Own(std::string_view file) const;

  void RegisterJob(base::Settings& settings);
  void RegisterSpark(base::Settings& settings);
};

// kInvalid with one line per mistake, kNotFound when there is no such file.
Result<BatchJob> ReadBatchJob(base::Files& files, const std::string& path);

// kNotFound when files of rows that it names are not there.
Result<void> CheckFiles(base::Files& files, const BatchJob& job);

// "[D-]HH:MM:SS" or "HH:MM", in seconds.
Result<std::int64_t> ParseTimeLimit(std::string_view text);

}  // namespace freshet::cli
