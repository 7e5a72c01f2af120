#!/usr/bin/python3
"""One run whose workers become more and fewer: GoogLeNet on small images begins with two, six more join, five are killed,
and three come to the end. Reads `freshet ps` once a second and prints what it saw as a Markdown table: rows learned from in
a second, by how many. Then whether the membership followed, for how long there was no step, whether speed was back within
5 s of every change, and how far the model is from that of a run that nothing disturbed.

  bench/elastic_growth.py [--build build/release] [--model googlenet] [--size 80] [--batch 32] [--hold 20]

Eight workers are faster than two where each has a core. With fewer cores they cannot be: then rows a second have to stay
within a factor of 2. Takes about ten minutes on two cores, which it must have for itself; --tiny is a small network and says
nothing about speed."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from peers import output_of, print_table, say, verdict

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, MOST, LAST = 2, 8, 3
FOLLOWS_S, FACTOR, LOSS_SHARE = 5, 2, 0.005
PATIENCE_S = 120
ADDRESS = re.compile(r"others may join at (\S+), job")
CHANGE = re.compile(r"membership (\d+) → (\d+): (.*); step (\d+).*; ([0-9.]+) s$")
SHAPES = {"googlenet": (3, None, None), "lenet5": (1, 28, 28), "mlp": (1, 28, 28)}


def write_images(directory, shape, rows):
    """An idx file of ten patterns under noise, and one of labels, of which a quarter is wrong, so that there is something to
    lose for long. Pixels are added as one long number: none overflows."""
    noise = random.Random(1)
    channels, height, width = shape
    few = int.from_bytes(b"\x7f" * (height * width * channels))
    patterns = []
    for _ in range(10):
        coarse = [[[noise.randrange(128) for _ in range(4)] for _ in range(4)] for _ in range(channels)]
        patterns.append(int.from_bytes(bytes(coarse[c][4 * y // height][4 * x // width] for c in range(channels)
                                             for y in range(height) for x in range(width))))
    images, labels = directory / "patterns-images-idx4-ubyte", directory / "patterns-labels-idx1-ubyte"
    classes = bytes(noise.randrange(10) for _ in range(rows))
    with open(images, "wb") as file:
        file.write(struct.pack(">BBBB4I", 0, 0, 8, 4, rows, *shape))
        for label in classes:
            pixels = channels * height * width
            file.write((patterns[label] + (int.from_bytes(noise.randbytes(pixels)) & few)).to_bytes(pixels))
    told = bytes(noise.randrange(10) if row % 4 == 0 else label for row, label in enumerate(classes))
    labels.write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, rows) + told)
    return images, labels


@dataclass
class Sight:
    """What freshet ps showed."""
    seconds: float
    members: int
    rows: int


class Looks:
    """Asks freshet ps once a second, also while it still waits for a worker that is gone; who is asked first answers first,
    so that its rows are those of the moment when it was asked."""

    def __init__(self, command):
        self.command, self.asked, self.sights = [str(part) for part in command], [], []
        self.over, self.looker = threading.Event(), threading.Thread(target=self.look, daemon=True)
        self.looker.start()

    def look(self):
        while not self.over.wait(1):
            self.asked.append((time.monotonic(), subprocess.Popen(self.command, stdout=subprocess.PIPE,
                                                                  stderr=subprocess.DEVNULL, text=True)))

    def end(self):
        self.over.set()
        self.looker.join()
        for seconds, process in self.asked:
            answer = process.communicate()[0]
            if process.returncode == 0:
                workers = json.loads(answer)["workers"]
                self.sights.append(Sight(seconds, len(workers), workers[0].get("rows", 0)))
        return [sight for sight in self.sights if sight.rows > 0]


class Run:
    def __init__(self, binary, work, data, flags):
        self.binary, self.work, self.flags, self.data = binary, work, flags, data
        self.train = ["train", *data_flags(data), "--model", flags.model, "--batch", flags.batch, "--epochs", flags.epochs,
                      "--rate", flags.rate, "--threads", 1, "--json", "-o", work / "run.model"]
        (work / "token").write_bytes(os.urandom(32))
        (work / "token").chmod(0o600)
        self.known = ["--job", "growth", "--token-file", work / "token"]
        self.joined, self.events = [], []

    def start(self, command, name):
        return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                stdout=(self.work / (name + ".out")).open("w"),
                                stderr=(self.work / (name + ".err")).open("w"), process_group=0)

    def said(self):
        return (self.work / "run.err").read_text()

    def changes(self):
        return [m for m in map(CHANGE.search, self.said().splitlines()) if m]

    def until(self, condition, what):
        """Ends the benchmark when it takes too long, or training is over before."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.job.poll() is None:
            if condition():
                return
            time.sleep(0.05)
        raise SystemExit("FAIL: %s: %s\n%s" % (what, "not so after %d s" % PATIENCE_S if self.job.poll() is None else
                                              "training was over before", self.said()[-2000:]))

    def until_workers(self, number):
        self.until(lambda: (self.changes() or [{2: BEGIN}])[-1][2] in (number, str(number)), "%d workers" % number)

    def hold(self):
        """As it is, for a while."""
        end = time.monotonic() + self.flags.hold
        self.until(lambda: time.monotonic() >= end, "to stay for %g s" % self.flags.hold)

    def note(self, what):
        self.events.append((time.monotonic(), what))
        say(what)

    def run(self):
        self.job = self.start([self.binary, "launch", "-n", BEGIN, "--elastic", "1:%d" % MOST, *self.known, "--",
                               *self.train], "run")
        looks = None
        try:
            self.until(lambda: ADDRESS.search(self.said()), "it begins")
            self.address = ADDRESS.search(self.said())[1]
            looks = Looks([self.binary, "ps", self.address, *self.known, "--json"])
            self.until(lambda: "rows" in self.said() and self.said().count("\n") > 3, "it learns")
            self.grow_and_shrink()
            self.job.wait()
        finally:
            for process in [self.job, *self.joined]:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            self.sights = looks.end() if looks else []

    def grow_and_shrink(self):
        self.note("%d workers" % BEGIN)
        self.hold()
        self.note("%d more are started" % (MOST - BEGIN))
        for number in range(MOST - BEGIN):
            self.joined.append(self.start([self.binary, "join", self.address, *self.known, "--restarts", 0, "--",
                                           *self.train], "joined.%d" % number))
        self.until_workers(MOST)
        self.note("all %d are in" % MOST)
        self.hold()
        for left in (MOST - 1, MOST - 2):  # nobody can prove that these have ended: the others are more than half
            self.note("one is killed, and its agent")
            agent = self.joined.pop()
            self.kill([agent.pid, *children(agent.pid)])
            agent.wait()
            self.until_workers(left)
            time.sleep(self.flags.hold / 4)
        self.note("%d are killed at once" % (MOST - 2 - LAST))  # their agents prove it: half would not do else
        self.kill([pid for agent in self.joined[LAST - BEGIN:] for pid in children(agent.pid)])
        self.until_workers(LAST)
        self.hold()

    def kill(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def calm(self):
        say("undisturbed")
        job = self.start([self.binary, "launch", "-n", BEGIN, "--", *self.train, "-o", self.work / "calm.model"], "calm")
        if job.wait() != 0:
            raise SystemExit("FAIL: the undisturbed run\n" + (self.work / "calm.err").read_text()[-2000:])

    def report(self, name):
        text = (self.work / (name + ".out")).read_text()
        return json.loads(text[text.index("{"):])

    def evaluate(self, name):
        command = [self.binary, "evaluate", "--json", "-i", self.work / (name + ".model"), *data_flags(self.data)]
        return json.loads(output_of([str(part) for part in command]))["log_loss"]

    def rates(self):
        """(seconds, members, rows a second since the sight before)."""
        return [(b.seconds, b.members, (b.rows - a.rows) / (b.seconds - a.seconds))
                for a, b in zip(self.sights, self.sights[1:])]


def data_flags(data):
    return [data[0], "--label-file", data[1]]


def children(pid):
    try:
        return [int(child) for child in pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()]
    except OSError:
        return []


def table(run):
    """A line for every 5 s, and one for everything that happened."""
    begin, end = run.sights[0].seconds, run.sights[-1].seconds
    lines = [(seconds, ["%.0f s" % (seconds - begin), "", "", what]) for seconds, what in run.events]
    while begin + 5 * (len(lines) - len(run.events) + 1) <= end:
        until = begin + 5 * (len(lines) - len(run.events) + 1)
        part = [rate for rate in run.rates() if until - 5 < rate[0] <= until] or [(until, 0, 0)]
        lines.append((until, ["%.0f s" % (until - begin), "%d" % part[-1][1],
                              "%.1f" % statistics.fmean(rate for _, _, rate in part), ""]))
    return [line for _, line in sorted(lines)]


def longest_stand(run):
    """Seconds in which no row was learned from, as far as one look a second shows."""
    longest, since = 0, run.sights[0]
    for sight in run.sights[1:]:
        longest = max(longest, sight.seconds - since.seconds)
        if sight.rows > since.rows:
            since = sight
    return longest


def speeds(run):
    """The median of each number of workers that stayed for a while."""
    by_members = {}
    for _, members, rate in run.rates():
        by_members.setdefault(members, []).append(rate)
    return {members: statistics.median(by_members[members]) for members in (BEGIN, MOST, LAST) if members in by_members}


def slowest_to_follow(run, speed):
    """After every change of the number of workers: until rows were learned from at half of that number's speed."""
    slowest, rates = 0, run.rates()
    for index in range(1, len(rates)):
        if rates[index][1] == rates[index - 1][1]:
            continue
        begin = rates[index - 1][0]
        usual = speed.get(rates[index][1], min(speed.values()))
        follows = next((at for at, _, rate in rates[index:] if rate >= usual / FACTOR), None)
        slowest = max(slowest, (follows - begin) if follows else float("inf"))
    return slowest


def together(why):
    """What several of them did is said once."""
    parts = why.split("; ")
    return "; ".join(("%d × " % parts.count(part) if parts.count(part) > 1 else "") + part for part in dict.fromkeys(parts))


def judge(run, flags):
    cores, speed = len(os.sched_getaffinity(0)), speeds(run)
    report, calm = run.report("run"), run.report("calm")
    loss, calm_loss = run.evaluate("run"), run.evaluate("calm")
    changes, stand = run.changes(), longest_stand(run)
    told, follows = max(float(m[5]) for m in changes), slowest_to_follow(run, speed)
    seen, lost = {sight.members for sight in run.sights}, sum(m[3].count(" is gone") for m in changes)
    rows = [["workers", "%s" % ", ".join(map(str, sorted(seen))), "%d, %d and %d among them" % (BEGIN, MOST, LAST),
             {BEGIN, MOST, LAST} <= seen],
            ["workers lost", "%d" % lost, "%d, as killed" % (MOST - LAST), lost == MOST - LAST],
            ["no step, as members tell", "%.2f s" % told, "≤ %d s" % FOLLOWS_S, told <= FOLLOWS_S],
            ["no step, as seen once a second", "%.1f s" % stand, "≤ %d s and a look" % FOLLOWS_S, stand <= FOLLOWS_S + 1.5],
            ["at half the speed again after a change", "%.1f s" % follows, "≤ %d s and a look" % FOLLOWS_S,
             follows <= FOLLOWS_S + 1.5]]
    for members in (MOST, LAST):
        wanted = speed[BEGIN] * (min(cores, members) / min(cores, BEGIN)) / FACTOR
        rows.append(["rows/s of %d, times those of %d" % (members, BEGIN), "%.2f" % (speed[members] / speed[BEGIN]),
                     "≥ %.2f" % (wanted / speed[BEGIN]), speed[members] >= wanted])
    rows.append(["rows", "%d" % report["rows"], "%d" % calm["rows"], report["rows"] == calm["rows"]])
    losses = [("log loss of the first epoch", report["progressive"]["log_loss"], calm["progressive"]["log_loss"]),
              ("log loss of the last epoch", report["last_epoch"]["log_loss"], calm["last_epoch"]["log_loss"]),
              ("log loss at the end", loss, calm_loss)]
    for what, found, wanted in losses:
        apart = abs(found - wanted) / wanted
        rows.append([what, "%.6f" % found, "%.6f within %.1f %%" % (wanted, 100 * LOSS_SHARE), apart <= LOSS_SHARE])
    if cores < MOST:
        print("NOTE %d cores: %d workers CANNOT be faster than %d here; whether more are faster is NOT shown\n" %
              (cores, MOST, cores))
    passed = [row[3] for row in rows]
    if flags.tiny:
        passed = [row[3] for row in rows if row[0].split()[0] in ("workers", "rows", "log") and "rows/s" not in row[0]]
    print_table("%s, %d rows an update" % (flags.model, flags.batch), ["what", "found", "bar", ""],
                [[*row[:3], verdict(row[3])] for row in rows])
    print_table("Changes", ["from", "to", "why", "step", "no step for"],
                [[m[1], m[2], together(m[3]), m[4], m[5] + " s"] for m in changes])
    return all(passed)


def settle(binary, work, data, flags):
    """How many epochs last as long as all phases, by a short run."""
    command = [binary, "launch", "-n", BEGIN, "--", "train", *data_flags(data), "--model", flags.model, "--batch",
               flags.batch, "--epochs", 1, "--rate", flags.rate, "--threads", 1, "--json", "--quiet"]
    report = json.loads(output_of([str(part) for part in command]))
    rate = report["rows"] / report["train_seconds"]
    say("%.1f rows/s by %d workers" % (rate, BEGIN))
    return max(1, round((4 * flags.hold + 20) * rate / flags.rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--model", default="googlenet", choices=SHAPES, help="the network [googlenet]")
    parser.add_argument("--size", type=int, default=80, help="pixels of an image's side [80]")
    parser.add_argument("--batch", type=int, default=32, help="rows of an update [32]")
    parser.add_argument("--rows", type=int, default=640, help="images [640]")
    parser.add_argument("--rate", type=float, default=0.002, help="of learning [0.002]")
    parser.add_argument("--epochs", type=int, help="[as many as take long enough]")
    parser.add_argument("--hold", type=float, default=20, help="seconds at each number of workers [20]")
    parser.add_argument("--tiny", action="store_true", help="lenet5 for a minute; times say nothing")
    flags = parser.parse_args()
    if flags.tiny:
        flags.model, flags.hold, flags.rows = "lenet5", 3, 2000
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nobody is left behind
    shape = tuple(extent or flags.size for extent in SHAPES[flags.model])
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        binary = shutil.copy(flags.build / "apps/freshet/freshet", work / "freshet")  # ours: a build may go on meanwhile
        data = write_images(work, shape, flags.rows)
        flags.epochs = flags.epochs or settle(binary, work, data, flags)
        run = Run(binary, work, data, flags)
        run.run()
        run.calm()
        print_table("Workers over time", ["at", "workers", "rows/s", ""], table(run))
        passed = judge(run, flags)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
