#!/usr/bin/python3
"""scikit-learn's SGDClassifier on LIBSVM text, one pass and ten:   peer_sklearn.py TRAIN TEST FEATURES

Prints seconds and quality as JSON. What counts is what a user waits for, as with ours: starting and importing, reading,
fitting, saving the model (without a sync to disk)."""
import json
import os
import pickle
import sys
import tempfile
import time

import sklearn
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss


def since_start():
    """Seconds since this process was started, imports and all."""
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        started = int(stat.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
        return float(uptime.read().split()[0]) - started


def fit(passes, train, test):
    begun = time.perf_counter()
    model = SGDClassifier(loss="log_loss", max_iter=passes, tol=None, random_state=1).fit(*train)
    with tempfile.TemporaryFile() as file:
        pickle.dump(model, file)
    seconds = time.perf_counter() - begun
    features, labels = test
    return {"seconds": seconds,
            "error": 1 - model.score(features, labels),
            "log_loss": log_loss(labels, model.predict_proba(features))}


def main(train_path, test_path, features):
    train = load_svmlight_file(train_path, n_features=int(features))
    load_seconds = since_start()
    test = load_svmlight_file(test_path, n_features=int(features))
    print(json.dumps({"version": sklearn.__version__, "load_seconds": load_seconds,
                      "one": fit(1, train, test), "ten": fit(10, train, test)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
