"""A Spark standalone cluster of this machine's: a master and some workers, each a process, on any free port."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pyspark

HOME = pathlib.Path(pyspark.__file__).parent


class Cluster:
    """Started when it is made; `stop` ends all of it.

    :param folder: for logs and what executors write
    """

    def __init__(self, folder, workers=2, cores=2, memory="1g", daemon_memory="256m"):
        self._folder = pathlib.Path(folder)
        self._environment = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1",
                             "SPARK_DAEMON_MEMORY": daemon_memory, "PYSPARK_PYTHON": sys.executable,
                             "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
        self._processes = []
        try:
            self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.url = self._wait_for(r"Starting Spark master at (spark://\S+)")[0]
            for number in range(workers):
                self._start(f"worker-{number}", "worker.Worker", "--host", "127.0.0.1", "--cores", str(cores), "--memory",
                            memory, "--work-dir", str(self._folder / f"work-{number}"), "--webui-port", "0", self.url)
            self._wait_for("Registering worker", workers)
        except BaseException:
            self.stop()
            raise

    def _start(self, name, kind, *arguments):
        with open(self._folder / f"{name}.log", "wb") as log:
            self._processes.append(subprocess.Popen(
                [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", *arguments], env=self._environment,
                stdout=log, stderr=log, start_new_session=True))

    def _wait_for(self, said, times=1, seconds=180):
        """Until the master has said it so often."""
        log, end = self._folder / "master.log", time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.findall(said, log.read_text())
            if len(found) >= times:
                return found
            time.sleep(0.2)
        raise TimeoutError(f"the master has not said {said!r} {times} times within {seconds} s; see {self._folder}/*.log")

    def stop(self):
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def session(url, **settings):
    """A Spark session of two executors of two cores."""
    from pyspark.sql import SparkSession
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(url).appName("freshet")
    for name, value in {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
                        "spark.executor.cores": "2", "spark.executor.memory": "512m", "spark.cores.max": "4",
                        "spark.sql.shuffle.partitions": "4", "spark.default.parallelism": "4",
                        "spark.driver.memory": "1g", **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def processes(word):
    """Numbers of processes that have the word among what they were started with."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(entry.name))
    return found
