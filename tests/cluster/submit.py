#!/usr/bin/python3 -B
"""Jobs that freshet submit gives to a real Slurm of three nodes: by our own fabric and by MPI they make the model of one
worker; one whose node is lost midway is queued again, and goes on from its checkpoint to the same model; one is cancelled.
And one that trains on a Spark of its own, where `make spark` has left the package and a Spark in build/spark."""
import hashlib
import json
import os
import pathlib
import signal
import time

import slurm
from cluster import Verdicts, arguments, enter, last_line, run, scratch, sh

ROWS, BATCH = 20000, 48
JOB = """[job]
nodes = 3
workers = 1
engine = "{engine}"
time = "0:30"
program = "{program}"
setup = ["export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]

[train]
data = ["rows.csv"]
batch = {batch}
epochs = {epochs}
threads = 1
optimizer = "sgd"
topology = "central"
checkpoint-seconds = 0.1
"""

SPARK_JOB = """[job]
engine = "spark"
nodes = 3
cores = 1
time = "0:10"
setup = ["export PYSPARK_PYTHON='{python}'"]

[spark]
home = "{home}"
application = "on_spark.py"
executor-memory = "512m"
"""
ON_SPARK = """from freshet.spark import FreshetClassifier
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

rows = SparkSession.builder.getOrCreate().read.csv("{rows}", header=True, inferSchema=True).repartition(3)
*numbers, label = rows.columns
rows = VectorAssembler(inputCols=numbers, outputCol="features").transform(rows)
report = FreshetClassifier(labelCol=label, numWorkers=3, epochs=2).fit(rows).report
print("trained", report["workers"], report["last_epoch"]["rows"], report["last_epoch"]["error_rate"])
"""


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if os.path.exists(path) else "no model"


class Jobs:
    def __init__(self, program, directory):
        self.program, self.directory, self.verdicts = program, directory, Verdicts()
        run([program, "data", "generate", "--kind", "sea", "--rows", ROWS, "-o", "rows.csv"])
        slurm.start(directory, 3)

    def write(self, name, engine="freshet", epochs=4):
        pathlib.Path(name + ".toml").write_text(JOB.format(engine=engine, epochs=epochs, batch=BATCH, program=self.program))

    def submit(self, *words, limit_s=120):
        return run([self.program, "submit"] + list(words), limit_s=limit_s)

    def state(self, name):
        return json.loads(self.submit("status", name + ".toml", "--json").out)["state"]

    def until(self, true, limit_s=60):
        end = time.monotonic() + limit_s
        while not true():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def undisturbed(self, epochs):
        """The model of three workers that nobody submitted, and nobody disturbed."""
        out = "calm-%d.model" % epochs
        run([self.program, "launch", "-n", 3, "--", "train", "rows.csv", "--batch", BATCH, "--epochs", epochs, "--threads", 1,
             "--optimizer", "sgd", "--topology", "central", "--quiet", "-o", out])
        return digest(out)

    def engine(self, engine):
        self.write(engine, engine)
        done = self.submit(engine + ".toml", "--wait")
        reason = "" if done.code == 0 else "exit code %d: %s" % (done.code, done.out + done.err)
        if not reason and digest(engine + "/model") != self.undisturbed(4):
            reason = "another model: " + digest(engine + "/model")
        self.verdicts.check("engine " + engine, reason)

    def lost_node(self):
        epochs = 400
        self.write("lost", epochs=epochs)
        self.submit("lost.toml")
        if not self.until(lambda: os.path.exists("lost/checkpoint")):
            return self.verdicts.check("a node is lost", "the job made no checkpoint: " + pathlib.Path("lost/log").read_text()[-300:])
        for pid in pathlib.Path("/proc").glob("[0-9]*"):  # the daemon of a node, and what it runs
            try:
                words = (pid / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"slurmd") and b"node3" in words or b"slurmstepd" in words[0] and b"node3" in b" ".join(words):
                os.kill(int(pid.name), signal.SIGKILL)
        sh("scontrol update nodename=node3 state=down reason=killed")
        again = self.until(lambda: "PENDING" in run(["squeue", "-h", "-o", "%T"]).out or self.state("lost") == "waiting")
        self.until(lambda: run(["slurmd", "-N", "node3"]).code == 0)  # as soon as its port is free again
        run(["scontrol", "update", "nodename=node3", "state=resume"])  # if it has not come back by itself
        done = self.submit("status", "lost.toml", "--wait", limit_s=240)
        reason = "" if again else "the job was not queued again"
        if not reason and done.code != 0:
            reason = "exit code %d: %s" % (done.code, last_line(done.out + done.err))
        if not reason and digest("lost/model") != self.undisturbed(epochs):
            reason = "another model: " + digest("lost/model")
        self.verdicts.check("a node is lost: queued again, it goes on to the same model", reason)

    def cancelled(self):
        self.write("long", epochs=100000)
        self.submit("long.toml")
        running = self.until(lambda: os.path.exists("long/checkpoint"))
        done = self.submit("cancel", "long.toml")
        gone = self.until(lambda: self.state("long") not in ("running", "waiting"), 40)
        self.verdicts.check("cancelled", "" if running and done.code == 0 and gone else "still %s" % self.state("long"))

    def spark(self):
        python = pathlib.Path(self.program).resolve().parents[3] / "spark/bin/python"
        found = run([python, "-c", "import freshet.spark, pyspark; print(pyspark.__path__[0])"]) if python.exists() else None
        if found is None or found.code != 0:
            return self.verdicts.skip("engine spark", "no Spark in build/spark: make spark")
        pathlib.Path("on_spark.py").write_text(ON_SPARK.format(rows=os.path.abspath("rows.csv")))
        pathlib.Path("spark.toml").write_text(SPARK_JOB.format(home=found.out.strip(), python=python))
        done = self.submit("spark.toml", "--wait", limit_s=300)
        log = pathlib.Path("spark/log").read_text() if os.path.exists("spark/log") else ""
        said = [line.split()[1:] for line in log.splitlines() if line.startswith("trained ")]
        reason = ""
        if done.code != 0 or not said:
            reason = "exit code %d: %s" % (done.code, last_line(log + done.err))
        elif said[0][:2] != ["3", str(ROWS)] or float(said[0][2]) > 0.2:
            reason = "trained by so many, of so many rows, with such an error: %s" % " ".join(said[0])
        self.verdicts.check("engine spark: three workers beside three executors", reason)
        print("".join(line + "\n" for line in log.splitlines() if line.startswith("spark:")), end="")


def main():
    options = arguments(__doc__, 900).parse_args()
    program = enter(options)
    with scratch() as directory:
        if slurm.missing():
            verdicts = Verdicts()
            verdicts.skip("freshet submit", "not installed: " + " ".join(slurm.missing()))
            return verdicts.end()
        jobs = Jobs(program, directory)
        jobs.engine("freshet")
        jobs.engine("mpi")
        jobs.lost_node()
        jobs.cancelled()
        jobs.spark()
    jobs.verdicts.end()


if __name__ == "__main__":
    main()
