// Batch jobs: what the schedulers are told, and one that runs, by a scheduler of a few lines.

#include <sys/stat.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/option.h"
#include "batch_script.h"
#include "launch_testing.h"
#include "process_testing.h"

namespace freshet::cli {
namespace {

constexpr const char* kJob =
    "[job]\nnodes = 3\nworkers = 2\ncores = 4\ntime = \"1-2:30:05\"\nmemory = \"8G\"\nqueue = \"main\"\n"
    "account = \"ours\"\noptions = [\"--constraint=x\"]\nsetup = [\"module load gcc\"]\n\n"
    "[train]\ndata = [\"rows.csv\"]  # of all\nepochs = 4\n";

class SubmitTest : public testing::Test {
 protected:
  BatchJob Read(const std::string& text) {
    auto job = ReadBatchJob(files_, scratch_.Write("job.toml", text));
    EXPECT_TRUE(job.ok()) << job.error().text;
    if (!job.ok()) return {};
    job.value().program = "/opt/freshet";
    return std::move(job).value();
  }
  std::string ScriptFor(const std::string& text, const char* scheduler) {
    return BatchScript(Read(text), *FindScheduler(scheduler));
  }
  // Is it a script that a shell can read?
  bool Reads(const std::string& script) {
    return std::system(Str("bash -n ", scratch_.Write("script", script)).c_str()) == 0;
  }
  std::string Mistakes(const std::string& text) {
    const auto job = ReadBatchJob(files_, scratch_.Write("job.toml", text));
    EXPECT_FALSE(job.ok());
    return job.ok() ? "" : ShowOptions(job.error().text, "--");
  }
  Finished Run(const std::vector<std::string>& arguments) {
    return Process(scratch_, arguments, {.environment = {{"PATH", Str(scratch_ / "bin", ":", std::getenv("PATH"))}}})
        .Wait();
  }
  // Commands of Slurm that run a job here, one worker: sbatch goes on at once, as the real one does.
  void PretendSlurm() {
    ASSERT_EQ(mkdir((scratch_ / "bin").c_str(), 0755), 0);
    const auto program = [&](const std::string& name, const std::string& text) {
      chmod(scratch_.Write("bin/" + name, "#!/bin/bash\n" + text).c_str(), 0755);
    };
    program("sbatch",
            "log=$(sed -n 's/^#SBATCH --output=//p' \"$2\")\n"
            "setsid bash \"$2\" >> \"$log\" 2>&1 < /dev/null &\necho $! > pid\necho '42;here'\n");
    program("srun", "while [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
    program("squeue",
            "kill -0 $(cat pid) 2> /dev/null || { echo 'Invalid job id specified'; exit 1; }\necho RUNNING\n");
    program("scancel", "kill -TERM -$(cat pid)\nwhile kill -0 $(cat pid) 2> /dev/null; do sleep 0.05; done\n");
  }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(SubmitTest, SaysToSlurmWhatIsWanted) {
  const std::string script = ScriptFor(kJob, "slurm"), own = scratch_ / "job";
  for (const std::string& line : std::initializer_list<std::string>{
           Str("#SBATCH --job-name=job"), Str("#SBATCH --nodes=3"), Str("#SBATCH --ntasks-per-node=2"),
           Str("#SBATCH --cpus-per-task=4"), Str("#SBATCH --time=26:30:05"), Str("#SBATCH --mem=8G"),
           Str("#SBATCH --partition=main"), Str("#SBATCH --account=ours"), Str("#SBATCH --constraint=x"),
           Str("#SBATCH --requeue"), Str("#SBATCH --output=", own, "/log"), Str("module load gcc"),
           Str("srun --kill-on-bad-exit=0 '/opt/freshet' train --config '", own,
               "/train.toml' --job 'job' --token-file '", own, "/token'")})
    EXPECT_TRUE(Has(script, line + "\n")) << line << "\n" << script;
  EXPECT_TRUE(Reads(script));
  EXPECT_TRUE(Has(ScriptFor(Str("[job]\nelastic = \"1:4\"\n", "[train]\ndata = [\"x\"]\n"), "slurm"),
                  "srun --no-kill --kill-on-bad-exit=0 '/opt/freshet' agent -- train "));
  const std::string mpi =
      ScriptFor("[job]\nengine = \"mpi\"\nnodes = 2\nworkers = 4\n[train]\ndata = [\"x\"]\n", "slurm");
  EXPECT_TRUE(Has(mpi, Str("mpirun -n 8 '/opt/freshet' train --config '", own, "/train.toml' --fabric mpi\n"))) << mpi;
}

TEST_F(SubmitTest, SaysToOthersWhatIsWanted) {
  const std::string lsf = ScriptFor(kJob, "lsf"), pbs = ScriptFor(kJob, "pbs");
  for (const char* const line :
       {"#BSUB -J job", "#BSUB -n 6", "#BSUB -R \"span[ptile=2]\"", "#BSUB -R \"affinity[core(4)]\"", "#BSUB -W 26:31",
        "#BSUB -M 8G", "#BSUB -q main", "#BSUB -P ours"})
    EXPECT_TRUE(Has(lsf, Str(line, "\n"))) << line << "\n" << lsf;
  EXPECT_TRUE(Has(lsf, "--ssh blaunch --job 'job' "));
  for (const char* const line : {"#PBS -N job", "#PBS -l select=3:ncpus=8:mpiprocs=2:mem=8Gb",
                                 "#PBS -l walltime=26:30:05", "#PBS -q main", "#PBS -A ours"})
    EXPECT_TRUE(Has(pbs, Str(line, "\n"))) << line << "\n" << pbs;
  EXPECT_TRUE(Has(pbs, "--ssh pbs_tmrsh --job 'job' "));
  EXPECT_TRUE(Reads(lsf));
  EXPECT_TRUE(Reads(pbs));
}

// What the shell makes of what these schedulers tell of a job's hosts.
TEST_F(SubmitTest, FindsTheHostsThatAJobWasGiven) {
  const auto hosts = [&](const char* scheduler, const std::string& environment) {
    const std::string script = Str(environment, "\necho \"", FindScheduler(scheduler)->hosts, "\" > hosts\n");
    EXPECT_EQ(std::system(Str("cd ", scratch_.path(), " && bash ", scratch_.Write("hosts.sh", script)).c_str()), 0);
    return scratch_.Read("hosts");
  };
  EXPECT_EQ(hosts("lsf", "LSB_MCPU_HOSTS='a1 2 b-2 4 '"), "a1:2,b-2:4\n");
  scratch_.Write("nodes", "a1\na1\nb-2\n");
  EXPECT_EQ(hosts("pbs", Str("PBS_NODEFILE=", scratch_ / "nodes")), "a1:2,b-2:1\n");
}

TEST_F(SubmitTest, StartsSparkWhereTheJobIs) {
  const std::string script = ScriptFor(
      "[job]\nengine = \"spark\"\nnodes = 2\nworkers = 2\ncores = 3\ntime = \"0:10\"\nmemory = \"4G\"\n"
      "[spark]\nhome = \"/opt/spark\"\napplication = \"app.py\"\narguments = [\"it's\"]\nconf = [\"spark.a=b\"]\nport "
      "= 7077\n",
      "slurm");
  for (const char* const line : {"export SPARK_HOME='/opt/spark'", "nodes=2", "cores=6", "memory='4G'", "port=7077"})
    EXPECT_TRUE(Has(script, Str("\n", line, "\n"))) << line << "\n" << script;
  EXPECT_TRUE(Has(script, "--conf 'spark.network.timeout=600s' "));
  EXPECT_TRUE(Has(script, "--conf 'spark.a=b' ")) << script;
  EXPECT_TRUE(Has(script, " 'app.py' 'it'\\''s' &\n")) << script;
  EXPECT_TRUE(Reads(script));
}

TEST_F(SubmitTest, WhatIsWrongIsSaidWhereItStands) {
  const std::string path = scratch_ / "job.toml";
  const std::string mistakes = Mistakes(
      "[job]\nnodez = 3\ntime = \"3 h\"\nengine = \"spark\"\nscheduler = \"pbs\"\n[train]\nepoch = 2\nrate = \"x\"\n");
  EXPECT_EQ(mistakes, Str(path, ":2:9: key 'nodez' is unknown; did you mean 'nodes'?\n", path,
                          ":7:9: key 'epoch' is unknown; did you mean 'epochs'?\n", path,
                          ":8:8: --rate: found 'x', expected a number\n", path,
                          ": time: found '3 h', expected [D-]HH:MM:SS or HH:MM\n", path,
                          ": engine spark runs an application: name it in [spark]\n", path,
                          ": engine spark starts Spark under Slurm, not under pbs"));
  EXPECT_EQ(Mistakes("[jobs]\n"), Str(path, ":1:1: found 'jobs', expected a table [job], [train] or [spark]"));
  EXPECT_EQ(Mistakes("[job]\nnodes = 2\n"), Str(path, ": [train] names no data: data = [\"FILE\", …]"));
  EXPECT_TRUE(Has(Mistakes("[job\n"), Str(path, ":1:")));
  EXPECT_EQ(Mistakes("[job]\nname = \"a b\"\n[train]\ndata = [\"x\"]\n"),
            Str(path, ": name: found 'a b', expected letters, digits, '.', '-' and '_'"));
  for (const char* const time : {"", "5", "1:60", "0:00", "x-1:00", "1:2:3:4", "-1:00"})
    EXPECT_FALSE(ParseTimeLimit(time).ok()) << time;
  EXPECT_EQ(ParseTimeLimit("0:01").value(), 60);
}

// Nothing that stands in the description becomes a line, or a word, of its own.
TEST_F(SubmitTest, WhatTheSchedulerWouldTakeForSomethingElseIsRefused) {
  const auto mistakes = [&](const std::string& job, const std::string& train = "") {
    return Mistakes(Str("[job]\n", job, "\n[train]\ndata = [\"x\"]\n", train));
  };
  EXPECT_TRUE(Has(mistakes("queue = \"x\\n#SBATCH --uid=0\""), "queue: found ")) << "a line of its own";
  EXPECT_TRUE(Has(mistakes("account = \"a\\tb\""), "account: found "));
  EXPECT_TRUE(Has(mistakes("options = [\"--x\\n#SBATCH --uid=0\"]"), "options: found "));
  for (const char* const directory : {"my job", "a$b", "it's", "50%"})
    EXPECT_TRUE(Has(mistakes(Str("directory = \"", directory, "\"")), "directory: found ")) << directory;
  for (const char* const memory : {"lots", "16", "G", "0G", "16 G", "-1G"})
    EXPECT_TRUE(Has(mistakes(Str("memory = \"", memory, "\"")), "expected a whole number with K, M, G or T, as 16G"))
        << memory;
  EXPECT_TRUE(Has(mistakes("workers = 2\nelastic = \"3:9\""),
                  "elastic: found '3:9', and 1 nodes of 2 workers are 2: they could never begin"));
  EXPECT_TRUE(Has(mistakes("elastic = \"3\""), "elastic: found '3', expected MIN:MAX"));
  EXPECT_TRUE(Has(mistakes("", "workers = 3"), "[train] workers is what [job] says"));
  EXPECT_TRUE(Has(mistakes("", "rank = 7"), "[train] rank is what [job] says"));
  EXPECT_TRUE(
      Has(mistakes("workers = 2", "strategy = \"server\"\nservers = 2"), "[train] servers = 2, and [job] has 2"));
}

TEST_F(SubmitTest, DataThatIsNotThereIsRefusedAndTheScriptMayBeAskedForAsJson) {
  scratch_.Write("sea.toml", "[job]\nscheduler = \"slurm\"\n[train]\ndata = [\"rows.csv\"]\n");
  const Finished missing = Run({"submit", "sea.toml", "--dry-run"});
  EXPECT_NE(missing.code, 0);
  EXPECT_TRUE(Has(missing.err, "/rows.csv: no such file; while reading [train] of sea.toml")) << missing.err;
  scratch_.Write("rows.csv", "x,y\n1,0\n2,1\n");
  const Finished found = Run({"submit", "sea.toml", "--dry-run", "--json"});
  EXPECT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = nlohmann::json::parse(found.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << found.out;
  EXPECT_EQ(json.at("script"), Run({"submit", "sea.toml", "--dry-run"}).out);
}

TEST_F(SubmitTest, UnderstandsWhatSchedulersSay) {
  const Scheduler &slurm = *FindScheduler("slurm"), &lsf = *FindScheduler("lsf"), &pbs = *FindScheduler("pbs");
  EXPECT_EQ(JobNumber(slurm, "17;cluster\n"), "17");
  EXPECT_EQ(JobNumber(lsf, "Job <1043> is submitted to queue <main>.\n"), "1043");
  EXPECT_EQ(JobNumber(pbs, "77.server.site\n"), "77.server.site");
  EXPECT_EQ(JobNumber(slurm, "no\n"), "");
  EXPECT_EQ(StateIn(slurm, "RUNNING\n"), "running");
  EXPECT_EQ(StateIn(slurm, "PENDING\n"), "waiting");
  EXPECT_EQ(StateIn(slurm, "COMPLETED\n"), "");
  EXPECT_EQ(StateIn(lsf, "RUN\n"), "running");
  EXPECT_EQ(StateIn(lsf, "PEND\n"), "waiting");
  EXPECT_EQ(StateIn(lsf, "DONE\n"), "");
  EXPECT_EQ(StateIn(pbs, "Job Id: 7\n    job_state = R\n"), "running");
  EXPECT_EQ(StateIn(pbs, "Job Id: 7\n    job_state = F\n"), "");
}

TEST_F(SubmitTest, AJobIsSubmittedLookedAtCancelledAndGoesOn) {
  PretendSlurm();
  ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "20000", "-o", "rows.csv"}).code, 0);
  const auto write = [&](int epochs) {
    scratch_.Write("sea.toml", Str("[job]\nworkers = 1\n[train]\ndata = [\"rows.csv\"]\nbatch = 16\nthreads = 1\n",
                                   "checkpoint-seconds = 0.02\nepochs = ", epochs, "\n"));
  };
  write(2);
  const Finished waited = Run({"submit", "sea.toml", "--wait"});
  EXPECT_EQ(waited.code, 0) << waited.err << waited.out;
  EXPECT_TRUE(Has(waited.out, "job sea: 1 workers on 1 nodes\ntrained      linear")) << waited.out;
  EXPECT_TRUE(Has(waited.out, "job sea, 42 of slurm: ended; log ")) << waited.out;
  EXPECT_TRUE(Has(Run({"submit", "logs", "sea.toml"}).out, "trained      linear"));
  ASSERT_EQ(Run({"train", "rows.csv", "--batch", "16", "--epochs", "2", "-o", "alone.model"}).code, 0);
  EXPECT_EQ(scratch_.Read("sea/model"), scratch_.Read("alone.model"));
  struct stat token {};
  ASSERT_EQ(stat((scratch_ / "sea/token").c_str(), &token), 0);
  EXPECT_EQ(token.st_mode & 0777, 0600u);

  write(2000);
  ASSERT_EQ(Run({"submit", "sea.toml"}).code, 0);
  const auto state = [&] { return nlohmann::json::parse(Run({"submit", "status", "sea.toml", "--json"}).out); };
  EXPECT_EQ(state().at("state"), "running");
  const Finished again = Run({"submit", "sea.toml"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(Has(again.err, "job sea is running as 42: freshet submit cancel sea.toml ends it")) << again.err;
  for (int tries = 0; access((scratch_ / "sea/checkpoint").c_str(), F_OK) != 0; ++tries) {
    ASSERT_LT(tries, 600);
    usleep(50'000);
  }
  const Finished cancelled = Run({"submit", "cancel", "sea.toml"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_NE(state().at("state"), "running");
  EXPECT_EQ(access((scratch_ / "sea/checkpoint").c_str(), F_OK), 0) << "the same command would go on";
}

TEST_F(SubmitTest, SaysWhatIsMissing) {
  scratch_.Write("x.toml", "[job]\n[train]\ndata = [\"x.csv\"]\n");
  const Finished absent = Process(scratch_, {"submit", "x.toml"}, {.environment = {{"PATH", "/nowhere"}}}).Wait();
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(Has(absent.err, "no scheduler is here (sbatch, bsub, qsub)")) << absent.err;
  EXPECT_TRUE(Has(Run({"submit", "status", "x.toml"}).err, "job x was not submitted: there is no "));
  EXPECT_EQ(Run({"submit", "look", "x.toml"}).code, 2);
  EXPECT_EQ(Run({"submit"}).code, 2);
  EXPECT_EQ(Run({"submit", "absent.toml"}).code, 1);
}

}  // namespace
}  // namespace freshet::cli
