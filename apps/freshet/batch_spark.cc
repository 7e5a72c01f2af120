#include "batch_spark.h"

#include <algorithm>

#include "base/str.h"
#include "launch_plan.h"

namespace freshet::cli {
namespace {

// Reads what SparkScript sets before it, and leaves a cluster at spark://$master:$port.
constexpr std::string_view kCluster = R"sh(: "${SPARK_HOME:?is not set: give home in [spark]}"
export SPARK_LOCAL_DIRS="$local"
master=$(hostname)
each="srun --nodes=$nodes --ntasks=$nodes --ntasks-per-node=1 --kill-on-bad-exit=0"
began=$(date +%s%N)
seconds() { awk "BEGIN { printf \"%.1f\", ($(date +%s%N) - $began) / 1e9 }"; }
down() {
  kill $pids 2> /dev/null
  wait $pids 2> /dev/null
  $each rm -rf "$local"
}
: > "$own/spark-master.log"
"$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master --host "$master" --port "$port" --webui-port 0 \
  > "$own/spark-master.log" 2>&1 &
pids=$!
$each bash -c 'mkdir -p "$SPARK_LOCAL_DIRS" && exec "$SPARK_HOME/bin/spark-class" "$@"' worker \
  org.apache.spark.deploy.worker.Worker --cores "$cores" ${memory:+--memory "$memory"} --work-dir "$local" \
  --webui-port 0 "spark://$master:$port" > "$own/spark-workers.log" 2>&1 &
pids="$pids $!"
trap down EXIT
trap 'exit 143' TERM
until [ "$(grep -c 'Registering worker' "$own/spark-master.log")" -ge "$nodes" ]; do
  if ! kill -0 $pids 2> /dev/null || [ "$(seconds | cut -d. -f1)" -gt 300 ]; then
    echo "freshet: Spark did not come up: see $own/spark-master.log and $own/spark-workers.log"
    echo 1 > "$own/ended"
    exit 1
  fi
  sleep 0.2
done
echo "spark: a master and $nodes workers after $(seconds) s"
)sh";

std::string Variable(std::string_view name, std::string_view value) { return Str(name, "=", ShellQuoted(value), "\n"); }

}  // namespace

std::string SparkScript(const BatchJob& job) {
  const std::string limit = Str(job.seconds > 0 ? job.seconds : 7 * 86'400, "s");
  std::string out = job.spark_home.empty() ? "" : Str("export ", Variable("SPARK_HOME", job.spark_home));
  out += Str("nodes=", job.nodes, "\ncores=", std::max(job.cores, 1) * job.workers, "\n");
  out += Variable("memory", job.memory) + Variable("own", job.directory);
  out += Str("local=", job.local.empty() ? "\"${TMPDIR:-/tmp}\"" : ShellQuoted(job.local), "/freshet-spark-$$\n");
  out += Str("port=", job.port > 0 ? Str(job.port) : "$((20000 + $$ % 20000))", "\n", kCluster);
  out += Str("\"$SPARK_HOME/bin/spark-submit\" --master \"spark://$master:$port\" --name ", ShellQuoted(job.name));
  std::vector<std::string> conf = {Str("spark.network.timeout=", limit), Str("spark.rpc.askTimeout=", limit),
                                   "spark.ui.enabled=false"};
  conf.insert(conf.end(), job.conf.begin(), job.conf.end());
  for (const std::string& property : conf) out += Str(" --conf ", ShellQuoted(property));
  out += " --conf \"spark.driver.host=$master\"";
  if (!job.executor_memory.empty()) out += Str(" --executor-memory ", ShellQuoted(job.executor_memory));
  out += Str(" ", ShellQuoted(job.application));
  for (const std::string& argument : job.arguments) out += Str(" ", ShellQuoted(argument));
  return out + " &\nwait $!\n";  // so that the shell hears signals meanwhile
}

}  // namespace freshet::cli
