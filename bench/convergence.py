#!/usr/bin/python3
"""What compression of gradients costs in what is learned: trains with two workers over sockets, once plainly and once with
each codec, and compares the loss of the final models on the rows they learned from (and on test rows, for information),
and the bytes at the socket. Compression begins after a warm start of the first twentieth of the updates; bytes are those
of the updates after it. Prints a Markdown table; ends with 1 when the loss is more than 1 % above the plain one, or when
1bit sends more than 1/28 of the bytes.

  bench/convergence.py [--build build/release] [--data DIRECTORY] [--seeds 3]

Takes about ten minutes on two cores. A data set that is not to be had is left out, with a line that says so."""
import argparse
import json
import lzma
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
CODECS = ["none", "fp16", "1bit", "topk", "power"]
ALLOWED_LOSS, ALLOWED_BYTES = 1.01, 1 / 28  # of the plain run's
FEW = 1000  # parameters below which headers, not values, are most of what travels
WARM = 20  # one of so many updates travels plainly, at the start


def covtype(data, work):
    """Class 2 against the rest; the file is sorted, so its rows are mixed first."""
    lines = lzma.open(data / "covtype/covtype.data.xz", "rt").readlines()
    random.Random(1).shuffle(lines)
    (work / "train.csv").write_text("".join(lines[50_000:]))
    (work / "test.csv").write_text("".join(lines[:50_000]))
    return work / "train.csv", work / "test.csv", ["--positive", "2", "--epochs", "3", "--batch", "256"]


def a9a(data, _):
    return data / "adult/a9a.xz", data / "adult/a9a.t.xz", ["--epochs", "10", "--batch", "64"]


def mnist(data, _):
    return (data / "mnist/train-images-idx3-ubyte.gz", data / "mnist/t10k-images-idx3-ubyte.gz",
            ["--model", "mlp", "--epochs", "10", "--batch", "64"])


def run(command):
    return json.loads(subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE).stdout)


def learn(freshet, train, test, flags, codec, seed, warm, work):
    """Losses on the rows learned from and on test rows, bytes sent by a worker, updates, parameters."""
    model = work / "model"
    report = run([freshet, "launch", "-n", 2, "--", "train", train, *flags, "--codec", codec, "--seed", seed, "--warm-start",
                  warm, "--no-shared-memory", "--topology", "ring", "--quiet", "--json", "-o", model])
    losses = [run([freshet, "evaluate", "-i", model, rows, "--json"])["log_loss"] for rows in (train, test)]
    return (*losses, report["workers"][0]["bytes_sent"], report["workers"][0]["steps"], report["parameters"])


def compare(freshet, name, task, data, seeds):
    """Rows of the table, and whether all bars were met."""
    rows, all_met = [], True
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        train, test, flags = task(data, work)
        warm = 0
        for codec in CODECS:
            runs = [learn(freshet, train, test, flags, codec, seed, warm, work) for seed in range(1, seeds + 1)]
            loss, test_loss, sent, steps, parameters = (statistics.mean(column) for column in zip(*runs))
            if codec == "none":
                plain, plain_test, plain_sent, warm = loss, test_loss, sent, round(steps / WARM)
                print("    freshet launch -n 2 -- train %s %s --codec CODEC --warm-start %d" % (
                    train.name, " ".join(flags), warm), flush=True)
            else:
                sent = (sent - plain_sent * warm / steps) * steps / (steps - warm)
            met = loss <= ALLOWED_LOSS * plain
            if codec == "1bit" and parameters >= FEW:
                met = met and sent <= ALLOWED_BYTES * plain_sent
            all_met = all_met and met
            rows.append([name, codec, "%.4f" % loss, "%+.2f %%" % (100 * (loss / plain - 1)), "%.4f" % test_loss,
                         "%+.2f %%" % (100 * (test_loss / plain_test - 1)), "%.2f MB" % (sent / 1e6),
                         "1/%.1f" % (plain_sent / sent), verdict(met)])
    return rows, all_met


def main():
    root = HERE.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release", help="binaries [build/release]")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("FRESHET_DATA", root / "../shared/data"),
                        help="real data sets [$FRESHET_DATA, else ../shared/data]")
    parser.add_argument("--seeds", type=int, default=3, help="runs of which the mean is taken [3]")
    flags = parser.parse_args()
    rows, all_met = [], True
    for name, task, folder in (("a9a", a9a, "adult"), ("covtype", covtype, "covtype"), ("MNIST", mnist, "mnist")):
        if not (flags.data / folder).exists():
            print("SKIP SKIP SKIP %s: %s is not here; NOT COMPARED" % (name, flags.data / folder))
            continue
        more, met = compare(flags.build / "apps/freshet/freshet", name, task, flags.data, flags.seeds)
        rows += more
        all_met = all_met and met
    print()
    print_table("What compression costs, 2 workers, mean of %d seeds" % flags.seeds,
                ["data", "codec", "loss", "against plain", "test loss", "against plain", "sent, without warm start", "of plain", "bar"], rows)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
