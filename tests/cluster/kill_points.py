#!/usr/bin/python3 -B
"""Workers of an elastic job over TCP are killed at every place of a step and of a change of their group, the first of them
and another, for every way in which they may meet: the others end with every row learned from once, and with the model
that nothing disturbed where that is promised."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from cluster import Verdicts, arguments, enter, last_line, run, scratch, sh

WORKERS, ROWS, BATCH, EPOCHS = 4, 4000, 40, 3
STEPS = ["step.begin", "step.agreed", "step.computed", "step.exchanged", "step.done"]
CHANGES = ["regroup.begin", "regroup.decided", "regroup.levelled"]
WAYS = {"ring": ["--topology", "ring"], "tree": ["--topology", "tree"], "halving": ["--topology", "halving"],
        "hierarchical": ["--topology", "hierarchical"], "exact": ["--exact"],
        "average": ["--strategy", "average", "--every", 4], "groups": ["--strategy", "groups", "--every", 4]}


class KillPoints:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.verdicts = Verdicts()
        sh("umask 077; head -c 32 /dev/urandom > token")
        self.must([program, "data", "generate", "--kind", "sea", "--rows", ROWS, "-o", "rows.csv"])
        self.must(self.train("calm") + ["--workers", 1])
        self.calm = self.loss("calm.model")
        self.jobs = 0

    def must(self, command):
        done = run(command)
        if done.code != 0:
            sys.exit(last_line(done.err))
        return done

    def train(self, name):
        return [self.program, "train", "rows.csv", "--batch", BATCH, "--epochs", EPOCHS, "--threads", 1, "--json",
                "--quiet", "-o", name + ".model"]

    def loss(self, model):
        return self.must([self.program, "evaluate", "-i", model, "rows.csv", "--json"]).json()["log_loss"]

    def job(self, way, faults, restarts=0, meanwhile=lambda agents: None):
        """Four agents with a worker each; `faults` by rank. How each ended, and what it printed."""
        self.jobs += 1
        name, port = "job%d" % self.jobs, 20000 + (os.getpid() * 131 + self.jobs * 7) % 20000
        started = []
        for rank in range(WORKERS):
            environment = dict(os.environ, **({"FRESHET_FAULT": faults[rank]} if rank in faults else {}))
            command = [self.program, "agent", "--restarts", restarts, "--"] + self.train(name)[1:] + WAYS[way] + [
                "--elastic", "1:%d" % WORKERS, "--rank", rank, "--world", WORKERS, "--rendezvous",
                "127.0.0.1:%d" % port, "--job", name, "--token-file", "token"]
            started.append(subprocess.Popen([str(word) for word in command], env=environment, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0))
        meanwhile(started)
        end, ended = time.monotonic() + 60, []
        for process in started:
            try:
                out, err = process.communicate(timeout=max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                err += "\nnot done after 60 s"
            ended.append((process.returncode, out, err))
        return name, ended

    def judge(self, way, faults):
        return self.judge_ended(way, faults, *self.job(way, faults))

    def judge_early(self, rank, after):
        """The worker of one agent is killed so long after it has started: perhaps before all have met."""
        def kill(agents):
            worker = None
            while worker is None:
                children = pathlib.Path("/proc/%d/task/%d/children" % ((agents[rank].pid,) * 2)).read_text().split()
                worker = int(children[0]) if children else None
            time.sleep(after)
            os.kill(worker, signal.SIGKILL)
        return self.judge_ended("ring", {}, *self.job("ring", {}, restarts=3, meanwhile=kill))

    def judge_ended(self, way, faults, name, ended):
        rows = []
        for rank, (code, out, err) in enumerate(ended):
            if rank in faults:
                if "signal 9" not in err:
                    return "rank %d was not killed: %s" % (rank, last_line(err))
                continue
            if code != 0:
                return "rank %d: exit code %d: %s" % (rank, code, last_line(err))
            if "{" in out:
                rows.append(json.loads(out[out.index("{"):])["rows"])
        if not rows or set(rows) != {ROWS * EPOCHS}:
            return "rows learned from: %s, not %d" % (rows, ROWS * EPOCHS)
        apart = abs(self.loss(name + ".model") - self.calm)
        bound = 1e-6 if way not in ("average", "groups") else 0.05 * self.calm
        return "" if apart <= bound else "another model: its loss differs by %g" % apart


def main():
    parser = arguments(__doc__, 1200)
    parser.add_argument("--ways", default=",".join(WAYS), help="which of them (%(default)s)")
    options = parser.parse_args()
    program = enter(options)
    with scratch() as directory:
        points = KillPoints(program, directory)
        for way in options.ways.split(","):
            for who, rank in (("the first", 0), ("another", 2)):
                for place in STEPS + CHANGES:
                    faults = {rank: place + (":9:kill" if place in STEPS else ":1:kill")}
                    if place in CHANGES:
                        faults[1] = "step.computed:9:kill"
                    points.verdicts.check("%s: %s killed at %s" % (way, who, place), points.judge(way, faults))
        for rank in (0, 2):
            for after in (0, 0.005, 0.02, 0.05):
                points.verdicts.check("rank %d killed %g s after it has started" % (rank, after), points.judge_early(rank, after))
    points.verdicts.end()


if __name__ == "__main__":
    main()
