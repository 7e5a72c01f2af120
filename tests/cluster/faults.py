#!/usr/bin/python3 -B
"""Kills, freezes and cuts off workers at random moments of training by all-reduce: on three hosts (network namespaces)
and with three processes of one host, which share memory. Every other worker has to end within 5 s with exit code 4 and
one line that names the rank and host that is gone and what it was waiting for; then the same command has to go on from
the checkpoint to the same bytes as a run that nobody disturbed.

FRESHET_FAULTS=n (20) is the number of moments for each kind of fault; --seed makes others."""
import os
import random
import re
import signal
import subprocess
import sys
import time

from cluster import Hosts, Verdicts, arguments, digest, enter, last_line, run, scratch, together, workers

NAMES = ["alpha", "beta", "gamma"]
PATIENCE_S = 5
# Exchanges are most of it: a batch of 20 rows for each worker, 1.3 MB of gradients.
NETWORK = """input = "data"
layers = [{dense = 512, activation = "relu"}, {dense = 512, activation = "relu"}, {dense = "classes"}]
"""
TRAIN = ["train", "rows.csv", "--model", "net.toml", "--epochs", "6", "--batch", "60", "--topology", "ring", "--quiet",
         "--threads", "1", "--checkpoint", "run.ckpt", "--checkpoint-seconds", "0.3", "-o", "out.model"]
LINE = re.compile(r"\[rank (?P<who>\d)\] freshet: rank (?P<lost>\d) \((?P<host>[\w.-]+)\) is gone: (?P<why>[^;]+); "
                  r"rank (?P=who) was (?P<doing>(waiting for|sending|about to (receive|send)) .*(from|to) rank \d\b.*)")


class Setting:
    """Where three workers run, and what can happen to them there."""

    def __init__(self, name, flags, faults, host_of):
        self.name, self.flags, self.faults, self.host_of = name, flags, faults, host_of


class Faults:
    def __init__(self, program, directory, seed):
        self.program, self.verdicts, self.random = program, Verdicts(), random.Random(seed)
        (directory / "net.toml").write_text(NETWORK)
        made = run([program, "data", "generate", "--kind", "hyperplane", "--features", 100, "--rows", 3000, "-o",
                    "rows.csv"])
        if made.code != 0:
            sys.exit("data generate: " + last_line(made.err))
        self.hosts = Hosts(directory, NAMES)
        machine = os.uname().nodename
        self.settings = [
            Setting("three hosts", ["-H", ",".join(NAMES), "--ssh", self.hosts.ssh], ["kill", "freeze", "cut off"],
                    lambda rank: NAMES[rank]),
            Setting("one host", ["-n", 3], ["kill", "freeze"], lambda rank: machine)]

    def command(self, setting):
        return [str(part) for part in [self.program, "launch", *setting.flags, "--grace", 2, "--"] + TRAIN]

    def forget(self):
        for name in ("run.ckpt", "out.model"):
            if os.path.exists(name):
                os.remove(name)

    def start(self, setting, errors):
        """Starts training and waits until the workers have found each other."""
        self.forget()
        launch = subprocess.Popen(self.command(setting), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=errors)
        there = {}
        while launch.poll() is None and not together(there, 3):
            for worker in there.values():
                worker.close()
            time.sleep(0.005)
            there = workers()
        return launch, there

    def undisturbed(self, setting):
        """How long they train, and what comes out."""
        with open("launch.err", "w+") as errors:
            launch, _ = self.start(setting, errors)
            began = time.monotonic()
            self.end(launch)
            seconds = time.monotonic() - began
            errors.seek(0)
            if launch.returncode != 0:
                sys.exit("%s: %s" % (setting.name, last_line(errors.read())))
        print("%s, undisturbed: %.1f s, model %s" % (setting.name, seconds, digest("out.model")), flush=True)
        return seconds, digest("out.model")

    def inflict(self, fault, victim, host):
        if fault == "kill":
            os.kill(victim.pid, signal.SIGKILL)
        elif fault == "freeze":
            os.kill(victim.pid, signal.SIGSTOP)
        else:
            self.hosts.link(host, "down")

    def heal(self, fault, host):
        if fault == "cut off":
            self.hosts.link(host, "up")

    def disturb(self, setting, fault, moment_s):
        """What the others did when it happened; nothing when the run was over before."""
        lost = self.random.randrange(3)
        with open("launch.err", "w+") as errors:
            launch, there = self.start(setting, errors)
            time.sleep(moment_s)
            if launch.poll() is not None or any(worker.ended() for worker in there.values()):
                self.end(launch)
                return None
            began = time.monotonic()
            self.inflict(fault, there[lost], setting.host_of(lost))
            others = [there[rank] for rank in sorted(there) if rank != lost]
            seconds = self.wait_for(others, began)
            self.heal(fault, setting.host_of(lost))
            self.end(launch)
            errors.seek(0)
            said = errors.read()
        codes = [worker.exit_code() for worker in others]
        for worker in there.values():
            worker.close()
        if set(codes) == {0}:
            return None  # all had been said already
        return {"lost": lost, "seconds": seconds, "codes": codes, "said": said}

    def end(self, launch):
        try:
            launch.wait(60)
        except subprocess.TimeoutExpired:
            self.verdicts.check("freshet launch ends", "it was there 60 s after its workers should have been gone")
            launch.kill()
            launch.wait()

    def wait_for(self, others, began):
        """Seconds until the last of them had ended; waits somewhat longer than they may take."""
        ended = {}
        while len(ended) < len(others) and time.monotonic() < began + 3 * PATIENCE_S:
            for worker in others:
                if worker.rank not in ended and worker.ended():
                    ended[worker.rank] = time.monotonic() - began
            time.sleep(0.005)
        return max(ended.values()) if len(ended) == len(others) else None

    def judge(self, setting, outcome):
        """What is wrong, and the lines of those who were left."""
        lines, wrong = [], []
        if outcome["seconds"] is None or outcome["seconds"] > PATIENCE_S:
            wrong.append("the others were there after %d s" % PATIENCE_S)
        for code in outcome["codes"]:
            if code not in (4, None):
                wrong.append("exit code %d" % code)
        for rank in set(range(3)) - {outcome["lost"]}:
            its = [line for line in outcome["said"].splitlines() if line.startswith("[rank %d]" % rank)]
            match = LINE.fullmatch(its[0]) if len(its) == 1 else None
            if match is None:
                wrong.append("rank %d said %s" % (rank, its or "nothing"))
            elif (int(match["lost"]), match["host"]) != (outcome["lost"], setting.host_of(outcome["lost"])):
                wrong.append("rank %d names rank %s (%s)" % (rank, match["lost"], match["host"]))
            lines += its
        return "; ".join(wrong), lines

    def resume(self, setting, expected):
        """What is wrong with the same command, run once more; and where it went on."""
        done = run(self.command(setting), environment={"FRESHET_LOG": "info"})
        resumed = re.search(r"\[rank 0\] .*resumed .*rows=(\d+)", done.err)
        where = "from row %s" % resumed[1] if resumed else "from the start"
        if done.code != 0:
            return "resuming: exit code %d: %s" % (done.code, last_line(done.err)), where
        return "" if digest("out.model") == expected else "resumed to another model, " + digest("out.model"), where

    def one(self, setting, fault, whole_s, expected, number):
        moment_s = whole_s * self.random.uniform(0, 0.8)
        outcome = self.disturb(setting, fault, moment_s)
        while outcome is None and moment_s > 0.01:  # it was faster this time
            moment_s *= 0.7
            outcome = self.disturb(setting, fault, moment_s)
        if outcome is None:
            return self.verdicts.check("%s, %s" % (setting.name, fault), "training was over before anything happened")
        wrong, lines = self.judge(setting, outcome)
        after, where = self.resume(setting, expected)
        what = "%-11s %-7s %2d  at %4.1f s  rank %d  all gone after %s s, then %s" % (
            setting.name, fault, number, moment_s, outcome["lost"],
            "?" if outcome["seconds"] is None else "%.2f" % outcome["seconds"], where)
        self.verdicts.check(what, "; ".join(part for part in (wrong, after) if part))
        for line in lines:
            print("      " + line)
        if None in outcome["codes"]:
            self.verdicts.skip("exit codes of the others", "this kernel does not tell them")


def main():
    parser = arguments(__doc__, 3600)
    parser.add_argument("--moments", type=int, default=int(os.environ.get("FRESHET_FAULTS", 20)), metavar="N",
                        help="for each kind of fault (FRESHET_FAULTS, or 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of moments and of who it hits (%(default)s)")
    options = parser.parse_args()
    program = enter(options)
    with scratch() as directory:
        faults = Faults(program, directory, options.seed)
        for setting in faults.settings:
            whole_s, expected = faults.undisturbed(setting)
            for fault in setting.faults:
                for number in range(options.moments):
                    faults.one(setting, fault, whole_s, expected, number)
    faults.verdicts.end()


main()
