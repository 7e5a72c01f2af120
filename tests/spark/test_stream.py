"""Streams that a server learns from: each row once, whatever crashes when."""
import json
import pathlib
import subprocess
import sys
import time

import freshet
import numpy as np
import pytest
from freshet.spark import learn_into
from pyspark.ml.linalg import Vectors


@pytest.fixture
def server(tmp_path, sea):
    with freshet.Server({"sea": freshet.train(*sea)}, state=str(tmp_path / "state")) as one:
        yield one


def learned(server, rows):
    """How many observations the server has learned, once it is done with so many."""
    client, end = freshet.Client(server.address), time.monotonic() + 30
    while client.stats()["learning"]["learned"] < rows and time.monotonic() < end:
        time.sleep(0.02)
    return client.stats()["learning"]["learned"]


def run(tmp_path, server, *crash):
    """The query's exit code, and what it printed: into files, since its JVM may outlive it for a while."""
    with open(tmp_path / "out", "w+") as out, open(tmp_path / "log", "w") as log:
        code = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("stream_job.py"), tmp_path / "rows",
                               tmp_path / "checkpoints", server.address, *crash], stdout=out, stderr=log, timeout=500).returncode
        out.seek(0)
        return code, out.read().splitlines()


def test_a_crash_after_posting_and_before_the_checkpoint_loses_and_doubles_nothing(tmp_path, server, sea):
    X, y = sea
    (tmp_path / "rows").mkdir()
    for part in range(3):
        lines = [json.dumps({"name": f"row {i}", "x": X[i].astype(float).tolist(), "label": int(y[i])})
                 for i in range(1000 * part, 1000 * part + 1000)]
        (tmp_path / "rows" / f"{part}.json").write_text("\n".join(lines))
        time.sleep(0.01)  # files come in the order of their times
    told = "{'accepted': 1000, 'duplicates': 0}"
    assert run(tmp_path, server, "1") == (9, [f"0 {told}", f"1 {told}"]), (tmp_path / "log").read_text()[-2000:]
    assert learned(server, 2000) == 2000
    again = "1 {'accepted': 0, 'duplicates': 1000}"
    assert run(tmp_path, server) == (0, [again, f"2 {told}"]), (tmp_path / "log").read_text()[-2000:]
    assert learned(server, 3000) == 3000


def test_rows_from_kafka_are_known_by_where_they_lie(spark, server):
    told = []
    learn = learn_into(server.address, cluster="shop", told=lambda number, what: told.append(what))
    rows = [(Vectors.dense([1.0, float(offset), 2.0]), 1, "visits", partition, offset) for partition in (0, 1) for offset in range(40)]
    columns = ["features", "label", "topic", "partition", "offset"]
    learn(spark.createDataFrame(rows, columns), 0)
    learn(spark.createDataFrame(rows[::-1], columns).repartition(3), 0)  # a retry, dealt out otherwise
    assert told == [{"accepted": 80, "duplicates": 0}, {"accepted": 0, "duplicates": 80}]
    assert learned(server, 80) == 80
    with pytest.raises(freshet.Error, match="no column 'offset'"):
        learn(spark.createDataFrame(rows, columns).drop("offset"), 1)


def test_names_of_rows_are_asked_for(spark, server):
    frame = spark.createDataFrame([(Vectors.dense([1.0, 2.0, 3.0]), 1)], ["features", "label"])
    with pytest.raises(freshet.Error, match="number of batch and row would be others"):
        learn_into(server.address)(frame, 0)


def test_columns_of_a_frame_are_those_of_the_model(spark, tmp_path):
    rng = np.random.default_rng(1)
    towns, sizes = rng.choice(["Rome", "Oslo"], 500), rng.uniform(20, 120, 500)
    prices = 2000 * sizes + 90_000 * (towns == "Oslo")
    model = freshet.train(freshet.Columns(town=towns, size=sizes), prices, epochs=5)
    rows = [(f"flat {i}", str(town), float(size), float(price)) for i, (town, size, price) in enumerate(zip(towns, sizes, prices))]
    frame = spark.createDataFrame(rows, ["name", "town", "size", "price"])
    with freshet.Server(model, state=str(tmp_path / "flats")) as server:
        told = []
        learn_into(server.address, id_col="name", label_col="price", columns=["town", "size"],
                   told=lambda number, what: told.append(what))(frame, 0)
        assert told == [{"accepted": 500, "duplicates": 0}]
        assert learned(server, 500) == 500
