#!/usr/bin/env python3
"""freshet in Python beside scikit-learn's SGDClassifier: one pass over rows in memory (covtype, or rows like it; a sparse
matrix like the URL data set's), and the update by a single row; beside XGBoost's linear booster, River and Surprise, as far as they
are installed. `make bench-python` runs it. Prints Markdown tables.

  bench/python_peers.py [--rounds 5] [--rows 200000] [--data DIRECTORY]

Both get the same arrays, in turn, round after round, and one thread; what is reported is processor time, the median and the
range of each, and their ratio in the same round. Neither may have a worse loss on held-out rows than it is given credit for: it is printed beside the time, and
the script fails if ours is worse by more than a hundredth."""
import argparse
import importlib.util
import lzma
import pathlib
import statistics
import sys
import time

import freshet
import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler


def covtype(folder, rows):
    """Class 2 against the rest, columns brought to one scale; else rows of the same form."""
    path = folder / "covtype" / "covtype.data.xz"
    rng = np.random.default_rng(0)
    if path.exists():
        with lzma.open(path, "rt") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.float32)
        table = table[rng.permutation(len(table))]
        X, y, name = table[:, :-1], (table[:, -1] == 2).astype(np.int32), "covtype"
    else:
        print(f"NOTE {path} is not there: rows like it are made up", file=sys.stderr)
        X = np.hstack([rng.normal(size=(rows, 10)), rng.random((rows, 44)) < 0.05]).astype(np.float32)
        y, name = (X @ rng.normal(size=54) + rng.normal(size=rows) > 0).astype(np.int32), "like covtype"
    return name, np.ascontiguousarray(StandardScaler().fit_transform(X), np.float32), y


def url_like(rows):
    """Sparse rows of some 100 of three million features, a few of them frequent."""
    rng = np.random.default_rng(1)
    columns, each = 3_000_000, 100
    indices = np.minimum(rng.zipf(1.3, size=(rows, each)) - 1 + rng.integers(0, 50, (rows, each)), columns - 1)
    indices.sort(axis=1)
    X = sparse.csr_matrix((rng.random(rows * each, dtype=np.float32), indices.ravel().astype(np.int32),
                           np.arange(0, rows * each + 1, each, dtype=np.int32)), shape=(rows, columns))
    X.sum_duplicates()
    weights = rng.normal(size=columns).astype(np.float32)
    return "like URL", X, (X @ weights + rng.normal(size=rows) > 0).astype(np.int32)


def timed(work):
    """Seconds of processor time, of all threads: what others do on the machine matters less to it than to a clock."""
    begun = time.process_time()
    made = work()
    return time.process_time() - begun, made


def passes(name, X, y, rounds):
    cut = X.shape[0] * 9 // 10
    train, test, labels, truth = X[:cut], X[cut:], y[:cut], y[cut:]
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, model = timed(lambda: freshet.train(train, labels, standardise=False, threads=1))
        ours.append(seconds)
        seconds, peer = timed(lambda: SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0).fit(train, labels))
        theirs.append(seconds)
    ratios = [b / a for a, b in zip(ours, theirs)]
    our_loss, their_loss = log_loss(truth, model.predict_proba(test)[:, 1].astype(float)), log_loss(truth, peer.predict_proba(test))
    print(f"| {name}, {cut:,} rows | {statistics.median(ours):.3f} s ({min(ours):.3f}–{max(ours):.3f}) | {our_loss:.4f} "
          f"| {statistics.median(theirs):.3f} s ({min(theirs):.3f}–{max(theirs):.3f}) | {their_loss:.4f} "
          f"| {statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f}) |")
    return our_loss <= their_loss + 0.01


def single_rows(X, y, rounds, rows=2000):
    model = freshet.train(X[:1000], y[:1000], standardise=False)
    peer = SGDClassifier(loss="log_loss").fit(X[:1000], y[:1000])
    labels = y.tolist()
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, _ = timed(lambda: [model.update(X[i], labels[i]) for i in range(rows)])
        ours.append(seconds / rows * 1e6)
        seconds, _ = timed(lambda: [peer.partial_fit(X[i:i + 1], y[i:i + 1]) for i in range(rows // 10)])
        theirs.append(seconds / (rows // 10) * 1e6)
    ratios = [b / a for a, b in zip(ours, theirs)]
    print(f"| one row of {X.shape[1]} numbers | {statistics.median(ours):.2f} µs | | {statistics.median(theirs):.0f} µs | "
          f"| {statistics.median(ratios):.0f} ({min(ratios):.0f}–{max(ratios):.0f}) |")


def row(what, ours, our_quality, peer, theirs, their_quality):
    ratios = [b / a for a, b in zip(ours, theirs)]
    print(f"| {what} | {statistics.median(ours):.3f} s ({min(ours):.3f}–{max(ours):.3f}) | {our_quality:.4f} | {peer} "
          f"| {statistics.median(theirs):.3f} s ({min(theirs):.3f}–{max(theirs):.3f}) | {their_quality:.4f} "
          f"| {statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f}) |", flush=True)
    return our_quality <= their_quality * 1.01


def beside_xgboost(name, X, y, rounds):
    """As many rounds of coordinate descent as bring it near the loss of one pass of ours."""
    import xgboost
    cut = X.shape[0] * 9 // 10
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, model = timed(lambda: freshet.train(X[:cut], y[:cut], standardise=False, threads=1))
        ours.append(seconds)
        peer = xgboost.XGBClassifier(booster="gblinear", n_estimators=10, n_jobs=1)
        seconds, _ = timed(lambda: peer.fit(X[:cut], y[:cut]))
        theirs.append(seconds)
    losses = [log_loss(y[cut:], one.predict_proba(X[cut:])[:, 1].astype(float)) for one in (model, peer)]
    return row(f"{name}, {cut:,} rows, log loss", ours, losses[0], "XGBoost, gblinear, 10 rounds", theirs, losses[1])


def beside_river(X, y, rounds, rows=5000):
    """Row after row, each predicted before it is learned."""
    from river import linear_model
    dicts, labels, ours, theirs = [dict(enumerate(x.tolist())) for x in X[:rows]], y[:rows].tolist(), [], []
    for _ in range(rounds):
        model = freshet.train(X[rows:rows + 100], y[rows:rows + 100], standardise=False)
        seconds, losses = timed(lambda: [model.update(X[i], labels[i]) for i in range(rows)])
        ours.append(seconds)
        peer = linear_model.LogisticRegression()

        def learn():
            said = []
            for x, label in zip(dicts, labels):
                said.append(peer.predict_proba_one(x)[True])
                peer.learn_one(x, label)
            return said

        seconds, said = timed(learn)
        theirs.append(seconds)
    return row(f"{rows:,} rows of {X.shape[1]} numbers one by one, log loss before learning", ours, statistics.mean(losses), "River",
               theirs, log_loss(labels, said))


def beside_surprise(folder, rounds, factors=40, epochs=10):
    """Ratings of MovieLens, or made-up ones, a tenth held out."""
    import pandas
    import surprise
    path, rng = folder / "ml-1m" / "ratings-all-no-timestamp.dat.xz", np.random.default_rng(2)
    if path.exists():
        with lzma.open(path, "rt") as file:
            table, name = np.loadtxt(file, delimiter=":", usecols=(0, 2, 4)), "MovieLens 1M"
    else:
        print(f"NOTE {path} is not there: ratings are made up", file=sys.stderr)
        users, items = rng.integers(0, 2000, 100_000), rng.integers(0, 1000, 100_000)
        of_users, of_items = rng.normal(size=(2000, 4)), rng.normal(size=(1000, 4))
        table = np.column_stack([users, items, 3.5 + 0.4 * (of_users[users] * of_items[items]).sum(axis=1) + rng.normal(0, 0.5, 100_000)])
        name = "100,000 made-up ratings"
    table = table[rng.permutation(len(table))]
    cut = len(table) * 9 // 10
    train, test = table[:cut], table[cut:]
    known = surprise.Dataset.load_from_df(pandas.DataFrame(train), surprise.Reader(rating_scale=(1, 5))).build_full_trainset()
    pairs = freshet.Columns(user=train[:, 0].astype(int), item=train[:, 1].astype(int))
    asked = freshet.Columns(user=test[:, 0].astype(int), item=test[:, 1].astype(int))
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, model = timed(lambda: freshet.train(pairs, train[:, 2], format="ratings", model="factorization", factors=factors,
                                                     epochs=epochs, threads=1))
        ours.append(seconds)
        seconds, peer = timed(lambda: surprise.SVD(n_factors=factors, n_epochs=epochs, random_state=0).fit(known))
        theirs.append(seconds)
    said = [peer.predict(user, item, clip=False).est for user, item, _ in test]
    errors = [np.sqrt(np.mean((one - test[:, 2]) ** 2)) for one in (model.predict(asked), np.array(said))]
    return row(f"{name}, {factors} factors, {epochs} passes, RMSE", ours, errors[0], "Surprise, SVD", theirs, errors[1])


def beside_others(covers, folder, rounds):
    fine = True
    print("\n| | freshet | reaches | peer | | reaches | times |\n|---|---|---|---|---|---|---|")
    for package, work in (("xgboost", lambda: beside_xgboost(*covers, rounds)), ("river", lambda: beside_river(*covers[1:], rounds)),
                          ("surprise", lambda: beside_surprise(folder, rounds))):
        if importlib.util.find_spec(package) is None:
            print(f"SKIP {package} is not here: nothing beside it was measured", file=sys.stderr)
        else:
            fine &= work()
    return fine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "shared" / "data")
    options = parser.parse_args()
    print("| | freshet | log loss | SGDClassifier | log loss | times |\n|---|---|---|---|---|---|")
    name, X, y = covtype(options.data, options.rows)
    fine = passes(name, X, y, options.rounds)
    fine &= passes(*url_like(options.rows), options.rounds)
    single_rows(X, y, options.rounds)
    fine &= beside_others((name, X, y), options.data, options.rounds)
    sys.exit(0 if fine else "ours has the worse loss")


main()
