"""A worker as a process: rows by Arrow on its standard input, then an order (freshet._worker)."""
import json
import subprocess
import sys
import time

import freshet
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="PYARROW IS NOT HERE: WORKERS OF SPARK WERE NOT TESTED")
from freshet._worker import Rows  # noqa: E402

VECTOR = pa.struct([("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))])


def dense(*values):
    return {"type": 1, "size": None, "indices": None, "values": list(values)}


def sparse(size, entries):
    return {"type": 0, "size": size, "indices": list(entries), "values": list(entries.values())}


def batch(vectors):
    return pa.record_batch({"features": pa.array(vectors, VECTOR)})


def test_vectors_of_both_kinds_are_one_matrix_however_they_are_cut_into_batches():
    vectors = [dense(1, 2, 0), dense(3, 0, 4), sparse(3, {1: 5.0}), sparse(3, {}), dense(0, 6, 0), sparse(3, {0: 7.0, 2: 8.0})]
    whole = [[1, 2, 0], [3, 0, 4], [0, 5, 0], [0, 0, 0], [0, 6, 0], [7, 0, 8]]
    accounts = set()
    for cut in range(len(vectors) + 1):
        rows = Rows()
        for part in (vectors[:cut], vectors[cut:]):
            rows.add(batch(part))
        assert rows.source(False).tolist() == whole
        accounts.add(json.dumps(rows.account()))
        matrix = rows.source(True)
        assert matrix.shape == (6, 3) and matrix.indptr[-1] == len(matrix.data) == rows.entries
        filled = np.zeros((6, 3))
        filled[np.repeat(np.arange(6), np.diff(matrix.indptr)), matrix.indices] = matrix.data
        assert filled.tolist() == whole
    assert len(accounts) == 1


def test_a_slice_of_a_batch_is_the_rows_it_shows():
    rows = Rows()
    rows.add(batch([dense(1, 2), sparse(2, {1: 3.0}), dense(4, 5)]).slice(1, 2))
    assert rows.source(False).tolist() == [[0, 3], [4, 5]]


@pytest.mark.parametrize(("vectors", "reason"), [
    ([dense(1, 2), dense(1)], "row 1 of this share has 1 features, those before have 2"),
    ([dense(1, 2), sparse(3, {0: 1.0})], "has 3 features"),
    ([dense()], "has 0 features"),
    ([dense(1), None], "1 missing values")])
def test_rows_that_cannot_be_are_named(vectors, reason):
    with pytest.raises(ValueError, match=reason):
        Rows().add(batch(vectors))


class Talk:
    """A worker, and what is said to it."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-m", "freshet._worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def give(self, X, y):
        columns = {"features": pa.array(list(X), pa.list_(pa.float32())), "label": pa.array(y, pa.float64())}
        table = pa.record_batch(columns)
        with pa.ipc.new_stream(self.process.stdin, table.schema) as writer:
            writer.write_batch(table)
        self.process.stdin.flush()
        return self.hear()

    def order(self, **order):
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


def test_a_worker_trains_what_it_is_given(sea):
    X, y = sea
    with Talk() as worker:
        account = worker.give(X, y)
        assert (account["rows"], account["width"], account["labels"]) == (4000, 3, [0.0, 1.0, True])
        worker.order(options={"epochs": 2}, classes=["0", "1"], threads=1)
        word = worker.hear()
        model = freshet.Model.from_bytes(worker.process.stdout.read(word["model"]))
        assert word["report"]["rows"] == 8000
    assert model.to_bytes() == freshet.train(X, y, epochs=2, threads=1).to_bytes()


def test_what_a_worker_refuses_it_says(sea):
    X, y = sea
    with Talk() as worker:
        worker.give(X, y)
        worker.order(options={"epochs": -1}, classes=["0", "1"])
        word = worker.hear()
    assert word["error"] == "invalid" and "epochs" in word["text"]
    with Talk() as worker:
        word = worker.give([[1.0, 2.0], [3.0]], [0, 1])
    assert word["error"] == "bad-input" and "has 1 features" in word["text"]


def test_a_worker_ends_when_nobody_wants_it_any_more(sea):
    with Talk() as worker:
        worker.give(*sea)
        worker.order(options={"epochs": 1_000_000}, classes=["0", "1"], threads=1)
        time.sleep(0.2)
        worker.process.stdin.close()
        assert worker.process.wait(timeout=60) == 143
