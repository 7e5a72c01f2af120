#!/usr/bin/python3
"""What a step of AlexNet sends (or of another network), by batch: by all-reduce, by all-reduce with factors of its dense
layers, and with these cut into slices. Workers are processes that talk through sockets; what is counted is what went through
them, without what is told once at the end of a run. Prints a Markdown table and the batch from which all-reduce sends less;
ends with 1 when the three do not have the same loss, or slices send more than was said beforehand.

  bench/slices.py [--build build/release] [--model alexnet] [--workers 4] [--batches 32,128,512,1024]

Takes about a quarter of an hour on two cores."""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from peers import print_table, verdict
from scaling import SHAPES, write_images

HERE = pathlib.Path(__file__).resolve().parent
ROWS_AT_ONCE = 32  # that a worker computes; a larger share is computed in parts
WAYS = {"all-reduce": (), "factors": ("--layer-factors",), "slices": ("--strategy", "slices", "--slice-all")}
MOST_SECONDS = 600


def train(flags, batch, way, files):
    command = [flags.build / "apps/freshet/freshet", "launch", "-n", flags.workers, "--", "train", files[0], "--label-file",
               files[1], "--model", flags.model, "--batch", batch, "--epochs", 1, "--no-shuffle",
               "--threads", 1, "--rate", 1e-4, "--no-shared-memory", "--accumulate",
               math.ceil(batch / flags.workers / ROWS_AT_ONCE), "--json", "--quiet", *WAYS[way]]
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, timeout=MOST_SECONDS)
    report = json.loads(done.stdout)
    return report, sum(worker["bytes_sent"] for worker in report["workers"]) / flags.workers


def expected(flags, batch):
    """Floats that a worker sends for AlexNet's dense layers as slices: 9,216 to 4,096 to 4,096 to 1,000."""
    n = flags.workers
    return sum(2 * (n - 1) / n * batch * min(i / n + o, i + o / n) for i, o in ((9216, 4096), (4096, 4096), (4096, 1000)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--model", default="alexnet", choices=SHAPES, help="the network [alexnet]")
    parser.add_argument("--workers", type=int, default=4, help="processes [4]")
    parser.add_argument("--batches", default="32,128,512,1024", help="rows of an update [32,128,512,1024]")
    flags = parser.parse_args()
    batches = [int(part) for part in flags.batches.split(",")]
    rows, agree, points = [], True, []
    with tempfile.TemporaryDirectory() as directory:
        for batch in batches:
            files = []
            for steps in (1, 2):
                folder = pathlib.Path(directory) / str(steps)
                folder.mkdir(exist_ok=True)
                files.append(write_images(folder, SHAPES[flags.model], steps * batch))
            sent, losses = {}, []
            for way in WAYS:
                _, once = train(flags, batch, way, files[0])
                report, twice = train(flags, batch, way, files[1])
                sent[way] = twice - once
                losses.append(report["loss"])
            agree = agree and max(losses) - min(losses) < 1e-3 * max(losses)
            points.append((batch, sent))
            rows.append([batch, *("%.1f MB" % (sent[way] / 1e6) for way in WAYS), "%.2f" % (sent["slices"] / sent["all-reduce"]),
                         "%.2f" % (sent["slices"] / sent["factors"])])
    print_table("%s by %d workers: sent by each in a step" % (flags.model, flags.workers),
                ["batch", *WAYS, "slices / all-reduce", "slices / factors"], rows)
    # What slices send grows with the rows, what all-reduce sends does not.
    (first, a), (last, b) = points[0], points[-1]
    slope = (b["slices"] - a["slices"]) / max(last - first, 1)
    crossing = first + (a["all-reduce"] - a["slices"]) / slope if slope > 0 else math.inf
    print("\nfrom a batch of about %.0f rows on all-reduce sends less; losses %s" % (crossing, verdict(agree)))
    if flags.model != "alexnet":
        return 0 if agree else 1
    near = 4 * (expected(flags, last) - expected(flags, first))
    grown = b["slices"] - a["slices"]
    print("from %d to %d rows slices send %.1f MB more, %.1f were expected: %s" %
          (first, last, grown / 1e6, near / 1e6, verdict(abs(grown - near) < 0.02 * near)))
    return 0 if agree and abs(grown - near) < 0.02 * near else 1


if __name__ == "__main__":
    sys.exit(main())
