#!/usr/bin/env python3
"""freshet on Spark beside MLlib, in one run on one standalone cluster (a master, two workers of two cores): logistic
regression on rows like covtype's, and the factorization of ratings beside ALS. `make bench-spark` runs it. Prints a
Markdown table.

  bench/spark_peers.py [--rounds 3] [--rows 200000] [--ratings 300000]

Both fit the same cached frame, in turn, round after round; what is reported is the time of the whole `fit`, with everything
that happens to rows on their way, as median and range, and their ratio in the same round. Each is given the number of passes
by which it reaches the quality that is printed beside it, on held-out rows; the script fails if ours is worse by more than a
hundredth of the peer's."""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "spark"))
import spark_cluster  # noqa: E402


def timed(work):
    begun = time.monotonic()
    made = work()
    return time.monotonic() - begun, made


def spread(seconds):
    return f"{statistics.median(seconds):.1f} s ({min(seconds):.1f}–{max(seconds):.1f})"


def beside(what, rounds, ours, theirs, judge):
    """A row of the table; False when what we reach is worse than a hundredth allows. `judge` is less for better models."""
    times = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, fit in (("ours", ours), ("theirs", theirs)):
            seconds, model = timed(fit)
            times[name].append(seconds)
            if name == "ours":
                our_quality = judge(model)
            else:
                their_quality = judge(model)
    ratios = [b / a for a, b in zip(times["ours"], times["theirs"])]
    print(f"| {what} | {spread(times['ours'])} | {our_quality:.4f} | {spread(times['theirs'])} | {their_quality:.4f} "
          f"| {statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f}) |", flush=True)
    return our_quality <= their_quality * 1.01


def rows_like_covtype(spark, count):
    """Ten numbers and 44 flags, two classes; nine of ten rows to learn from."""
    from pyspark.sql import functions as F
    numbers = [F.randn(seed=j) for j in range(10)] + [(F.rand(seed=100 + j) < 0.05).cast("double") for j in range(44)]
    weights = np.random.default_rng(0).normal(size=54)
    from pyspark.ml.functions import array_to_vector
    frame = spark.range(count, numPartitions=4).select(F.array(*numbers).alias("x"))
    score = sum(F.col("x")[j] * float(weight) for j, weight in enumerate(weights))
    frame = frame.select(array_to_vector("x").alias("features"), (score + F.randn(seed=999) > 0).cast("double").alias("label"),
                         (F.rand(seed=1000) < 0.9).alias("train"))
    frame = frame.cache()
    frame.count()
    return frame.where("train").cache(), frame.where("not train").cache()


def classifiers(spark, rounds, count):
    from freshet.spark import FreshetClassifier
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    train, test = rows_like_covtype(spark, count)
    judge = MulticlassClassificationEvaluator(metricName="logLoss")
    return beside(f"logistic regression, {train.count():,} rows of 54 numbers, log loss", rounds,
                  lambda: FreshetClassifier(numWorkers=4, epochs=2).fit(train),
                  lambda: LogisticRegression(maxIter=20).fit(train), lambda model: judge.evaluate(model.transform(test)))


def recommenders(spark, rounds, count):
    from freshet.spark import FreshetRecommender
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.recommendation import ALS
    rng = np.random.default_rng(1)
    users, items, rank = 4000, 2000, 8
    of_users, of_items = rng.normal(size=(users, rank)) / rank**0.25, rng.normal(size=(items, rank)) / rank**0.25
    user, item = rng.integers(0, users, count), rng.integers(0, items, count)
    rating = 3.5 + 0.5 * (of_users[user] * of_items[item]).sum(axis=1) + rng.normal(scale=0.5, size=count)
    import pandas as pd
    frame = spark.createDataFrame(pd.DataFrame({"user": user, "item": item, "rating": rating})).repartition(4)
    train, test = (part.cache() for part in frame.randomSplit([0.9, 0.1], seed=1))
    train.count(), test.count()
    judge = RegressionEvaluator(labelCol="rating", metricName="rmse")
    return beside(f"factorization, {train.count():,} ratings, {rank} factors, RMSE", rounds,
                  lambda: FreshetRecommender(numWorkers=1, factors=rank, epochs=40, seed=1).fit(train),
                  lambda: ALS(rank=rank, maxIter=10, regParam=0.1, coldStartStrategy="drop", seed=1).fit(train),
                  lambda model: judge.evaluate(model.transform(test)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--ratings", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = spark_cluster.Cluster(folder)
        try:
            spark = spark_cluster.session(cluster.url)
            spark.sparkContext.setLogLevel("ERROR")
            print("| | freshet | reaches | MLlib | reaches | times |\n|---|---|---|---|---|---|")
            fine = classifiers(spark, options.rounds, options.rows)
            fine &= recommenders(spark, options.rounds, options.ratings)
            spark.stop()
        finally:
            cluster.stop()
    sys.exit(0 if fine else "ours is worse")


main()
