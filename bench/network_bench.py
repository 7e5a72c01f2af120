#!/usr/bin/python3
"""Networks beside PyTorch, and beside their own convolutions: training steps, predictions, memory, and how long the
trainer waits for images. Prints Markdown; docs/benchmarks.md explains the tables.

  bench/network_bench.py [--rounds 5] [--build build/release] [--tiny]

Programs take turns, round after round, in processes that stay: of each round one step of ours, then one of PyTorch's in
either layout of memory. Reported are medians; of ratios, the median of the rounds' ratios, with PyTorch in the layout
that suits it better. Without Debian's python3-torch that side is left out. --tiny: small networks without PyTorch, for
the tests."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's python3-torch belongs to it
# PyTorch's own threads are OpenMP's: a BLAS with threads of another kind would compete with them.
OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
LAYOUTS = ["contiguous", "channels_last"]
HEAD = ["what", "median", "low – high", "target", ""]


def say(text):
    print(text, file=sys.stderr, flush=True)


def check(truth, text):
    if not truth:
        sys.exit("network_bench.py: " + text)


class Worker:
    """A process that does something as often as it is asked to."""

    def __init__(self, *command, environment=None):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.first, self.last, self.peak_bytes = None, None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)

    def ask(self, times=1):
        """Seconds of one."""
        self.process.stdin.write("%d\n" % times)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        check(line, "%s ended" % self.process.args)
        answer = json.loads(line)
        self.last, self.peak_bytes = answer["value"], answer["peak_bytes"]
        self.first = self.last if self.first is None else self.first
        return answer["seconds"] / times

    def check_falling(self):
        check(abs(self.last) < 1e6 and self.last < self.first,
              "%s: the loss went from %s to %s" % (self.process.args, self.first, self.last))


class Bench:
    def __init__(self, flags, directory):
        self.binary, self.freshet = (shutil.copy(flags.build / path, directory)  # ours: a build may go on meanwhile
                                     for path in ("bench/network_bench", "apps/freshet/freshet"))
        self.rounds, self.threads = (2, 1) if flags.tiny else (flags.rounds, 2)
        self.directory, self.files = pathlib.Path(directory), {}
        self.environment = dict(os.environ, LD_LIBRARY_PATH=OPENBLAS)
        self.torch = not flags.tiny and subprocess.run([PYTHON, "-c", "import torch"],
                                                       capture_output=True).returncode == 0

    def run(self, *arguments):
        return subprocess.run([str(self.binary), *map(str, arguments)], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    @contextlib.contextmanager
    def workers(self, mode, net, rows, threads, *more):
        """Our process, and one of PyTorch for each layout of memory; none of these when it is not to be had."""
        layouts = LAYOUTS if net != "mlp" else LAYOUTS[:1]
        with contextlib.ExitStack() as stack:
            ours = stack.enter_context(Worker(self.binary, mode, net, rows, threads, *more))
            yield ours, [stack.enter_context(Worker(PYTHON, HERE / "peer_torch.py", mode, net, rows,
                                                    self.file(net, rows), threads, layout, *more,
                                                    environment=self.environment))
                         for layout in layouts if self.torch]

    def file(self, net, rows):
        """The weights and rows of a network, after making sure that PyTorch computes the same scores from them."""
        if (net, rows) not in self.files:
            path = self.directory / ("%s.%d" % (net, rows))
            self.run("forward", net, rows, path)
            command = [PYTHON, str(HERE / "peer_torch.py"), "forward", net, str(rows), str(path)]
            text = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=self.environment).stdout
            distance = json.loads(text)["distance"]
            check(distance < 1e-3, "PyTorch's scores of %s differ by %g of the largest" % (net, distance))
            say("%s, %d rows: scores differ from PyTorch's by %.1e of the largest" % (net, rows, distance))
            self.files[net, rows] = path
        return self.files[net, rows]


def row(what, values, shown, target="", met=None):
    spread = "%s – %s" % (shown(min(values)), shown(max(values))) if len(values) > 1 else ""
    return [what, shown(statistics.median(values)), spread, target, "" if met is None else verdict(met)]


def rate(value):
    return "{:,.0f}/s".format(value) if value >= 100 else "%.1f/s" % value


def times(value):
    return "%.2f ×" % value


def seconds(value):
    return "%.3f s" % value


def percent(value):
    return "%.0f %%" % (100 * value)


def gigabytes(value):
    return "%.2f GB" % (value / 1e9)


def take_turns(bench, ours, theirs, often, seldom, warm_up=2):
    """Seconds a call, by round: ours, and those of each of theirs."""
    for _ in range(warm_up):
        for worker in [ours, *theirs]:
            worker.ask()
    found = [[] for _ in range(1 + len(theirs))]
    for _ in range(bench.rounds):
        for worker, values, calls in zip([ours, *theirs], found, [often] + [seldom] * len(theirs)):
            values.append(worker.ask(calls))
    return found[0], found[1:]


def contest_rows(what, per_call, ours, theirs, bar=None):
    """Lines of a table: our rate, PyTorch's in each layout, and how many times as fast as its better one we are."""
    yield row("%s, freshet" % what, [per_call / value for value in ours], rate)
    for layout, values in zip(LAYOUTS, theirs):
        name = "PyTorch, " + layout if len(theirs) > 1 else "PyTorch"
        yield row("%s, %s" % (what, name), [per_call / value for value in values], rate)
    if theirs:
        ratios = [their / our for their, our in zip(min(theirs, key=statistics.median), ours)]
        met = statistics.median(ratios) >= bar if bar else None
        yield row("%s, times PyTorch" % what, ratios, times, "≥ %s ×" % bar if bar else "", met)


def training(bench, net, rows, bar, memory_bar):
    say("training %s" % net)
    with bench.workers("step", net, rows, bench.threads, "momentum", 0.001) as (ours, theirs):
        spent = take_turns(bench, ours, theirs, 1, 1)
        for worker in [ours, *theirs]:
            worker.check_falling()
        yield from contest_rows("%s, images" % net, rows, *spent, bar)
        yield row("%s, peak memory, freshet" % net, [ours.peak_bytes], gigabytes, "≤ " + gigabytes(memory_bar),
                  ours.peak_bytes <= memory_bar)
        if theirs:
            yield row("%s, peak memory, PyTorch" % net, [min(worker.peak_bytes for worker in theirs)], gigabytes)


def predictions(bench, net, rows, calls):
    say("predictions of %s, batch %d" % (net, rows))
    with bench.workers("predict", net, rows, bench.threads) as (ours, theirs):
        yield from contest_rows("%s, batch %d, images" % (net, rows), rows,
                                *take_turns(bench, ours, theirs, calls, calls))


def perceptron(bench, rows, calls, bar):
    say("perceptron, batch %d" % rows)
    with bench.workers("step", "mlp", rows, 1, "sgd", 0.01) as (ours, theirs):
        spent = take_turns(bench, ours, theirs, calls, calls // 10)
        for worker in [ours, *theirs]:
            worker.check_falling()
        yield from contest_rows("batch %d, steps" % rows, 1, *spent, bar)


def parts(layers):
    """[name, flops, seconds in a step, seconds alone] of each part: modules whole, layers that do little together."""
    found = {}
    for layer in layers:
        name = layer["name"].split("/")[0] if "flops" in layer else "the other layers"
        sums = found.setdefault(name, [0, 0, 0])
        for i, value in enumerate((layer.get("flops", 0), layer["forward"] + layer["backward"], layer.get("alone", 0))):
            sums[i] += value
    others = found.pop("the other layers", None)
    return list(found.items()) + ([("the other layers", others)] if others else [])


def against_itself(bench, net, rows):
    """The step and its convolutions and matrix products alone: rows of two tables."""
    say("%s against its own convolutions" % net)
    found = json.loads(bench.run("compare", net, rows, bench.threads, bench.rounds))
    check(found["plausible"] and found["loss"] == found["loss"], "%s: wrong results" % net)
    peak = max(found["peak"])  # others who use the machine can only lower it
    ratio = statistics.median(found["step"]) / statistics.median(found["alone"])
    summary = [row("%s, the step" % net, found["step"], seconds),
               row("%s, its convolutions and products alone" % net, found["alone"], seconds),
               row("%s, step by alone" % net, [ratio], times, "≤ 1.25 ×, goal 1.1", ratio <= 1.25),
               row("%s, multiply-adds in registers" % net, found["peak"], lambda value: "%.0f GFLOP/s" % (value / 1e9)),
               row("%s, the step's share of the most of these" % net,
                   [found["flops"] / value / peak for value in found["step"]], percent)]
    layers = [[net, name, "%.1f" % (flops / 1e9) if flops else "", "%.0f ms" % (1e3 * step),
               "%.0f ms" % (1e3 * alone) if flops else "", percent(flops / step / peak) if flops else ""]
              for name, (flops, step, alone) in parts(found["layers"])]
    return summary, layers


def waiting(bench, count, size, side):
    """How long training waits for images that are being read and unpacked."""
    say("a folder of JPEG files")
    folder = bench.directory / "images"
    bench.run("images", folder, count, size)
    command = [bench.freshet, "train", folder, "--model", "cifar-quick", "--image-size", side, "--epochs", 3,
               "--threads", bench.threads, "--quiet", "--json"]
    text = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(text)
    check(found["rows"] >= count, "trained on %s of %d images" % (found["rows"], count))
    return [["images of the folder a second, three epochs", rate(3 * count / found["seconds"]), "", "", ""],
            ["time spent training", seconds(found["seconds"]), "", "", ""],
            ["of it waiting for images", seconds(found["wait_seconds"]), "", "", ""]]


def print_machine(bench):
    machine = json.loads(bench.run("machine"))
    for name in ("cpu", "cores", "compiler", "flags", "commit", "warning"):
        if machine[name]:
            print("    %-9s %s" % (name, machine[name]))
    print("    %-9s %.1f" % ("load", os.getloadavg()[0]))
    version = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    print("    %-9s PyTorch %s, 2 threads\n" % ("peer", version.stdout.strip()) if bench.torch else
          "\nNOTE PyTorch is NOT here (apt install python3-torch): left out\n")


def tiny(bench):
    print_table("Training", HEAD, training(bench, "lenet5", 32, None, 1e9))
    print_table("Perceptron", HEAD, [*perceptron(bench, 1, 20, None), *perceptron(bench, 32, 20, None)])
    print_table("Predictions", HEAD, predictions(bench, "cifar-quick", 1, 2))
    summary, layers = against_itself(bench, "cifar-quick", 8)
    check(len(layers) >= 5, "found %d layers" % len(layers))
    print_table("The step beside its own parts", HEAD, summary)
    print_table("Images from a folder", HEAD, waiting(bench, 20, 32, 32))


def whole(bench):
    print_table("Training steps, momentum, batch 32, two threads", HEAD,
                [*training(bench, "alexnet", 32, 1.3, 1.1e9), *training(bench, "googlenet", 32, 1.5, 1.6e9)])
    compared = [against_itself(bench, net, 32) for net in ("alexnet", "googlenet")]
    print_table("The step beside its own convolutions and matrix products", HEAD,
                [line for summary, _ in compared for line in summary])
    print_table("Where a step's time goes",
                ["network", "layers", "GFLOP", "in a step", "alone", "share of the machine, in a step"],
                [line for _, layers in compared for line in layers])
    print_table("A perceptron of 784-50-10, plain SGD, one thread", HEAD,
                [*perceptron(bench, 1, 20_000, 25), *perceptron(bench, 32, 5_000, 4.5)])
    print_table("Predictions, two threads", HEAD,
                [*predictions(bench, "alexnet", 1, 20), *predictions(bench, "alexnet", 32, 2)])
    print_table("Images from a folder: 512 JPEG files of 256 × 256, cifar-quick at 64 × 64", HEAD,
                waiting(bench, 512, 256, 64))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of everything that is timed [5]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release",
                        help="binaries [build/release]")
    parser.add_argument("--tiny", action="store_true", help="small networks, without PyTorch")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(flags, directory)
        if flags.tiny:
            return tiny(bench)
        print_machine(bench)
        whole(bench)


if __name__ == "__main__":
    main()
