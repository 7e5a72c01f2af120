#!/usr/bin/python3
"""What networks of the zoo learn with the defaults of `freshet train`: errors on test sets, each beside its bar. Prints the
commands and a Markdown table; ends with 1 when a bar is missed.

  bench/accuracy.py [--build build/release] [--data DIRECTORY]

Takes about two minutes on two cores. A data set that is not to be had is left out, with a line that says so."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from peers import percent, print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
MNIST, MNIST_TEST = "mnist/train-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz"
# Rows to train on and to test on, flags, the largest error allowed.
RUNS = [
    (MNIST, MNIST_TEST, ["--model", "mlp"], 0.035),
    (MNIST, MNIST_TEST, ["--model", "lenet5", "--epochs", "5"], 0.010),
    ("cifar10/train_4000.bin.xz", "cifar10/test_1000.bin.xz", ["--model", "cifar-quick", "--epochs", "20", "--mirror"],
     0.52),
]

# A text of known entropy: sentences to train on and to test on, flags, how many bits a symbol above it are allowed.
GRAMMAR = (40_000, 100_000, ["--model", "char-lstm", "--optimizer", "adam", "--rate", "0.01", "--epochs", "3"], 0.05)


def run(freshet, *arguments):
    command = [str(part) for part in (freshet, *arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def grammar(freshet):
    """A row of the table, and whether the bar was met."""
    sentences, test_sentences, more, bar = GRAMMAR
    with tempfile.TemporaryDirectory() as directory:
        texts = [pathlib.Path(directory) / name for name in ("grammar.txt", "test.txt")]
        for text, rows, seed in zip(texts, (sentences, test_sentences), (1, 3)):  # 2 was for choosing the flags
            print("    freshet data generate --kind grammar --rows %d --seed %d -o %s" % (rows, seed, text.name))
            said = run(freshet, "data", "generate", "--kind", "grammar", "--rows", rows, "--seed", seed, "-o", text)
        entropy = float(said.split()[1])
        print("    freshet train grammar.txt %s --test test.txt" % " ".join(more), flush=True)
        found = json.loads(run(freshet, "train", texts[0], *more, "--test", texts[1], "--quiet", "--json"))
    above = found["test"]["log_loss"] / math.log(2) - entropy
    return ["char-lstm", "grammar of %.3f bits" % entropy, "{:,}".format(found["test"]["rows"]), "%+.3f bits" % above,
            "≤ %+.3f bits" % bar, verdict(above <= bar), "%.0f s" % found["seconds"]], above <= bar


def main():
    root = HERE.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release", help="binaries [build/release]")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("FRESHET_DATA", root / "../shared/data"),
                        help="real data sets [$FRESHET_DATA, else ../shared/data]")
    flags = parser.parse_args()
    freshet = flags.build / "apps/freshet/freshet"
    rows, missed = [], False
    for train, test, more, bar in RUNS:
        if not (flags.data / train).exists():
            print("SKIP SKIP SKIP accuracy.py: %s is not here; %s WAS NOT TESTED\n" % (flags.data / train, more[1]))
            continue
        print("    freshet train $FRESHET_DATA/%s %s \\\n        --test $FRESHET_DATA/%s" % (train, " ".join(more), test),
              flush=True)
        found = json.loads(run(freshet, "train", flags.data / train, *more, "--test", flags.data / test, "--quiet",
                               "--json"))
        error = found["test"]["error_rate"]
        missed |= not error <= bar
        rows.append([more[1], train.split("/")[0], "{:,}".format(found["test"]["rows"]), percent(error),
                     "≤ " + percent(bar), verdict(error <= bar), "%.0f s" % found["seconds"]])
    row, met = grammar(freshet)
    rows.append(row)
    missed |= not met
    print()
    print_table("What networks learn", ["network", "data", "test rows", "test error", "target", "", "took"], rows)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
