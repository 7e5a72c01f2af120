#!/usr/bin/python3
"""Lasso on columns that are correlated with their neighbours: how many updates of coordinates it takes to come near the
objective that scikit-learn ends with. Scheduled (--strategy scheduled: those that changed most of late, never two in a
round that depend on one another), in random order one after another, and in random order as many in a round. Prints a
Markdown table; ends with 1 when scheduled takes more than half of the updates of random order, goes astray, or is not the
same for any number of workers.

  bench/scheduled.py [--build build/release] [--rows 200] [--features 1000] [--alpha 0.05] [--correlation 0.9]

Takes a few seconds."""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
from sklearn.linear_model import Lasso

from peers import print_table, verdict

HERE = pathlib.Path(__file__).resolve().parent
NEAR = 1.001  # of the objective that scikit-learn ends with
TOGETHER = 64
WAYS = {"scheduled, 1 in a round": ("--coordinates", 1),
        "scheduled, 16 in a round": ("--coordinates", 16),
        "scheduled, %d in a round" % TOGETHER: ("--coordinates", TOGETHER),
        "random, 1 in a round": ("--order", "random", "--coordinates", 1),
        "random, %d in a round" % TOGETHER: ("--order", "random", "--coordinates", TOGETHER)}


def correlated(flags):
    """Rows whose columns each are correlated with the next; every 17th tells the label."""
    random = numpy.random.default_rng(flags.seed)
    columns = random.normal(size=(flags.rows, flags.features))
    for j in range(1, flags.features):
        columns[:, j] = flags.correlation * columns[:, j - 1] + math.sqrt(1 - flags.correlation**2) * columns[:, j]
    truth = numpy.zeros(flags.features)
    truth[3::17] = numpy.where(numpy.arange(3, flags.features, 17) % 2 == 0, 2, -1)
    return columns.astype(numpy.float32), columns @ truth + 0.5 + 0.3 * random.normal(size=flags.rows)


def train(flags, path, extra, workers=1):
    command = [flags.build / "apps/freshet/freshet", "train", path, "--no-scale-target", "--loss", "squared", "--strategy",
               "scheduled", "--l1", flags.alpha, "--epochs", flags.epochs, "--threads", 1, "--json", "--quiet", *extra]
    if workers > 1:
        command += ["--workers", workers]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    return json.loads(done.stdout) if done.returncode == 0 else None  # 5: it went astray


def until(course, goal):
    """Updates until the objective was near, as it was told eight times an epoch."""
    return next((updates for updates, objective in course if objective <= goal), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release", help="binaries [build/release]")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--alpha", type=float, default=0.05, help="weight of the absolute values [0.05]")
    parser.add_argument("--correlation", type=float, default=0.9, help="of a column with the next [0.9]")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    columns, labels = correlated(flags)
    lasso = Lasso(alpha=flags.alpha, max_iter=1_000_000, tol=1e-9).fit(columns.astype(float), labels)
    errors = labels - lasso.predict(columns.astype(float))
    least = errors @ errors / (2 * len(labels)) + flags.alpha * numpy.abs(lasso.coef_).sum()
    rows, updates, ended = [], {}, {}
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "rows.svm"
        with open(path, "w") as file:
            for row, label in zip(columns, labels):
                file.write("%r %s\n" % (float(label), " ".join("%d:%r" % (j + 1, float(x)) for j, x in enumerate(row))))
        for way, extra in WAYS.items():
            report = train(flags, path, extra)
            descent = report["descent"] if report else None
            updates[way] = until(descent["course"], NEAR * least) if descent else None
            ended[way] = descent["objective"] if descent else math.inf
            rows.append([way, "{:,}".format(updates[way]) if updates[way] else "never",
                         "%.6f" % (ended[way] / least) if descent else "diverged",
                         "{:,}".format(descent["put_off"]) if descent else "", str(descent["nonzero"]) if descent else ""])
        way = "scheduled, 16 in a round"
        same = all(train(flags, path, WAYS[way], workers)["descent"]["objective"] == ended[way] for workers in (2, 3, 4))
    print_table("Lasso of %d rows of %d columns, each correlated by %.2f with the next" %
                (flags.rows, flags.features, flags.correlation),
                ["order", "updates to within 0.1 %", "objective at the end / scikit-learn's", "put off", "not zero"], rows)
    scheduled = [updates[way] for way in WAYS if way.startswith("scheduled")]
    random = updates["random, 1 in a round"]
    half = all(scheduled) and random is not None and 2 * max(scheduled) <= random
    astray = ended["random, %d in a round" % TOGETHER] > 2 * least
    stays = all(ended[way] < NEAR * least for way in WAYS if way.startswith("scheduled"))
    print("scikit-learn's objective %.6f, %d weights not zero" % (least, numpy.count_nonzero(lasso.coef_)))
    print("at most half of the updates of random order: %s; never astray: %s (%d unscheduled ones in a round: %s); the same "
          "objective by 1 to 4 workers, to the last bit: %s" %
          (verdict(half), verdict(stays), TOGETHER, "astray" if astray else "not astray", verdict(same)))
    return 0 if half and stays and same else 1


if __name__ == "__main__":
    sys.exit(main())
