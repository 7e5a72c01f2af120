"""freshet.train and freshet.Model: arrays as files, errors, threads, signals, memory."""
import os
import pickle
import subprocess
import sys
import threading
import time

import freshet
import numpy as np
import pytest
from scipy import sparse


def csv_of(path, X, y):
    np.savetxt(path, np.column_stack([X.astype(np.float64), y]), delimiter=",", fmt="%.9g")
    return path


def test_an_array_trains_to_the_same_model_as_a_file_with_the_same_numbers(tmp_path, sea):
    X, y = sea
    of_file = freshet.train(csv_of(tmp_path / "sea.csv", X, y), header="no")
    of_array = freshet.train(X, y)
    for name, block in of_file.weights.items():
        assert np.array_equal(block, of_array.weights[name]), name
    assert np.array_equal(of_file.scores(X), of_array.scores(X))


@pytest.mark.parametrize("change", [np.asfortranarray, lambda X: X.astype(np.float64), lambda X: X[::-1][::-1],
                                    lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X.astype(">f4"), lambda X: X.tolist()])
def test_the_layout_of_an_array_makes_no_difference(sea, change):
    X, y = sea
    assert np.array_equal(freshet.train(X, y).scores(X), freshet.train(change(X), y).scores(X))


def test_sparse_rows_are_those_of_a_libsvm_file(tmp_path, rng):
    X = sparse.random(2000, 300, 0.05, format="csr", random_state=1, dtype=np.float32)
    y = np.asarray(X.sum(axis=1))[:, 0] > 7.5
    lines = [f"{int(label)} " + " ".join(f"{j}:{v:.9g}" for j, v in zip(row.indices, row.data))
             for label, row in zip(y, (X[i] for i in range(X.shape[0])))]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    of_file = freshet.train(tmp_path / "rows.svm", index_base=0, format="libsvm", model="linear")
    of_matrix = freshet.train(X, y)
    assert np.array_equal(of_file.weights["weights"], of_matrix.weights["weights"])
    assert np.array_equal(of_matrix.scores(X), of_matrix.scores(X.toarray()))
    assert np.array_equal(of_matrix.scores(X), of_matrix.scores(X.tocoo()))


def test_workers_share_the_rows_of_an_array(sea):
    X, y = sea
    alone = freshet.train(X, y, batch=32, epochs=2)
    together = freshet.train(X, y, batch=32, epochs=2, workers=2)
    assert together.report["workers"] == 2
    assert np.allclose(alone.weights["weights"], together.weights["weights"], atol=1e-4)


def test_labels_may_be_texts(sea):
    X, y = sea
    names = np.where(y == 1, "wet", "dry")
    model = freshet.train(X, names)
    assert model.classes.tolist() == ["dry", "wet"]
    assert (model.predict(X) == names).mean() > 0.9
    assert model.evaluate(X, names)["error_rate"] < 0.1
    model.update(X[0], "wet")
    with pytest.raises(freshet.errors.BadInputError, match="expected one of dry, wet"):
        model.update(X[0], "damp")


def test_updates_do_not_depend_on_how_rows_are_handed_over(sea):
    X, y = sea
    whole, bits, rows = (freshet.Model.from_bytes(freshet.train(X[:100], y[:100]).to_bytes()) for _ in range(3))
    whole.update(X[100:400], y[100:400])
    for begin in range(100, 400, 70):
        bits.update(X[begin:min(begin + 70, 400)], y[begin:min(begin + 70, 400)])
    for x, label in zip(X[100:400], y[100:400]):
        rows.update(x, label)
    assert whole.rows == bits.rows == rows.rows == 400
    assert np.array_equal(whole.scores(X), bits.scores(X))
    assert np.array_equal(whole.scores(X), rows.scores(X))


def test_a_model_that_was_pickled_in_between_learns_the_same(sea):
    X, y = sea
    here = freshet.train(X[:100], y[:100])
    here.update(X[100:200], y[100:200])
    there = pickle.loads(pickle.dumps(here))
    for model in (here, there):
        model.update(X[200:300], y[200:300])
    assert here.to_bytes() == there.to_bytes()


def test_the_command_line_predicts_the_same(tmp_path, sea, program):
    X, y = sea
    model = freshet.train(X, y)
    model.save(tmp_path / "sea.model")
    csv_of(tmp_path / "rows.csv", X[:50], y[:50])
    done = subprocess.run([program, "predict", "-i", tmp_path / "sea.model", tmp_path / "rows.csv"], text=True,
                          capture_output=True, check=True)
    assert np.allclose([float(line) for line in done.stdout.split()], model.predict_proba(X[:50])[:, 1], atol=1e-6)


@pytest.mark.parametrize("call, kind, text", [
    (lambda X, y: freshet.train(X, y, optimizr="sgd"), freshet.errors.InvalidError, "did you mean 'optimizer'"),
    (lambda X, y: freshet.train(X, y, rate="fast"), freshet.errors.InvalidError, "rate: found 'fast', expected a number"),
    (lambda X, y: freshet.train(X, y[:-1]), ValueError, "expected one for each of 4000 rows"),
    (lambda X, y: freshet.train(X[0], y), ValueError, "expected 2"),
    (lambda X, y: freshet.train(X), ValueError, "have no labels"),
    (lambda X, y: freshet.train(X[:0], y[:0]), ValueError, "there are none"),
    (lambda X, y: freshet.train("nowhere.csv"), freshet.errors.NotFoundError, "nowhere.csv"),
    (lambda X, y: freshet.Model.load("nowhere.model"), LookupError, "nowhere.model"),
    (lambda X, y: freshet.Model.from_bytes(b"nonsense"), freshet.errors.CorruptError, "these bytes"),
    (lambda X, y: freshet.train(X, y).scores(X[:, :2]), ValueError, "have 2 numbers each, and the model's 3"),
    (lambda X, y: freshet.train(X, y).update(X[0], 7), ValueError, "label 7, expected one of 0, 1"),
    (lambda X, y: freshet.train(X, y).recommend("me"), ValueError, "need a factorization model"),
    (lambda X, y: freshet.train(X, y, loss="hinge").predict_proba(X), ValueError, "no probabilities"),
])
def test_errors_say_what_was_found_and_what_to_do(sea, call, kind, text):
    with pytest.raises(kind, match=text) as raised:
        call(*sea)
    assert isinstance(raised.value, freshet.Error)


def test_a_number_that_is_none_is_named_with_its_row(sea):
    X, y = sea
    X[1234, 2] = np.inf
    with pytest.raises(freshet.errors.BadInputError, match="row 1234, feature 2: found inf"):
        freshet.train(X, y)


def test_other_threads_run_while_a_model_is_fitted(rng):
    X = rng.normal(size=(20_000, 40)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    turns, done = 0, threading.Event()
    def fit():
        freshet.train(X, y, epochs=20)
        done.set()
    thread = threading.Thread(target=fit)
    thread.start()
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 5


def test_progress_is_told_and_may_stop_the_run(rng):
    X = rng.normal(size=(5000, 20)).astype(np.float32)
    told = []
    def tell(now):
        told.append(now)
        if len(told) == 2:
            raise RuntimeError("enough")
    with pytest.raises(RuntimeError, match="enough"):
        freshet.train(X, X[:, 0], epochs=100_000, progress=tell)
    assert len(told) == 2 and told[1]["rows"] > told[0]["rows"] and 0 <= told[0]["fraction"] <= 1


CTRL_C = """
import numpy, os, signal, sys, threading, time
import freshet
X = numpy.random.default_rng(0).normal(size=({rows}, 50)).astype("float32")
y = (X[:, 0] > numpy.random.default_rng(1).normal(size=len(X))).astype(int)
def interrupt():
    time.sleep({after})
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    freshet.train(X, y, epochs=100_000, {options})
except KeyboardInterrupt:
    print(time.monotonic() - sent)
"""


# L-BFGS comes to its end by itself, so that it needs more rows not to have done so before.
@pytest.mark.parametrize("rows, after, options", [(200_000, 1, "model='linear'"), (1_000_000, 0.3, "optimizer='lbfgs'"),
                                                  (200_000, 1, "model='mlp'"), (200_000, 1, "model='linear', workers=2")])
def test_ctrl_c_stops_a_run_at_once(rows, after, options):
    seconds = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CTRL_C.format(rows=rows, after=after, options=options)], text=True,
                              capture_output=True, timeout=120, env=os.environ)
        assert done.stdout, done.stderr
        seconds.append(float(done.stdout))
    assert min(seconds) < 0.2, seconds


MEMORY = """
import numpy, resource, freshet
rows, width = {megabytes} * 2**20 // 4 // 64, 64
X = numpy.zeros((rows, width), numpy.float32)
X[:, 0] = numpy.arange(rows) % 2
X[:, 1:] = (numpy.arange(63) % 7)
y = X[:, 0].astype(numpy.int8)
freshet.train(X[:1000], y[:1000])                        # whatever a first call needs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
freshet.train(X, y, epochs=2)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_fitting_takes_no_copy_of_an_array():
    """FRESHET_LARGE=1024 measures a gigabyte."""
    megabytes = int(os.environ.get("FRESHET_LARGE", "400"))
    done = subprocess.run([sys.executable, "-c", MEMORY.format(megabytes=megabytes)], text=True, capture_output=True,
                          timeout=300)
    assert done.stdout, done.stderr
    assert float(done.stdout) < 0.05 * megabytes


def test_a_model_of_images_reads_arrays_of_channels_rows_and_columns(rng):
    X = rng.integers(0, 255, size=(400, 1, 12, 12), dtype=np.uint8)
    y = (X[:, 0, :6].mean(axis=(1, 2)) > X[:, 0, 6:].mean(axis=(1, 2))).astype(int)
    model = freshet.train(X, y, model="mlp", loss="softmax", epochs=40, subtract_mean="none")
    assert model.input["shape"] == [1, 12, 12] and model.evaluate(X, y)["error_rate"] < 0.1


def test_onnx_and_a_checkpoint(tmp_path, sea):
    X, y = sea
    model = freshet.train(X, y, epochs=2, checkpoint=tmp_path / "run.ckpt", model="linear", batch=8)
    model.to_onnx(tmp_path / "sea.onnx")
    assert (tmp_path / "sea.onnx").stat().st_size > 100
    assert (tmp_path / "run.ckpt").exists()


def test_training_goes_on_from_a_model(sea):
    X, y = sea
    first = freshet.train(X[:200], y[:200])
    more = freshet.train(X, y, start=first, epochs=3)
    assert more.evaluate(X, y)["log_loss"] < first.evaluate(X, y)["log_loss"]


def test_a_place_that_cannot_be_is_refused(sea):
    token = bytes(32)
    with pytest.raises(freshet.errors.InvalidError, match="a token of 5 bytes, expected 32"):
        freshet.train(*sea, split="own", place=freshet.Place(0, 2, "127.0.0.1:0", b"short"))
    with pytest.raises(freshet.errors.TimeoutError, match="rank 1"):
        freshet.train(*sea, split="own", place=freshet.Place(0, 2, "127.0.0.1:0", token, announce=lambda where: None, join_timeout=0.3))
    with pytest.raises(freshet.errors.IoError, match="nobody listens to this"):
        def announce(where):
            raise RuntimeError(f"nobody listens to this: {where}")

        freshet.train(*sea, split="own", place=freshet.Place(0, 2, "127.0.0.1:0", token, announce=announce))
