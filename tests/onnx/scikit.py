#!/usr/bin/env python3
"""Do scikit-learn's linear models and networks, exported by skl2onnx, predict the same in freshet?

    tests/onnx/scikit.py [FRESHET]

Needs scikit-learn and skl2onnx (make test-onnx-peers makes a place for them).
"""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from skl2onnx import to_onnx
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

HOUSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRESHET = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else HOUSE + "/build/release/apps/freshet/freshet"
CLOSE = 1e-5


def freshet(*arguments):
    return subprocess.run([FRESHET, *map(str, arguments)], capture_output=True, text=True)


def models(rows):
    two = (rows[:, 0] + rows[:, 1] > 0).astype(int)
    three = np.digitize(rows[:, 0] - rows[:, 2], [-0.7, 0.7])
    named = np.array(["low", "middle", "high"])[three]
    real = rows @ np.array([1.0, -2.0, 3.0, 0.5]) + np.sin(rows[:, 0])
    yield "LogisticRegression, 2 classes", LogisticRegression(), two
    yield "LogisticRegression, 3 classes", LogisticRegression(), three
    yield "LogisticRegression, named classes", LogisticRegression(), named
    yield "LinearRegression", LinearRegression(), real
    yield "Ridge", Ridge(), real
    yield "LinearSVC, 3 classes", LinearSVC(), three
    yield "StandardScaler, LogisticRegression", make_pipeline(StandardScaler(), LogisticRegression()), three
    yield "MinMaxScaler, LinearRegression", make_pipeline(MinMaxScaler(), LinearRegression()), real
    yield "MLPClassifier, 2 classes", MLPClassifier((8,), max_iter=60), two
    yield "MLPClassifier, 3 classes", MLPClassifier((8, 6), max_iter=60), three
    yield "MLPClassifier, tanh, named", MLPClassifier((8,), max_iter=60, activation="tanh"), named
    yield "MLPClassifier, logistic", MLPClassifier((8,), max_iter=60, activation="logistic"), three
    yield "StandardScaler, MLPRegressor", make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(8,), max_iter=60)), real
    yield "Normalizer, LogisticRegression", make_pipeline(Normalizer(), LogisticRegression()), two


def wanted_of(model, rows):
    if hasattr(model, "predict_proba"):
        made = model.predict_proba(rows)
        return made[:, 1:] if made.shape[1] == 2 else made
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return model.predict(rows)


def main():
    warnings.simplefilter("ignore")
    rows = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    counts = {"equal": 0, "refused": 0, "wrong": 0}
    with tempfile.TemporaryDirectory(prefix="freshet-scikit-") as scratch:
        os.chdir(scratch)
        with open("rows.csv", "w") as file:
            for row in rows:
                file.write(",".join(repr(float(x)) for x in row) + ",0\n")
        for name, model, target in models(rows):
            model.fit(rows, target)
            classifies = hasattr(model, "predict_proba")
            for maps in [False, True] if classifies else [False]:
                with open("in.onnx", "wb") as file:
                    file.write(to_onnx(model, rows[:1], options={"zipmap": maps} if classifies else None).SerializeToString())
                imported = freshet("import", "in.onnx", "-o", "model")
                if imported.returncode != 0:
                    verdict, why = "refused", imported.stderr.strip().splitlines()[-1]
                else:
                    how = "--probabilities" if hasattr(model, "predict_proba") else "--scores"
                    told = freshet("predict", "-i", "model", "rows.csv", how).stdout
                    got = np.array([[float(x) for x in line.split()] for line in told.splitlines()])
                    wanted = np.asarray(wanted_of(model, rows), float)
                    apart = np.inf if got.size != wanted.size else np.max(np.abs(got.reshape(-1) - wanted.reshape(-1)))
                    verdict, why = "equal" if apart <= CLOSE * max(1, np.max(np.abs(wanted))) else "wrong", f"{apart:.1e} apart"
                counts[verdict] += 1
                print(f"{verdict:8} {name}{', maps' if maps else ''}: {why}")
        os.chdir("/")
    print("scikit-learn's models: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if counts["wrong"] > 0:
        sys.exit(1)


if __name__ == "__main__":
    main()
