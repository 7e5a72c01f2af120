#!/usr/bin/python3 -B
"""Elastic training with real processes: eight workers under freshet launch, mpirun and srun are killed and frozen at
random moments, also while they recover and as they come back. Training has to end with the model that nothing would have
disturbed, each row learned from once in every epoch, nobody left behind. Killed launchers and agents end the job. Then
the same with a parameter server in every synchrony, and by gossip, whose model has to be as good; and on a ring, whose
members each have some columns of a model, or some layers of a network, with faults one at a time."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import slurm
from cluster import Verdicts, arguments, enter, last_line, run, scratch, sh

WORKERS, ROWS, BATCH = 8, 24000, 48
SYNCHRONIES = ["bsp", "ssp:3", "asp:0.01", "bap"]
GOSSIPS = ["pairs", "push-sum", "walk"]
KINDS = ["killed", "frozen", "killed while they recover", "killed as it comes back"]
ONE_AT_A_TIME = [kind for kind in KINDS if kind != "killed while they recover"]  # as neighbours on a ring must be
GOSSIP_EPOCHS = 25  # while others make one
LAYERS, LAYERS_BATCH = "input = 'data'\nlayers = [%s{dense = 'classes'}]\n" % (11 * "{dense = 8, activation = 'tanh'}, "), 96
CHANGE = re.compile(r"membership (\d+) → (\d+): (.*); ([0-9.]+) s$")


def cmdline(pid):
    try:
        return pathlib.Path("/proc/%s/cmdline" % pid).read_bytes().split(b"\0")
    except OSError:
        return []


def processes(verb):
    """Of freshet, that do this."""
    found = []
    for name in os.listdir("/proc"):
        words = cmdline(name) if name.isdigit() else []
        if len(words) > 1 and words[0].endswith(b"freshet") and words[1] == verb.encode():
            found.append(int(name))
    return found


def signal_one(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Elastic:
    def __init__(self, program, directory, options):
        self.program, self.directory, self.options = program, directory, options
        self.verdicts = Verdicts()
        self.random = random.Random(options.seed)
        self.gaps = {"killed": [], "frozen": []}
        sh("umask 077; head -c 32 /dev/urandom > token")
        self.must([program, "data", "generate", "--kind", "sea", "--rows", ROWS, "-o", "rows.csv"])
        self.calm = self.undisturbed(["--batch", BATCH])

    def must(self, command):
        done = run(command)
        if done.code != 0:
            sys.exit(last_line(done.err))
        return done

    def undisturbed(self, flags):
        """The loss that one worker alone comes to."""
        self.must([self.program, "train", "rows.csv", "--epochs", self.options.epochs, "-o", "calm.model"] + flags)
        return self.loss("calm.model")

    def loss(self, model):
        return self.must([self.program, "evaluate", "-i", model, "rows.csv", "--json"]).json()["log_loss"]

    def train(self, name, times=1, batch=BATCH):
        return ["train", "rows.csv", "--batch", batch, "--epochs", times * self.options.epochs, "--threads", 1,
                "--checkpoint", name + ".ck", "--checkpoint-seconds", 1, "--json", "-o", name + ".model"]

    def begin(self, name, command):
        """Starts a job and waits until it trains."""
        for old in self.directory.glob(name + ".*"):
            old.unlink()
        self.out, self.err = self.directory / (name + ".out"), self.directory / (name + ".err")
        job = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=self.out.open("w"),
                               stderr=self.err.open("w"), process_group=0)
        self.until(job, lambda: (self.directory / (name + ".ck")).exists(), 30)
        return job

    def until(self, job, condition, limit_s):
        end = time.monotonic() + limit_s
        while time.monotonic() < end and job.poll() is None:
            if condition():
                return True
            time.sleep(0.01)
        return condition()

    def changes(self):
        return [m for m in map(CHANGE.search, self.err.read_text().splitlines()) if m]

    def disturb(self, job, what):
        """One fault, from which they recover; how long there was no step."""
        before, there = len(self.changes()), processes("train")
        victim = self.random.choice(there)
        signal_one(victim, signal.SIGSTOP if what == "frozen" else signal.SIGKILL)
        if what == "killed as it comes back":
            new = lambda: [pid for pid in processes("train") if pid not in there]
            self.until(job, new, 15)
            time.sleep(self.random.uniform(0, 0.2))
            for pid in new():
                signal_one(pid, signal.SIGKILL)
        if not self.until(job, lambda: any(" is gone" in m[3] for m in self.changes()[before:]), 15):
            return None
        if what == "killed while they recover":
            signal_one(self.random.choice(processes("train")), signal.SIGKILL)
        # All are there again: two who were killed at once are two who come back.
        back = lambda: len(processes("train")) == WORKERS and self.changes()[-1][2] == str(WORKERS)
        if not self.until(job, back, 25):
            return None
        return max(float(m[4]) for m in self.changes()[before:])

    def moments(self, name, command, most_apart=1e-6, times=1, kinds=KINDS, calm=None):
        job = self.begin(name, command)
        injected, stuck = {}, ""
        for number in range(self.options.moments):
            what = kinds[number % len(kinds)]
            time.sleep(self.random.uniform(0, 0.5))
            gap = self.disturb(job, what)
            if job.poll() is not None:
                break
            if gap is None:
                stuck = "did not recover from fault %d (%s)" % (number + 1, what)
                break
            injected[what] = injected.get(what, 0) + 1
            self.gaps["frozen" if what == "frozen" else "killed"].append(gap)
        try:
            code = job.wait(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            code, stuck = job.wait(), stuck or "not done after 300 s"
        reason = stuck or self.judge(name, code, most_apart, ROWS * times * self.options.epochs, calm or self.calm)
        if reason and self.options.show:
            print(self.err.read_text())
        told = ", ".join("%d %s" % (count, what) for what, count in injected.items())
        self.verdicts.check("%s, %d workers: %s" % (name, WORKERS, told), reason)

    def judge(self, name, code, most_apart, wanted, calm):
        if code != 0:
            return "exit code %d: %s" % (code, last_line(self.err.read_text()))
        text = self.out.read_text()
        rows = json.loads(text[text.index("{"):])["rows"]
        if rows != wanted:
            return "%d rows were learned from, not %d" % (rows, wanted)
        apart = abs(self.loss(name + ".model") - calm)
        if apart > most_apart:
            return "another model: its loss differs by %g" % apart
        return self.left_behind()

    def left_behind(self):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            left = processes("train") + processes("agent") + processes("launch")
            if not left:
                return ""
            time.sleep(0.05)
        return "left behind after 5 s: %s" % left

    def ends(self, name, command, verb, what):
        """Who holds the workers is killed: the job ends, and nobody is left."""
        job = self.begin(name, command)
        time.sleep(self.random.uniform(0, 1))
        signal_one(self.random.choice(processes(verb)), signal.SIGKILL)
        try:
            code = job.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            code = 0
        reason = "it did not end, or as if nothing were wrong" if code == 0 else self.left_behind()
        if not (self.directory / (name + ".ck")).exists():
            reason = reason or "no checkpoint is there"
        self.verdicts.check("%s (exit code %d)" % (what, code), reason)

    def show_gaps(self):
        for what, median, worst in (("killed", 1, 2), ("frozen", 5, 5)):
            gaps = self.gaps[what]
            if not gaps:
                continue
            middle, most = statistics.median(gaps), max(gaps)
            reason = "" if middle <= median and most <= worst else "expected at most %g s and %g s" % (median, worst)
            self.verdicts.check("no step for %.2f s (median), %.2f s (worst) when one was %s, of %d" %
                                (middle, most, what, len(gaps)), reason)


def launchers(elastic, program, directory, launch, bounds):
    agent = [program, "agent", "--restarts", 1000, "--"]
    elastic.moments("launch", launch + elastic.train("launch"))
    elastic.ends("orphans", launch + elastic.train("orphans"), "launch", "freshet launch killed")
    mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", WORKERS]
    if shutil.which(mpirun[0]):
        elastic.moments("mpirun", mpirun + agent + elastic.train("mpirun") + bounds)
        elastic.ends("agent", mpirun + agent + elastic.train("agent") + bounds, "agent", "an agent under mpirun killed")
    else:
        elastic.verdicts.skip("mpirun", "it is not installed")
    if slurm.missing():
        elastic.verdicts.skip("srun", "not installed: " + " ".join(slurm.missing()))
    else:
        slurm.start(directory, 4)
        elastic.moments("srun", ["srun", "-N4", "-n%d" % WORKERS, "--overcommit"] + agent + elastic.train("srun") +
                        bounds + ["--token-file", directory / "token"])


def main():
    parser = arguments(__doc__, 900)
    parser.add_argument("--moments", type=int, default=8, help="faults under each launcher (%(default)s)")
    parser.add_argument("--epochs", type=int, default=40, help="how long a run is (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    for alone, what in (("servers", "parameter servers"), ("gossip", "gossip"), ("ring", "rings")):
        parser.add_argument("--%s-alone" % alone, action="store_true", help="%s only, under freshet launch" % what)
    parser.add_argument("--show", action="store_true", help="show what failed runs print")
    options = parser.parse_args()
    program = enter(options)
    with scratch() as directory:
        elastic = Elastic(program, directory, options)
        bounds = ["--elastic", "3:%d" % WORKERS]
        launch = [program, "launch", "-n", WORKERS] + bounds + ["--restarts", 1000, "--"]
        some = options.servers_alone or options.gossip_alone or options.ring_alone
        if not some:
            launchers(elastic, program, directory, launch, bounds)
        for synchrony in SYNCHRONIES if options.servers_alone or not some else []:  # two are killed at a time
            name = "server-" + synchrony.split(":")[0]
            elastic.moments(name, launch + elastic.train(name) + ["--strategy", "server", "--synchrony", synchrony,
                                                                  "--replicas", 3], most_apart=0.01 * elastic.calm)
        for gossip in GOSSIPS if options.gossip_alone or not some else []:
            elastic.moments(gossip, launch + elastic.train(gossip, GOSSIP_EPOCHS) + ["--strategy", "gossip", "--gossip",
                                                                                      gossip],
                            most_apart=0.01 * elastic.calm, times=GOSSIP_EPOCHS)
        for every in [1, 16] if options.ring_alone or not some else []:
            name = "ring-copies-every-%d" % every
            elastic.moments(name, launch + elastic.train(name) + ["--strategy", "ring", "--copy-every", every],
                            kinds=ONE_AT_A_TIME)
        if options.ring_alone or not some:
            pathlib.Path("layers.toml").write_text(LAYERS)
            network = ["--model", "layers.toml"]
            calm = elastic.undisturbed(network + ["--batch", LAYERS_BATCH, "--accumulate", LAYERS_BATCH // 4])
            elastic.moments("ring-layers", launch + elastic.train("ring-layers", batch=LAYERS_BATCH) + network +
                            ["--strategy", "ring"], most_apart=0.005 * calm, kinds=ONE_AT_A_TIME, calm=calm)
        elastic.show_gaps()
    elastic.verdicts.end()


if __name__ == "__main__":
    main()
