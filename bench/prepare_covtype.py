#!/usr/bin/python3
"""Splits and shuffles covtype for the benchmarks:   prepare_covtype.py covtype.data[.xz] DIRECTORY

Class 2 against the rest, rows shuffled (seed 1), the last tenth for testing. Writes the rows as they are
(train.csv, test.csv) and, for programs that want features of one scale, as LIBSVM text with the first ten
columns scaled to [0, 1] (train.svm, test.svm)."""
import lzma
import pathlib
import sys

import numpy as np

COLUMNS = 54


def read_lines(path):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rt") as file:
        return file.read().splitlines()


def scaled(features):
    low, high = features.min(0), features.max(0)
    return (features - low) / np.where(high > low, high - low, 1)


def svm_line(label, row):
    entries = " ".join("%d:%.6g" % (j + 1, row[j]) for j in np.flatnonzero(row))
    return ("+1 " if label == 2 else "-1 ") + entries


def main(source, directory):
    lines = read_lines(source)
    table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    labels, features = table[:, COLUMNS], scaled(table[:, :COLUMNS])
    order = np.random.default_rng(1).permutation(len(lines))
    cut = len(lines) * 9 // 10
    for name, rows in (("train", order[:cut]), ("test", order[cut:])):
        with open(pathlib.Path(directory, name + ".csv"), "w") as file:
            file.writelines(lines[i] + "\n" for i in rows)
        with open(pathlib.Path(directory, name + ".svm"), "w") as file:
            file.writelines(svm_line(labels[i], features[i]) + "\n" for i in rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
