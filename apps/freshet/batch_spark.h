#pragma once

#include <string>

#include "batch_job.h"

namespace freshet::cli {

// The part of a job's script that runs an application on Spark, on the nodes that Slurm gave it: a master on the first, a
// worker on each, for as long as the application runs. Intermediate data lies on the nodes' own disks, and Spark waits as
// long as the job may take. It leaves the exit code as a shell does.
std::string SparkScript(const BatchJob& job);

}  // namespace freshet::cli
