#!/usr/bin/python3
"""Freshet beside scikit-learn, LIBLINEAR and Vowpal Wabbit: one pass from text to a saved model on two data sets, the
quality of the defaults, and the memory of training. Prints Markdown tables; docs/benchmarks.md explains them.

  bench/peers.py [--rounds 3] [--build build/release] [--data DIRECTORY]

Programs are run in turn, round after round. What is reported is the best round of a peer and the median of all our own
runs. Peers or data sets that are not to be had are left out, with a line that says so. This file imports nothing big: a
child's peak memory would begin at ours."""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
OUR_RUNS_PER_ROUND = 3
MOST_SECONDS = 120  # for one run; a program that takes longer hangs
URL_ROWS, URL_TEST_ROWS, URL_FEATURES = 200_000, 20_000, 3_231_961
SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's python3-sklearn belongs to it


def say(text):
    print(text, file=sys.stderr, flush=True)


def output_of(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@dataclass
class Finished:
    seconds: float
    peak_bytes: int
    output: str


def run(command):
    """Runs a command to its end: wall seconds, peak memory, standard output."""
    os.sync()  # what others have written should not reach the disk on this one's time
    with tempfile.TemporaryFile("w+") as out:
        begun = time.perf_counter()
        child = subprocess.Popen([str(part) for part in command], stdout=out, stderr=subprocess.PIPE)
        deadline = threading.Timer(MOST_SECONDS, child.kill)
        deadline.start()
        errors = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        deadline.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError("%s ended with %d after %.0f s\n%s"
                               % (" ".join(map(str, command)), child.returncode, seconds, errors.decode()))
        out.seek(0)
        return Finished(seconds, usage.ru_maxrss * 1024, out.read())


@dataclass
class Score:
    """One program's run: how long, and how good on the test rows."""
    seconds: float
    error: float
    log_loss: float


@dataclass
class DataSet:
    name: str
    rows: int
    features: int
    ours: list           # our data sets: (what it is called, arguments of train, test file)
    svm: pathlib.Path    # for peers
    svm_test: pathlib.Path
    vw_bits: int
    vw: pathlib.Path = None
    vw_test: pathlib.Path = None


@dataclass
class Contest:
    """The scores of each program on one data set, over the rounds."""
    data: DataSet
    scores: dict = field(default_factory=dict)

    def add(self, program, score):
        self.scores.setdefault(program, []).append(score)

    def seconds(self, program):
        runs = [score.seconds for score in self.scores[program]]
        return statistics.median(runs) if program.startswith("freshet") else min(runs)


# Programs.


class Freshet:
    def __init__(self, build, work, threads=2):
        self.binary = shutil.copy(build / "apps/freshet/freshet", work / "freshet")  # ours: a build may go on meanwhile
        self.threads = threads

    def train(self, arguments, model):
        return run([self.binary, "train", *arguments, "--threads", self.threads, "--quiet", "--json", "-o", model])

    def evaluate(self, model, test):
        return json.loads(output_of([self.binary, "evaluate", "--json", "-i", model, test]))

    def score(self, arguments, test, work):
        model = work / "freshet.model"
        model.unlink(missing_ok=True)
        finished = self.train(arguments, model)
        found = self.evaluate(model, test)
        return Score(finished.seconds, found["error_rate"], found.get("log_loss", math.nan))

    def generate(self, path, *arguments):
        output_of([self.binary, "data", "generate", "-o", path, *map(str, arguments)])
        return path


def sklearn_scores(data):
    found = json.loads(run([SYSTEM_PYTHON, HERE / "peer_sklearn.py", data.svm, data.svm_test, data.features]).output)
    for passes, program in (("one", "scikit-learn, one pass"), ("ten", "scikit-learn, ten passes")):
        fit = found[passes]
        yield program, Score(found["load_seconds"] + fit["seconds"], fit["error"], fit["log_loss"])


def liblinear_score(data, work):
    model, predictions = work / "liblinear.model", work / "liblinear.out"
    finished = run(["liblinear-train", "-q", "-s", "0", data.svm, model])
    output_of(["liblinear-predict", "-b", "1", str(data.svm_test), str(model), str(predictions)])
    with open(predictions) as file:
        classes = file.readline().split()[1:]
        losses, wrong = [], 0
        for label, line in zip(labels_of(data.svm_test), file):
            chosen, *probabilities = line.split()
            of_label = dict(zip(map(float, classes), map(float, probabilities)))[label]
            losses.append(-math.log(max(of_label, 1e-15)))
            wrong += float(chosen) != label
    return Score(finished.seconds, wrong / len(losses), statistics.fmean(losses))


def vw_score(python, data, work):
    predictions = work / "vw.out"
    found = json.loads(run([python, HERE / "peer_vw.py", data.vw, work / "vw.model", data.vw_test, predictions,
                            data.vw_bits]).output)
    losses, wrong = [], 0
    with open(predictions) as file:
        for label, line in zip(labels_of(data.svm_test), file):
            margin = label * float(line)
            losses.append(math.log1p(math.exp(-margin)))
            wrong += margin <= 0
    return Score(found["seconds"], wrong / len(losses), statistics.fmean(losses))


def labels_of(svm_path):
    with open(svm_path) as file:
        for line in file:
            yield float(line.split(" ", 1)[0])


def python_with(module, candidates):
    """The first of these interpreters that has the module, or None."""
    for python in candidates:
        if shutil.which(python):
            if subprocess.run([python, "-c", "import " + module], capture_output=True).returncode == 0:
                return python
    return None


def peers_to_be_had(vw_python):
    """The peers' runs: each takes a data set and a directory and gives (program, Score) pairs."""
    peers = []
    if python_with("sklearn", [SYSTEM_PYTHON]):
        peers.append(lambda data, work: sklearn_scores(data))
    else:
        print("NOTE scikit-learn is NOT here (apt install python3-sklearn): left out\n")
    if shutil.which("liblinear-train"):
        peers.append(lambda data, work: [("LIBLINEAR -s 0", liblinear_score(data, work))])
    else:
        print("NOTE LIBLINEAR is NOT here (apt install liblinear-tools): left out\n")
    if vw_python:
        peers.append(lambda data, work: [("Vowpal Wabbit, one pass", vw_score(vw_python, data, work))])
    else:
        print("NOTE Vowpal Wabbit is NOT here (pip install vowpalwabbit): left out\n")
    return peers


# Data.


def write_vw(svm, vw):
    with open(svm) as source, open(vw, "w") as out:
        out.writelines(line.replace(" ", " | ", 1) for line in source)
    return vw


def url_like(freshet, work):
    train = freshet.generate(work / "url.svm", "--kind", "url-like", "--rows", URL_ROWS)
    test = freshet.generate(work / "url.t.svm", "--kind", "url-like", "--rows", URL_TEST_ROWS, "--first-row", URL_ROWS)
    return DataSet("url-like", URL_ROWS, URL_FEATURES, [("freshet", [train], test)], train, test, 22,
                   write_vw(train, work / "url.vw"), write_vw(test, work / "url.t.vw"))


def covtype(source_directory, work):
    source, directory = source_directory / "covtype/covtype.data.xz", work / "covtype"
    if not source.exists():
        print("NOTE covtype is NOT here (%s): left out\n" % source)
        return None
    if not (directory / "complete").exists():
        directory.mkdir(exist_ok=True)
        run([SYSTEM_PYTHON, HERE / "prepare_covtype.py", source, directory])
        (directory / "complete").touch()
    svm, svm_test = directory / "train.svm", directory / "test.svm"
    ours = [("freshet, unscaled CSV", [directory / "train.csv", "--positive", "2"], directory / "test.csv"),
            ("freshet, scaled LIBSVM text", [svm], svm_test)]
    rows = sum(1 for _ in open(svm, "rb"))
    return DataSet("covtype", rows, 54, ours, svm, svm_test, 18,
                   write_vw(svm, work / "covtype.vw"), write_vw(svm_test, work / "covtype.t.vw"))


# Measurements.


def compete(freshet, peers, data, rounds, work):
    contest = Contest(data)
    for name, arguments, test in data.ours:
        freshet.score(arguments, test, work)  # warms the page cache
    for number in range(rounds):
        say("%s, round %d of %d" % (data.name, number + 1, rounds))
        for name, arguments, test in data.ours:
            for _ in range(OUR_RUNS_PER_ROUND):
                contest.add(name, freshet.score(arguments, test, work))
        for peer in peers:
            for program, score in peer(data, work):
                contest.add(program, score)
    return contest


def verdict(met):
    return "pass" if met else "FAIL"


def percent(share):
    return "%.2f %%" % (100 * share)


def contest_rows(contest):
    ours = contest.seconds(contest.data.ours[0][0])
    for program, scores in contest.scores.items():
        seconds = contest.seconds(program)
        runs = [score.seconds for score in scores]
        yield [contest.data.name, program, "%.3f" % seconds, "%.3f – %.3f" % (min(runs), max(runs)),
               "{:,.0f}".format(contest.data.rows / seconds), "%.1f" % (seconds / ours),
               percent(statistics.median(score.error for score in scores)),
               "%.4f" % statistics.median(score.log_loss for score in scores)]


def median_log_loss(contest, program):
    return statistics.median(score.log_loss for score in contest.scores[program])


def speed_targets(contest):
    ours = contest.data.ours[0][0]
    seconds = contest.seconds(ours)
    rate, bound = contest.data.rows / seconds, {"url-like": 1e6, "covtype": 5e6}[contest.data.name]
    yield [contest.data.name + ", rows/s", "{:,.0f}".format(rate), "≥ {:,.0f}".format(bound), verdict(rate >= bound)]
    if contest.data.name != "url-like":
        return
    for program, bound in (("scikit-learn, one pass", 30), ("scikit-learn, ten passes", 30), ("LIBLINEAR -s 0", 30)):
        if program in contest.scores:
            ratio = contest.seconds(program) / seconds
            yield ["url-like, times faster than " + program, "%.1f" % ratio, "≥ %d" % bound, verdict(ratio >= bound)]
    if "Vowpal Wabbit, one pass" in contest.scores:
        ratio = contest.seconds("Vowpal Wabbit, one pass") / seconds
        yield ["url-like, times faster than Vowpal Wabbit, one pass", "%.1f" % ratio, "10 is the goal", ""]
    if "scikit-learn, ten passes" in contest.scores:
        ratio = median_log_loss(contest, ours) / median_log_loss(contest, "scikit-learn, ten passes")
        yield ["url-like, log loss / scikit-learn's after ten passes", "%.3f" % ratio, "≤ 1.04", verdict(ratio <= 1.04)]


def quality_rows(freshet, source_directory, covtype_data, work):
    """Default settings: [data, how, what, found, target, verdict]."""
    def row(data, how, what, value, bound):
        shown = percent if what == "error" else "{:.4f}".format
        return [data, how, "test " + what, shown(value), "≤ " + shown(bound), verdict(value <= bound)]

    a9a = source_directory / "adult/a9a.xz"
    if a9a.exists():
        score = freshet.score([a9a], source_directory / "adult/a9a.t.xz", work)
        yield row("a9a", "one pass", "error", score.error, 0.151)
        yield row("a9a", "one pass", "log loss", score.log_loss, 0.326)
    else:
        print("NOTE a9a is NOT here (%s): left out\n" % a9a)
    if covtype_data:
        _, arguments, test = covtype_data.ours[0]
        for how, more, bound in (("one pass", [], 0.254), ("ten passes", ["--epochs", "10"], 0.245),
                                 ("ten passes, hinge", ["--epochs", "10", "--loss", "hinge"], 0.238)):
            yield row("covtype", how, "error", freshet.score(arguments + more, test, work).error, bound)


def sea_rows(freshet, sea, work):
    """The rows of spine_bench's section, after making sure that it learns as the command line does."""
    stream = freshet.generate(work / "sea.csv", "--kind", "sea", "--rows", 60_000, "--drift-rows", 15_000)
    by_train = json.loads(freshet.train([stream], work / "sea.model").output)["progressive"]["error_rate"]
    figures = {row["what"]: row for row in sea["rows"] if "value" in row}
    if abs(figures["generated, error over all rows"]["value"] - 100 * by_train) > 1e-6:
        print("NOTE section sea of spine_bench does NOT learn as `freshet train` does: %.4f %% wrong, not %.4f %%\n"
              % (figures["generated, error over all rows"]["value"], 100 * by_train))
    for stream in ("generated", "published"):
        figure = figures.get(stream + ", error from row 2,000 of each concept on")
        if figure:
            yield ["SEA, " + stream, "one pass", "prequential error", "%.2f %%" % figure["value"],
                   "≤ %.2f %%" % figure["target"], verdict(figure["met"])]


def memory_rows(freshet, data_sets, work):
    """Peak memory of training less weights and optimizer state, for one file and for four times as much."""
    floats = {"url-like": 3, "covtype": 2, "ratings": 1}  # a weight and its slots: adaptive, adagrad, sgd
    ratings = freshet.generate(work / "ratings.dat", "--kind", "ratings", "--rows", 1_000_000)
    for name, (path, *flags) in [(data.name, data.ours[0][1]) for data in data_sets] + [("ratings", [ratings])]:
        for copies in (1, 4):
            try:
                finished = freshet.train([path] * copies + flags, work / "memory.model")
            except RuntimeError as error:
                say(str(error))
                yield [name, "%.0f MB" % (copies * path.stat().st_size / 1e6), "", "", "no result", "≤ 64 MB", "FAIL"]
                continue
            weights = 4 * floats[name] * json.loads(finished.output)["parameters"]
            rest = finished.peak_bytes - weights
            yield [name, "%.0f MB" % (copies * path.stat().st_size / 1e6), "%.1f MB" % (finished.peak_bytes / 1e6),
                   "%.1f MB" % (weights / 1e6), "%.1f MB" % (rest / 1e6), "≤ 64 MB", verdict(rest <= 64e6)]


def print_table(title, head, rows):
    rows = [head] + list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rows.insert(1, ["-" * width for width in widths])
    print("### %s\n" % title)
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    print(flush=True)


def print_machine(machine, peers_python):
    for name in ("cpu", "cores", "compiler", "flags", "commit", "warning"):
        if machine[name]:
            print("    %-9s %s" % (name, machine[name]))
    sklearn = "import sklearn; print('scikit-learn', sklearn.__version__)"
    vw = "import vowpalwabbit; print('Vowpal Wabbit', vowpalwabbit.__version__)"
    versions = [subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()
                for python, code in ((SYSTEM_PYTHON, sklearn), (peers_python, vw)) if python]
    print("    %-9s %s\n" % ("peers", ", ".join(filter(None, versions))))


def parse_flags():
    root = HERE.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of every program [3]")
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release", help="binaries [build/release]")
    parser.add_argument("--work", type=pathlib.Path, default=root / "build/bench", help="data, models [build/bench]")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("FRESHET_DATA", root / "../shared/data"),
                        help="real data sets [$FRESHET_DATA, else ../shared/data]")
    parser.add_argument("--vw-python", default=str(root / "build/bench-venv/bin/python"),
                        help="has vowpalwabbit [build/bench-venv/bin/python, else python3]")
    flags = parser.parse_args()
    flags.data = pathlib.Path(flags.data)
    return flags


def main():
    flags = parse_flags()
    flags.work.mkdir(parents=True, exist_ok=True)
    freshet = Freshet(flags.build, flags.work)
    vw_python = python_with("vowpalwabbit", [flags.vw_python, "python3"])
    sea = json.loads(output_of([flags.build / "bench/spine_bench", "sea", "--json", "--data", flags.data]))
    print_machine(sea["machine"], vw_python)
    peers = peers_to_be_had(vw_python)
    say("preparing data")
    covtype_data = covtype(flags.data, flags.work)
    data_sets = [data for data in (url_like(freshet, flags.work), covtype_data) if data]

    contests = [compete(freshet, peers, data, flags.rounds, flags.work) for data in data_sets]
    print_table("From text to a saved model",
                ["data", "program", "wall s", "low – high", "rows/s", "× freshet", "test error", "test log loss"],
                (row for contest in contests for row in contest_rows(contest)))
    print_table("Targets of speed", ["what", "found", "target", ""],
                (row for contest in contests for row in speed_targets(contest)))
    say("quality of the defaults")
    print_table("Quality with default settings", ["data", "how", "what", "found", "target", ""],
                [*quality_rows(freshet, flags.data, covtype_data, flags.work), *sea_rows(freshet, sea, flags.work)])
    say("memory")
    print_table("Memory of training from text", ["data", "text", "peak", "weights and state", "the rest", "target", ""],
                memory_rows(freshet, data_sets, flags.work))


if __name__ == "__main__":
    main()
