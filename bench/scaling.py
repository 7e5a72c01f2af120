#!/usr/bin/python3
"""How much faster two workers are than one: GoogLeNet (or another network) on images of random pixels, one worker on one
core beside two workers on two cores, as threads and as processes, with and without overlap; and two on a ring, each with half
of the layers. Runs take turns; medians of the rounds' ratios. Prints a Markdown table; ends with 1 when two workers are less
than 1.8 times as fast as one, or two on a ring less than 1.7 times.

  bench/scaling.py [--build build/release] [--model googlenet] [--batch 16] [--steps 8] [--rounds 3]

Takes about fifteen minutes on two cores, which it must have for itself."""
import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
BAR, RING_BAR = 1.8, 1.7
SHAPES = {"googlenet": (3, 224, 224), "alexnet": (3, 227, 227), "cifar-quick": (3, 32, 32), "lenet5": (1, 28, 28)}


def write_images(directory, shape, rows):
    """An idx file of random pixels and one of labels, ten classes."""
    noise = random.Random(1)
    pixels = shape[0] * shape[1] * shape[2]
    images, labels = directory / "random-images-idx4-ubyte", directory / "random-labels-idx1-ubyte"
    with open(images, "wb") as file:
        file.write(struct.pack(">BBBB4I", 0, 0, 8, 4, rows, *shape))
        for _ in range(rows):
            file.write(noise.randbytes(pixels))
    with open(labels, "wb") as file:
        file.write(struct.pack(">BBBBI", 0, 0, 8, 1, rows) + bytes(i % 10 for i in range(rows)))
    return images, labels


class Way:
    """One way to train: how it is started, with how many workers."""

    def __init__(self, name, workers, before=(), launch=(), flags=(), bar=None):
        self.name, self.workers, self.before, self.launch, self.flags, self.bar = name, workers, before, launch, flags, bar
        self.rates, self.splits = [], []

    def run(self, freshet, data, flags):
        images, labels = data[self.workers]
        command = [*self.before, freshet, *self.launch, "train", images, "--label-file", labels, "--model", flags.model,
                   "--batch", flags.batch * self.workers, "--epochs", 1, "--no-shuffle", "--rate", 1e-4, "--json", "--quiet",
                   *self.flags]
        report = json.loads(subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout)
        self.rates.append(report["rows"] / report["train_seconds"])
        for worker in report.get("workers", [])[:1]:
            self.splits.append({part: worker[part] / worker["steps"] for part in ("compute", "wait", "exchange", "apply")})

    def split(self):
        if not self.splits:
            return ""
        return ", ".join("%s %.0f ms" % (part, 1000 * statistics.median(split[part] for split in self.splits))
                         for part in self.splits[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--model", default="googlenet", choices=SHAPES, help="the network [googlenet]")
    parser.add_argument("--batch", type=int, default=16, help="rows of a worker's share [16]")
    parser.add_argument("--steps", type=int, default=8, help="updates of a run [8]")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each [3]")
    flags = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("SKIP SKIP SKIP scaling.py: one core here; NOTHING WAS MEASURED")
        return 0
    two = ("--threads", 2, "--workers", 2)
    one_each = ("launch", "-n", 2, "--")
    # Micro-batches of two rows: so many that the pipeline is seldom empty.
    ring = ("--strategy", "ring", "--micro", flags.batch)
    ways = [Way("one worker, one core", 1, before=("taskset", "-c", cores[0]), flags=("--threads", 1)),
            Way("two workers, threads", 2, flags=two, bar=BAR),
            Way("two workers, threads, no overlap", 2, flags=(*two, "--no-overlap")),
            Way("two workers, processes", 2, launch=one_each, flags=("--threads", 1)),
            Way("two workers, processes, no overlap", 2, launch=one_each, flags=("--threads", 1, "--no-overlap")),
            Way("two on a ring, threads", 2, flags=(*two, *ring), bar=RING_BAR),
            Way("two on a ring, threads, without a flush", 2, flags=(*two, *ring, "--pipeline", "stash")),
            Way("two on a ring, processes", 2, launch=one_each, flags=("--threads", 1, *ring))]
    with tempfile.TemporaryDirectory() as directory:
        data = {}
        for workers in (1, 2):
            folder = pathlib.Path(directory) / str(workers)
            folder.mkdir()
            data[workers] = write_images(folder, SHAPES[flags.model], flags.batch * workers * flags.steps)
        for _ in range(flags.rounds):
            for way in ways:
                way.run(flags.build / "apps/freshet/freshet", data, flags)
    one = ways[0]
    ratios = {way: [a / b for a, b in zip(way.rates, one.rates)] for way in ways}
    rows = []
    for way in ways:
        ratio = statistics.median(ratios[way])
        rows.append([way.name, "%.2f" % statistics.median(way.rates), "%.2f" % ratio,
                     "%.2f – %.2f" % (min(ratios[way]), max(ratios[way])), way.split(),
                     "≥ %.1f %s" % (way.bar, verdict(ratio >= way.bar)) if way.bar else ""])
    print_table("%s, %d rows a worker and update" % (flags.model, flags.batch),
                ["", "images/s", "times one", "low – high", "a step of rank 0", "bar"], rows)
    return 0 if all(statistics.median(ratios[way]) >= way.bar for way in ways if way.bar) else 1


if __name__ == "__main__":
    sys.exit(main())
