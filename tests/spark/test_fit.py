"""Estimators on a real cluster: the same models as by freshet launch, whoever is killed; Spark's own conventions."""
import json
import os
import re
import signal
import subprocess
import threading
import time
from unittest import mock

import freshet
import numpy as np
import pytest
import spark_cluster
from freshet.spark import _barrier
from freshet.spark import (FreshetClassificationModel, FreshetClassifier, FreshetRecommender, FreshetRecommenderModel,
                           FreshetRegressor)
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler
from pyspark.ml.linalg import SparseVector, Vectors
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder


def frame_of(spark, X, y, parts=4):
    """A part has as many rows as the next, in order."""
    rows = [(Vectors.dense(row.astype(float)), float(label)) for row, label in zip(X, y)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, parts), ["features", "label"])


def launched(program, folder, shares, *options):
    """What `freshet launch -n 4` makes of the same rows, a file for each worker."""
    for rank, share in enumerate(shares):
        (folder / f"part-{rank}").write_text(share)
    subprocess.run([program, "launch", "-n", "4", "--", "train", folder / "part-{rank}", "--split", "own", "--threads", "1",
                    "-o", folder / "launched.model", "--quiet", *options], check=True, capture_output=True, timeout=300)
    return freshet.Model.load(folder / "launched.model")


def csv_shares(X, y):
    return ["".join(",".join(f"{number:.9g}" for number in row) + f",{label:g}\n" for row, label in zip(*share))
            for share in zip(np.array_split(X, 4), np.array_split(y, 4))]


def assert_same(one, other, within=1e-6):
    assert one.rows == other.rows
    for name, block in one.weights.items():
        assert np.abs(block - other.weights[name]).max() <= within * max(1, np.abs(block).max()), name


# Where the rate falls, it does with the blocks that rows come in, and those of text are others: it is held constant.
@pytest.mark.parametrize(("options", "flags"), [
    ({}, []),
    ({"batch": 64, "epochs": 3, "options": {"schedule": "constant"}}, ["--batch", "64", "--epochs", "3", "--schedule", "constant"]),
    ({"batchSplitSize": 16, "averagingFrequency": 4}, ["--batch", "16", "--batch-per-worker", "--strategy", "average", "--every", "4"]),
    ({"model": "mlp", "batch": 64, "optimizer": "sgd", "rate": 0.1, "epochs": 1, "options": {"schedule": "constant"}},
     ["--model", "mlp", "--batch", "64", "--optimizer", "sgd", "--rate", "0.1", "--epochs", "1", "--schedule", "constant"])], ids=["plain", "batches", "averages", "network"])
def test_four_tasks_train_to_the_model_of_freshet_launch(spark, program, tmp_path, sea, options, flags):
    X, y = sea
    of_launch = launched(program, tmp_path, csv_shares(X, y), "--format", "csv", "--header", "no", *flags)
    of_spark = FreshetClassifier(numWorkers=4, **options).fit(frame_of(spark, X, y))
    assert of_spark.report["workers"] == 4 and of_spark.report["rows"] >= 4000
    assert_same(of_spark.native, of_launch)


def test_sparse_vectors_train_to_the_model_of_the_same_entries_in_files(spark, program, tmp_path):
    rng = np.random.default_rng(1)
    rows, shares = [], ["", "", "", ""]
    for number in range(2000):
        places = np.sort(rng.choice(500, 10, replace=False))
        values = rng.normal(size=10).astype(np.float32)
        label = int(values[places < 250].sum() > 0)
        rows.append((Vectors.sparse(500, places, values.astype(float)), float(label)))
        shares[number // 500] += f"{label} " + " ".join(f"{place}:{value:.9g}" for place, value in zip(places, values)) + "\n"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), ["features", "label"])
    of_launch = launched(program, tmp_path, shares, "--format", "libsvm", "--index-base", "0", "--model", "linear")
    of_spark = FreshetClassifier(numWorkers=4, model="linear").fit(frame)
    assert not of_spark.native.config["dense"]
    assert_same(of_spark.native, of_launch)
    found = of_spark.transform(frame).select("prediction", "label").toPandas()
    assert (found.prediction == found.label).mean() > 0.8


class Killing(threading.Thread):
    """Kills a process, by a word of its command line, once a checkpoint is there."""

    def __init__(self, folder, word):
        super().__init__()
        self._folder, self._word = folder, word
        self.killed = None
        self.start()

    def run(self):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if any(path.suffix == ".ckpt" for path in self._folder.iterdir()):
                self.killed = spark_cluster.processes(self._word)[0]
                os.kill(self.killed, signal.SIGKILL)
                return
            time.sleep(0.05)


LONG = {"numWorkers": 4, "batch": 64, "epochs": 40}


@pytest.fixture(scope="module")
def undisturbed(spark):
    X = np.random.default_rng(7).uniform(0, 10, size=(4000, 3)).astype(np.float32)
    frame = frame_of(spark, X, (X[:, 0] + X[:, 1] > 10).astype(int)).cache()
    return frame, FreshetClassifier(**LONG).fit(frame)


@pytest.mark.parametrize("word", ["freshet._worker", "org.apache.spark.executor.CoarseGrainedExecutorBackend"])
def test_who_was_killed_is_tried_again_and_the_model_is_the_same(spark, undisturbed, tmp_path, word):
    frame, model = undisturbed
    tmp_path.chmod(0o777)
    killing = Killing(tmp_path, word)
    again = FreshetClassifier(checkpointDir=str(tmp_path), checkpointSeconds=0.2, **LONG).fit(frame)
    killing.join()
    assert killing.killed is not None
    assert again.report["resumed"] and not model.report["resumed"]
    assert_same(again.native, model.native)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_dealt_out_anew_are_the_same_again(spark, sea, tmp_path):
    X, y = sea
    frame = frame_of(spark, X, y, parts=7)
    one, other = (FreshetClassifier(numWorkers=3, checkpointDir=str(tmp_path), repartitioning="always").fit(frame) for _ in "12")
    assert one.report["workers"] == 3 and one.report["rows"] == 4000
    assert one.native.to_bytes() == other.native.to_bytes()


def refused(spark, rows, **options):
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), ["features", "label"])
    with pytest.raises((freshet.Error, ValueError, TypeError)) as problem:
        FreshetClassifier(numWorkers=2, **options).fit(frame)
    return str(problem.value)


def test_what_cannot_be_is_refused_with_its_reason_and_not_tried_again(spark, capfd):
    good = [(Vectors.dense([float(i), 1.0]), float(i % 2)) for i in range(20)]
    assert "set one of the two" in refused(spark, good, batch=4, batchSplitSize=2)
    assert "of type string" in refused(spark, [(features, "yes") for features, _ in good])
    assert "settled by this estimator's parameters" in refused(spark, good, options={"split": "rows"})
    capfd.readouterr()
    assert "row 10" in refused(spark, good + [(Vectors.dense([1.0, float("inf")]), 1.0)])
    assert "missing values" in refused(spark, good + [(None, 1.0)])
    assert "Lost task" not in capfd.readouterr().err


def accounts(*changes):
    return [{"rows": 10, "width": 4, "entries": 40, "sparse": False, "labels": [0.0, 1.0, True], "digest": "d", **change}
            for change in changes]


JOB = {"options": {"split": "own", "epochs": 2}, "classifies": True, "threads": 1, "checkpoint_dir": "", "checkpoint_seconds": 60}


def test_all_decide_alike_from_what_rows_all_have():
    plain = _barrier.decide(accounts({}, {"labels": [0.0, 2.0, True]}), JOB)
    assert plain["classes"] == ["0", "1", "2"] and not plain["sparse"] and not plain["resumes"]
    assert _barrier.decide(accounts({}), JOB)["options"] == {"epochs": 2}
    assert _barrier.decide(accounts({}, {"sparse": True, "width": 4}), JOB)["sparse"] is False
    assert _barrier.decide(accounts({"width": 900}, {"sparse": True, "width": 900}), JOB)["sparse"] is True
    keeping = {**JOB, "checkpoint_dir": "/kept"}
    paths = {_barrier.decide(some, job)["options"]["checkpoint"]
             for some in (accounts({}, {}), accounts({}, {"digest": "e"}), accounts({"digest": "e"}, {}))
             for job in (keeping, {**keeping, "options": {"split": "own", "epochs": 3}})}
    assert len(paths) == 6 and all(path.startswith("/kept/freshet-") for path in paths)


@pytest.mark.parametrize(("changes", "reason"), [
    (({}, {"labels": [0.0, 1.5, False]}), "labels of rank 1 go from 0.0 to 1.5, expected whole numbers"),
    (({"labels": [0.0, 0.0, True]},), "expected at least two classes"),
    (({"labels": [0.0, 2e9, True]},), "at most 100,000"),
    (({"labels": [-1.0, 1.0, True]},), "go from -1.0"),
    (({}, {"rows": 0, "width": 0}), "1 of 2 workers have no rows (rank 1)"),
    (({}, {"width": 5}), "rows of 4 and of 5 features")])
def test_what_cannot_be_decided_is_refused(changes, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        _barrier.decide(accounts(*changes), JOB)


class Frame:
    """A frame whose stages end as they are told to."""

    def __init__(self, *ends):
        self.ends, self.columns, self.sparkSession = list(ends), ["features", "label"], mock.MagicMock()
        self.sparkSession.sparkContext.getConf.return_value.get.return_value = "1"

    def repartition(self, _):
        return self

    def mapInArrow(self, *_, **__):
        return self

    def collect(self):
        return self.ends.pop(0)


def said(model=None, **what):
    return mock.Mock(model=model, told=json.dumps(what))


def test_workers_that_were_only_cut_off_from_each_other_are_tried_again():
    learner = FreshetClassifier(repartitioning="always", numWorkers=2)
    lost, made = said(error="peer-lost", text="rank 1 is gone"), said(model=b"model", report={"rows": 4})
    assert learner._train(Frame([lost, lost], [lost], [made])) == (b"model", {"rows": 4})
    assert learner._train(Frame([made, lost])) == (b"model", {"rows": 4})  # rank 0 had it before the other was lost
    with pytest.raises(freshet.errors.PeerLostError, match="rank 1 is gone"):
        learner._train(Frame([lost], [lost], [lost], [lost]))
    with pytest.raises(freshet.errors.DivergedError, match="no longer finite"):
        learner._train(Frame([lost, said(error="diverged", text="no longer finite")]))


def test_a_pipeline_is_cross_validated_saved_and_loaded(spark, tmp_path):
    rng = np.random.default_rng(3)
    rows = [(str(rng.choice(["Rome", "Oslo", "Lima"])), float(rng.uniform(20, 120))) for _ in range(600)]
    rows = [(town, size, "yes" if size + 60 * (town == "Oslo") > 100 else "no") for town, size in rows]
    frame = spark.createDataFrame(rows, ["town", "size", "sold"])
    learner = FreshetClassifier(numWorkers=2, epochs=20, seed=1)
    stages = [StringIndexer(inputCol="town", outputCol="number"), OneHotEncoder(inputCol="number", outputCol="towns"),
              VectorAssembler(inputCols=["towns", "size"], outputCol="features"),
              StringIndexer(inputCol="sold", outputCol="label", stringOrderType="alphabetAsc"), learner]
    search = CrossValidator(estimator=Pipeline(stages=stages), numFolds=2, seed=1, evaluator=MulticlassClassificationEvaluator(metricName="logLoss"),
                            estimatorParamMaps=ParamGridBuilder().addGrid(learner.l2, [0.0, 10.0]).build())
    searched = search.fit(frame)
    assert searched.avgMetrics[0] < 0.9 * searched.avgMetrics[1]
    best = searched.bestModel
    searched.save(str(tmp_path / "searched"))
    best.save(str(tmp_path / "pipeline"))
    Pipeline(stages=stages).save(str(tmp_path / "unfitted"))
    names = ["prediction", "probability", "rawPrediction"]
    expected = best.transform(frame).select(*names).collect()
    assert PipelineModel.load(str(tmp_path / "pipeline")).transform(frame).select(*names).collect() == expected
    assert CrossValidatorModel.load(str(tmp_path / "searched")).bestModel.transform(frame).select(*names).collect() == expected
    assert Pipeline.load(str(tmp_path / "unfitted")).getStages()[-1].getOrDefault("seed") == 1
    row = expected[0]
    assert abs(sum(row.probability) - 1) < 1e-6 and row.rawPrediction[0] == -row.rawPrediction[1]
    assert row.prediction == float(row.probability[1] > 0.5)


def test_several_classes_weights_and_a_model_alone(spark, tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 4))
    labels = X[:, :3].argmax(axis=1)
    wrong = (labels + 1) % 3
    rows = [(row.tolist(), int(label), 1.0) for row, label in zip(X, labels)] + \
           [(row.tolist(), int(label), 0.0) for row, label in zip(X, wrong)]
    frame = spark.createDataFrame(rows, "features array<double>, label int, weight double")
    model = FreshetClassifier(numWorkers=2, epochs=10, weightCol="weight", optimizer="lbfgs").fit(frame)
    assert model.numClasses == 3 and model.native.loss == "softmax"
    found = model.transform(frame.where("weight > 0")).select("prediction", "label").toPandas()
    assert (found.prediction == found.label).mean() > 0.95
    model.write().overwrite().save(str(tmp_path / "model"))
    loaded = FreshetClassificationModel.load(str(tmp_path / "model"))
    assert loaded.native.to_bytes() == model.native.to_bytes()
    assert loaded.report["rows"] == model.report["rows"] and loaded.uid == model.uid


def test_numbers_are_predicted_in_the_units_of_the_data(spark):
    X = np.random.default_rng(2).normal(size=(1000, 3))
    frame = frame_of(spark, X, 1000 * X[:, 0] - 500 * X[:, 1] + 7000)
    model = FreshetRegressor(optimizer="lbfgs", predictionCol="price").fit(frame)  # numWorkers: every slot
    assert model.report["workers"] == 4
    rmse = RegressionEvaluator(predictionCol="price", metricName="rmse").evaluate(model.transform(frame))
    assert rmse < 1


def test_ratings_are_factorized_over_several_workers(spark, tmp_path):
    rng = np.random.default_rng(4)
    users, items = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    rows = [(user, f"item {item}", float(3 + users[user] @ items[item])) for user in range(80) for item in range(60)
            if rng.random() < 0.7]
    frame = spark.createDataFrame(rows, ["user", "item", "rating"])
    model = FreshetRecommender(factors=4, epochs=60, numWorkers=3, seed=1).fit(frame)
    evaluator = RegressionEvaluator(labelCol="rating", metricName="rmse")
    assert evaluator.evaluate(model.transform(frame)) < 0.6 * np.std([rating for *_, rating in rows])
    model.save(str(tmp_path / "ratings"))
    loaded = FreshetRecommenderModel.load(str(tmp_path / "ratings"))
    assert loaded.transform(frame.limit(50)).collect() == model.transform(frame.limit(50)).collect()
    stranger = spark.createDataFrame([(10_000, "item 3", 0.0)], ["user", "item", "rating"])
    assert 0 < model.transform(stranger).head().prediction < 6


def test_a_vector_may_be_sparse_in_one_row_and_dense_in_the_next(spark):
    rows = [(SparseVector(3, [0], [float(i % 7)]) if i % 2 else Vectors.dense([float(i % 7), 0.0, 0.0]), float(i % 7 > 3))
            for i in range(300)]
    mixed = spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), ["features", "label"])
    dense = spark.createDataFrame(spark.sparkContext.parallelize([(Vectors.dense(row.toArray()), label) for row, label in rows], 2),
                                  ["features", "label"])
    one, other = (FreshetClassifier(numWorkers=2).fit(frame) for frame in (mixed, dense))
    assert one.native.to_bytes() == other.native.to_bytes()
    assert one.transform(mixed).select("prediction").collect() == other.transform(dense).select("prediction").collect()
