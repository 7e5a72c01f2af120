#!/usr/bin/python3
"""How long training stands still when a worker is killed: freshet launch --elastic beside torchrun (gloo) and XGBoost, four
workers each on this machine, killed one at a time (SIGKILL). freshet and PyTorch train the same perceptron (784-50-10, 64
rows an update); XGBoost makes trees of depth 4 from as many rows as there are. Prints a Markdown table.

  bench/elastic_peers.py [--build build/release] [--kills 5] [--every 100]

A step is an update, of XGBoost a tree. Under torchrun all workers are ended and started again, and load the checkpoint that
our script for it makes every so many steps. XGBoost has nobody who starts workers again (Spark or Dask do): here it is this
script, which ends the others as soon as one has ended, so that the time to notice is left out. Peers that are not to be had
are left out, with a line that says so."""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from peers import SYSTEM_PYTHON, output_of, print_table, python_with, say
from scaling import write_images

HERE = pathlib.Path(__file__).resolve().parent
WORKERS, ROWS, BATCH = 4, 8192, 64
PATIENCE_S = 120  # for training to go on
ADDRESS = re.compile(r"others may join at (\S+), job")
CHANGE = re.compile(r"membership (\d+) → (\d+): (.*); ([0-9.]+) s$")

# Debian's PyTorch 1.13 does not understand its own default for these under Python 3.11; there is no worker 9.
FIX = ["--redirects", "9:1", "--tee", "9:1"]

# Every step is a line "PROCESS STEP SECONDS" of the first worker's, by a clock that all processes share.
TORCH = """
import os, sys, time
import torch
import torch.distributed as distributed
from torch import nn

images, labels, every = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
inputs = torch.frombuffer(bytearray(open(images, "rb").read()[20:]), dtype=torch.uint8).reshape(-1, 784) / 255.0
targets = torch.frombuffer(bytearray(open(labels, "rb").read()[8:]), dtype=torch.uint8).long()
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 10))
rule = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
step, share = 0, BATCH // world
if os.path.exists("checkpoint"):
    step, weights, state = torch.load("checkpoint")
    net.load_state_dict(weights)
    rule.load_state_dict(state)
while True:
    first = (step * BATCH + rank * share) % (len(inputs) - share)
    rule.zero_grad()
    nn.functional.cross_entropy(net(inputs[first:first + share]), targets[first:first + share]).backward()
    gradient = torch.cat([parameter.grad.flatten() for parameter in net.parameters()])
    distributed.all_reduce(gradient)
    at = 0
    for parameter in net.parameters():
        parameter.grad.copy_(gradient[at:at + parameter.numel()].view_as(parameter) / world)
        at += parameter.numel()
    rule.step()
    step += 1
    if rank == 0:
        os.write(1, b"%d %d %f\\n" % (os.getpid(), step, time.monotonic()))
        if step % every == 0:
            torch.save((step, net.state_dict(), rule.state_dict()), "checkpoint.new")
            os.replace("checkpoint.new", "checkpoint")
""".replace("BATCH", str(BATCH))

XGBOOST = """
import json, os, sys, time
import numpy
import xgboost

rank, every, tracker = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
with xgboost.collective.CommunicatorContext(**tracker):
    draw = numpy.random.default_rng(rank)
    inputs = draw.random((ROWS // WORKERS, 50), dtype=numpy.float32)
    rows = xgboost.QuantileDMatrix(inputs, inputs.sum(1) > 25)

    class Steps(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            step = model.num_boosted_rounds()
            if xgboost.collective.get_rank() == 0:
                os.write(1, b"%d %d %f\\n" % (os.getpid(), step, time.monotonic()))
                if step % every == 0:
                    model.save_model("checkpoint.new.ubj")
                    os.replace("checkpoint.new.ubj", "checkpoint.ubj")
            return False

    xgboost.train({"max_depth": 4, "nthread": 1, "objective": "binary:logistic"}, rows, 1000000, callbacks=[Steps()],
                  xgb_model="checkpoint.ubj" if os.path.exists("checkpoint.ubj") else None)
""".replace("ROWS", str(ROWS)).replace("WORKERS", str(WORKERS))

TRACKER = """
import json, sys
from xgboost.tracker import RabitTracker

tracker = RabitTracker(host_ip="127.0.0.1", n_workers=WORKERS)
tracker.start()
print(json.dumps(tracker.worker_args()), flush=True)
tracker.wait_for()
""".replace("WORKERS", str(WORKERS))


@dataclass
class Found:
    """What kills did to one program; seconds."""
    program: str
    gone: list = field(default_factory=list)   # without a step, when one was killed
    back: list = field(default_factory=list)   # once more, when it was let in again
    again: list = field(default_factory=list)  # steps that were made once more
    step: float = 0                            # how long one takes
    others: float = 0                          # share of the machine that other programs took meanwhile
    wrong: str = ""

    def row(self):
        def two(values, form):
            return "%s, %s" % (form % statistics.median(values), form % max(values)) if values else "–"
        return [self.program, str(len(self.gone)), two(self.gone, "%.2f s"), two(self.back, "%.2f s"),
                two(self.again, "%d"), "%.2f ms" % (1000 * self.step), "%.0f %%" % (100 * self.others), self.wrong or "ok"]


def busy():
    """Seconds that all cores were busy, those of our own processes that have ended, and of the clock."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    ours, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    return ((sum(ticks[:3]) + sum(ticks[5:7])) / os.sysconf("SC_CLK_TCK"),
            ours.ru_utime + ours.ru_stime + own.ru_utime + own.ru_stime, time.monotonic())


def measured(name, measure, *arguments):
    say(name)
    before = busy()
    found = measure(*arguments)
    all_s, ours_s, clock_s = (b - a for a, b in zip(before, busy()))
    found.others = max(0, all_s - ours_s) / clock_s / os.cpu_count()
    return found


def until(condition, limit_s=PATIENCE_S):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    return None


def children(pid):
    try:
        return [int(child) for child in pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()]
    except OSError:
        return []


def stop(process):
    """Ends it with all it has started."""
    started = [process.pid, *children(process.pid)]
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
        process.wait()


class Log:
    """What a program has written, line by line; reads what is new."""

    def __init__(self, path):
        self.file, self.reader, self.rest = path.open("w"), path.open(), ""
        self.read, self.made = [], []

    def lines(self):
        *whole, self.rest = (self.rest + self.reader.read()).split("\n")
        self.read += whole
        self.made += [(int(words[0]), int(words[1]), float(words[2])) for words in map(str.split, whole)
                      if len(words) == 3 and words[0].isdigit() and words[1].isdigit()]
        return self.read

    def steps(self):
        """(process, step, seconds) of each."""
        self.lines()
        return self.made

    def seconds_a_step(self):
        steps = self.steps()
        return statistics.median(b[2] - a[2] for a, b in zip(steps, steps[1:]) if a[0] == b[0])


class Restarted:
    """Kills workers of programs that begin anew, all of them, at a checkpoint."""

    def __init__(self, found, log, flags):
        self.found, self.log, self.flags, self.random = found, log, flags, random.Random(flags.seed)

    def trains(self):
        """So long that it went on after a checkpoint."""
        def condition():
            steps, enough = self.log.steps(), self.flags.every * 3 // 2
            return len(steps) > enough and steps[-1][0] == steps[-enough][0]
        return until(condition)

    def kill(self, workers, begin_anew=lambda: None):
        trained = self.trains()
        time.sleep(self.random.uniform(0, 2))
        before = {step[0] for step in self.log.steps()}
        os.kill(self.random.choice(workers()), signal.SIGKILL)
        begin_anew()
        after = until(lambda: next((step for step in self.log.steps() if step[0] not in before), None))
        if not trained or not after:
            self.found.wrong = "it did not go on in %d s" % PATIENCE_S
            return
        last = [step for step in self.log.steps() if step[0] in before][-1]
        self.found.gone.append(after[2] - last[2])
        self.found.again.append(last[1] - after[1] + 1)

    def kill_all(self, workers, begin_anew=lambda: None):
        for _ in range(self.flags.kills):
            if not self.found.wrong:
                self.kill(workers, begin_anew)
        if not self.found.wrong:
            self.found.step = self.log.seconds_a_step()
        return self.found


def torchrun(data, flags, work, interval):
    name = "torchrun" + (", --monitor_interval %s" % interval if interval else ", as it is")
    folder = pathlib.Path(tempfile.mkdtemp(dir=work))
    (folder / "worker.py").write_text(TORCH)
    log, errors = Log(folder / "steps"), (folder / "errors").open("w")
    job = subprocess.Popen([SYSTEM_PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", str(WORKERS), "--max_restarts",
                            "1000", *FIX, "--rdzv_backend", "c10d", "--rdzv_endpoint", "127.0.0.1:0",
                            *(["--monitor_interval", interval] if interval else []), "worker.py", *map(str, data),
                            str(flags.every)], cwd=folder, stdin=subprocess.DEVNULL, stdout=log.file, stderr=errors,
                           env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        return Restarted(Found(name), log, flags).kill_all(lambda: children(job.pid))
    finally:
        stop(job)


class Trees:
    """XGBoost's workers and their tracker, and who starts them again."""

    def __init__(self, python, folder, flags):
        self.python, self.folder, self.flags = python, folder, flags
        self.log, self.errors = Log(folder / "steps"), (folder / "errors").open("w")
        self.begin()

    def begin(self):
        self.tracker = subprocess.Popen([self.python, "-c", TRACKER], stdout=subprocess.PIPE, stderr=self.errors, text=True)
        where = self.tracker.stdout.readline().strip()
        self.workers = [subprocess.Popen([self.python, "-c", XGBOOST, str(rank), str(self.flags.every), where],
                                         cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log.file,
                                         stderr=self.errors) for rank in range(WORKERS)]

    def end(self):
        for process in [*self.workers, self.tracker]:
            process.kill()
            process.wait()

    def begin_anew(self):
        until(lambda: any(worker.poll() is not None for worker in self.workers))
        self.end()
        self.begin()


def xgboost(python, flags, work):
    trees = Trees(python, pathlib.Path(tempfile.mkdtemp(dir=work)), flags)
    try:
        found = Found("XGBoost, started again by this script")
        return Restarted(found, trees.log, flags).kill_all(lambda: [w.pid for w in trees.workers], trees.begin_anew)
    finally:
        trees.end()


def freshet(binary, data, flags, work):
    found, folder = Found("freshet launch --elastic"), pathlib.Path(tempfile.mkdtemp(dir=work))
    token, log, draw = folder / "token", Log(folder / "errors"), random.Random(flags.seed)
    token.write_bytes(os.urandom(32))
    token.chmod(0o600)
    known = ["--job", "peers", "--token-file", token]
    job = subprocess.Popen([str(part) for part in
                            [binary, "launch", "-n", WORKERS, "--elastic", "2:%d" % WORKERS, "--restarts", 1000, *known, "--",
                             "train", data[0], "--label-file", data[1], "--model", "mlp", "--batch", BATCH, "--epochs",
                             1000000, "--threads", 1, "--checkpoint", folder / "checkpoint", "--checkpoint-seconds", 1]],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log.file)

    def changes(word):
        return [m for m in map(CHANGE.search, log.lines()) if m and word in m[3]]

    try:
        if not until((folder / "checkpoint").exists):
            found.wrong = "it did not begin in %d s" % PATIENCE_S
            return found
        address = next(m[1] for m in map(ADDRESS.search, log.lines()) if m)

        def rate():
            asked = json.loads(output_of([binary, "ps", address, *known, "--json"]))
            return max(worker.get("rows_per_second", 0) for worker in asked["workers"])

        time.sleep(2)
        found.step = BATCH / (until(rate) or float("inf"))
        for _ in range(flags.kills):
            time.sleep(draw.uniform(0, 1))
            gone, come = len(changes(" is gone")), len(changes(" has come"))
            os.kill(draw.choice(children(job.pid)), signal.SIGKILL)
            if not until(lambda: len(changes(" has come")) > come):
                found.wrong = "it did not go on in %d s" % PATIENCE_S
                return found
            time.sleep(0.5)
            found.gone.append(sum(float(m[4]) for m in changes(" is gone")[gone:]))
            found.again.append(sum("repeated" in m[3] for m in changes(" is gone")[gone:]))
            found.back.append(sum(float(m[4]) for m in changes(" has come")[come:]))
    finally:
        stop(job)
    return found


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--kills", type=int, default=5, help="of each program's workers [5]")
    parser.add_argument("--every", type=int, default=100, help="steps between two checkpoints of the peers [100]")
    parser.add_argument("--seed", type=int, default=1, help="of moments and of who it hits [1]")
    parser.add_argument("--xgboost-python", default=str(HERE.parent / "build/elastic-venv/bin/python"),
                        help="has xgboost [build/elastic-venv/bin/python, else python3]")
    return parser.parse_args()


def main():
    flags = parse_flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nobody is left behind
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        binary = shutil.copy(flags.build / "apps/freshet/freshet", work / "freshet")  # ours: a build may go on meanwhile
        data = write_images(work, (1, 28, 28), ROWS)
        rows.append(measured("freshet", freshet, binary, data, flags, work))
        if python_with("torch", [SYSTEM_PYTHON]):
            for interval in ("0.1", None):
                rows.append(measured("torchrun", torchrun, data, flags, work, interval))
        else:
            print("NOTE PyTorch is NOT here (apt install python3-torch): left out\n")
        if python := python_with("xgboost", [flags.xgboost_python, "python3"]):
            rows.append(measured("XGBoost", xgboost, python, flags, work))
        else:
            print("NOTE XGBoost is NOT here (pip install xgboost-cpu): left out\n")
    print_table("One of %d workers killed, %d times; median and worst" % (WORKERS, flags.kills),
                ["program", "kills", "no step for", "and when it comes back", "steps made again", "a step",
                 "beside other programs of", ""],
                [found.row() for found in rows])
    return 1 if any(found.wrong for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
