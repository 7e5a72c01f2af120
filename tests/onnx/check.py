#!/usr/bin/python3
"""Do freshet's ONNX files say what its models do?

Trains a model of every kind, exports it, and compares what programs that are not ours make of the file with what
freshet predicts, on 1,000 random rows: OpenCV for networks, an evaluator in NumPy (evaluate.py) for everything. Networks
made here with random weights go the other way, too: imported, they must predict what OpenCV does.

    tests/onnx/check.py [FRESHET]
"""

import os
import subprocess
import sys
import tempfile

import cv2
import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnx.shape_inference

import evaluate
import networks

HOUSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRESHET = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else HOUSE + "/build/release/apps/freshet/freshet"
ROWS = 1000
CLOSE = 1e-4
failures = []


def freshet(*arguments):
    done = subprocess.run([FRESHET, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"freshet {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def predictions(model, data, *more):
    return np.array([[float(x) for x in line.split()] for line in freshet("predict", "-i", model, data, *more).splitlines()])


def load(path):
    onnx.checker.check_model(path, full_check=True)
    return onnx.load(path)


def compare(what, theirs, ours):
    theirs, ours = np.asarray(theirs, float).reshape(-1), np.asarray(ours, float).reshape(-1)
    if theirs.shape != ours.shape:
        worst = f"{theirs.shape} values, expected {ours.shape}"
        good = False
    else:
        error = np.max(np.abs(theirs - ours) / np.maximum(1, np.abs(ours)))
        worst, good = f"differs by {error:.1e} at most", bool(error <= CLOSE)
    print(f"{'ok  ' if good else 'FAIL'} {what}: {worst}")
    if not good:
        failures.append(what)


def write_csv(path, rows, labels=None):
    with open(path, "w") as file:
        for i, row in enumerate(rows):
            cells = ["" if isinstance(x, float) and np.isnan(x) else str(x) for x in row]
            file.write(",".join(cells + ([] if labels is None else [str(labels[i])])) + "\n")


def write_libsvm(path, rows, labels):
    with open(path, "w") as file:
        for row, label in zip(rows, labels):
            file.write(f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x != 0) + "\n")


def write_idx(path, images, labels):
    with open(path + "-images-idx3-ubyte", "wb") as file:
        file.write(bytes([0, 0, 8, images.ndim]) + b"".join(n.to_bytes(4, "big") for n in images.shape) + images.tobytes())
    with open(path + "-labels-idx1-ubyte", "wb") as file:
        file.write(bytes([0, 0, 8, 1]) + len(labels).to_bytes(4, "big") + bytes(labels))


TASKS = {"logistic": "probability", "hinge": "score", "squared": "prediction", "softmax": "probabilities"}


def labels_of(rows, loss, random):
    score = np.nan_to_num(rows).astype(float) @ np.linspace(-1, 1, rows.shape[1]) + random.normal(size=len(rows))
    if loss == "squared":  # numbers as people have them, and far from zero, where rounding would count
        return np.round(180_000 + 5_000 * score, 1)
    if loss == "softmax":
        return np.digitize(score, [-1, 1])
    return (score > 0).astype(int)


def check_linear(random):
    dense = np.round(random.normal(2, 3, size=(ROWS, 8)), 3).astype(np.float32)
    sparse = np.where(random.random((ROWS, 30)) < 0.3, dense[:, :1] + np.round(random.normal(size=(ROWS, 30)), 3), 0)
    sparse[0] = 1  # every feature is met
    for loss, output in TASKS.items():
        for name, rows, write in (("dense", dense, write_csv), ("sparse", sparse, write_libsvm)):
            labels = labels_of(rows, loss, random)
            write("data", rows.tolist(), labels)
            freshet("train", "data", "--loss", loss, "--quiet", "-o", "model")
            for form in ([], ["--onnx-ml"]):
                freshet("export", "-i", "model", "--onnx", "out.onnx", *form)
                answer = evaluate.run(load("out.onnx"), {"input": rows.astype(np.float32)})
                ours = predictions("model", "data", "--probabilities")
                key = output if not form else [o for o in answer if o != "label"][0]
                theirs = answer[key] if answer[key].shape[1] == ours.shape[1] else answer[key][:, 1:]
                compare(" ".join(["linear", loss, name, *form]), theirs, ours)
                if "label" in answer and not form:
                    wanted = ours.argmax(axis=1) if loss == "softmax" else ours[:, 0] > (0.5 if loss == "logistic" else 0)
                    compare(f"linear {loss} {name} label", answer["label"], wanted)


def check_table(random):
    """Numbers with gaps and categories: the vector is the numbers, then a place for each category in order met."""
    numbers = np.round(random.normal(5, 2, size=(ROWS, 3)), 3)
    numbers[random.random(numbers.shape) < 0.1] = np.nan
    colours = random.choice(["red", "green", "blue"], size=ROWS)
    labels = (np.nan_to_num(numbers, nan=5).sum(axis=1) + (colours == "red") > 15).astype(int)
    write_csv("data", [list(map(float, n)) + [c] for n, c in zip(numbers, colours)], labels)
    freshet("train", "data", "--loss", "logistic", "--quiet", "-o", "model")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    met = list(dict.fromkeys(colours))
    vector = np.concatenate([numbers, np.array([[c == m for m in met] for c in colours])], axis=1)
    answer = evaluate.run(load("out.onnx"), {"input": vector.astype(np.float32)})
    compare("linear logistic, table with gaps and categories", answer["probability"], predictions("model", "data"))


def check_fm(random):
    rows = np.where(random.random((ROWS, 20)) < 0.3, np.round(random.normal(size=(ROWS, 20)), 3), 0)
    rows[0] = 1
    for loss in ("logistic", "hinge", "squared"):
        write_libsvm("data", rows, labels_of(rows, loss, random))
        freshet("train", "data", "--model", "fm", "--loss", loss, "--factors", 6, "--quiet", "-o", "model")
        freshet("export", "-i", "model", "--onnx", "out.onnx")
        answer = evaluate.run(load("out.onnx"), {"input": rows.astype(np.float32)})
        compare(f"fm {loss}", answer[TASKS[loss]], predictions("model", "data"))


def check_factorization(random):
    users, items = random.integers(40, size=ROWS), random.integers(30, size=ROWS)
    with open("data", "w") as file:
        for u, i in zip(users, items):
            file.write(f"u{u}::i{i}::{random.integers(1, 6)}::{1000}\n")
    freshet("train", "data", "--format", "ratings", "--factors", 7, "--quiet", "-o", "model")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    number = [{name: n for n, name in enumerate(dict.fromkeys(ids))} for ids in (users, items)]
    with open("some", "w") as file:
        for u, i in zip(users, items):
            file.write(f"u{u}::i{i + 15}::3::1000\n")  # half of these items were never seen
    feeds = {
        "user": np.array([number[0].get(u, -1) for u in users]),
        "item": np.array([number[1].get(i + 15, -1) for i in items]),
    }
    answer = evaluate.run(load("out.onnx"), feeds)
    compare("factorization, with items never seen", answer["prediction"], predictions("model", "some"))


def check_kmeans(random):
    rows = np.round(random.normal(size=(ROWS, 5)) + random.integers(4, size=(ROWS, 1)) * 6, 3).astype(np.float32)
    write_csv("data", rows.tolist(), [0] * ROWS)
    freshet("train", "data", "--model", "kmeans", "--clusters", 4, "--quiet", "-o", "model")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    answer = evaluate.run(load("out.onnx"), {"input": rows})
    compare("kmeans", answer["cluster"], predictions("model", "data"))


def by_opencv(path, images, batch=50):
    net = cv2.dnn.readNetFromONNX(path)
    answers = []
    for begin in range(0, len(images), batch):
        net.setInput(images[begin : begin + batch].astype(np.float32))
        answers.append(net.forward().reshape(min(batch, len(images) - begin), -1).copy())
    return np.concatenate(answers)


def check_network(name, model, rows, random):
    """A network of our making: import, predict, export, and ask NumPy and OpenCV about both files."""
    opencv = name != "mobile"  # whose Clip with bounds as inputs OpenCV 4.6 does not know
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "in.onnx")
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:]
    classes = model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    scale = []
    if len(dims) == 3:
        rows = random.integers(0, 256, size=(rows, *dims), dtype=np.uint8)
        write_idx("data", rows if dims[0] > 1 else rows[:, 0], [0] * len(rows))
        data, values = "data-images-idx3-ubyte", rows.astype(np.float32)
        if model.graph.node[0].op_type != "Mul":  # takes numbers from 0 to 1
            scale, values = ["--scale", repr(1 / 255)], values / 255
    else:
        values = np.round(random.normal(size=(rows, *dims)), 3).astype(np.float32)
        write_csv("data", values.tolist(), [0] * rows)
        data, rows = "data", values
    freshet("import", "in.onnx", "-o", "model", *scale)
    ours = predictions("model", data, *(["--probabilities"] if classes > 1 else []))
    few = values[:20].astype(np.float32)
    theirs = list(evaluate.run(model, {"input": few}).values())[0]
    compare(f"{name}, imported, by NumPy", theirs, ours[:20])
    if opencv:
        compare(f"{name}, imported, by OpenCV", by_opencv("in.onnx", values), ours)
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    exported = load("out.onnx")
    if opencv:
        compare(f"{name}, exported again, by OpenCV", by_opencv("out.onnx", rows), ours)
    few = rows[:20].astype(np.float32)
    compare(f"{name}, exported again, by NumPy", list(evaluate.run(exported, {"input": few}).values())[0], ours[:20])


def check_outside(random):
    """Weights beside the file, as PyTorch's exporter writes them, and beside no file of the model's."""
    model = networks.mlp(random)
    values = np.round(random.normal(size=(50, 20)), 3).astype(np.float32)
    write_csv("data", values.tolist(), [0] * 50)
    onnx.save(model, "one.onnx")
    freshet("import", "one.onnx", "-o", "one")
    onnx.save_model(model, "two.onnx", save_as_external_data=True, location="two.data", size_threshold=0)
    freshet("import", "two.onnx", "-o", "two")
    ours = predictions("one", "data", "--probabilities")
    compare("weights in another file", predictions("two", "data", "--probabilities"), ours)
    os.makedirs("elsewhere", exist_ok=True)
    os.rename("two.data", "elsewhere/two.data")
    os.symlink("elsewhere/two.data", "two.data")
    for what, place in (("a link", "two.data"), ("a way up", "../two.data"), ("an absolute path", os.path.abspath("two.data"))):
        bad = onnx.load("two.onnx", load_external_data=False)
        for tensor in bad.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = place
        with open("bad.onnx", "wb") as file:
            file.write(bad.SerializeToString())
        done = subprocess.run([FRESHET, "import", "bad.onnx", "-o", "bad"], capture_output=True, text=True)
        print(f"{'ok  ' if done.returncode == 3 else 'FAIL'} weights behind {what} are refused: {done.stderr.strip()[-90:]}")
        if done.returncode != 3:
            failures.append(f"weights behind {what}")


def check_trained(name, shape, *more):
    """A network of the zoo, trained a little."""
    random = np.random.default_rng(3)
    images = random.integers(0, 256, size=(200, *shape), dtype=np.uint8)
    write_idx("data", images if shape[0] > 1 else images[:, 0], [i % 10 for i in range(200)])
    freshet("train", "data-images-idx3-ubyte", "--model", name, "--epochs", 1, "--quiet", "-o", "model", *more)
    ours = predictions("model", "data-images-idx3-ubyte", "--probabilities")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    exported = load("out.onnx")
    what = " ".join([name, *more, "trained"])
    compare(f"{what}, by OpenCV", by_opencv("out.onnx", images), ours)
    answer = list(evaluate.run(exported, {"input": images[:20].astype(np.float32)}).values())[0]
    compare(f"{what}, by NumPy", answer, ours[:20])
    freshet("import", "out.onnx", "-o", "again")
    compare(f"{what}, imported again", predictions("again", "data-images-idx3-ubyte", "--probabilities"), ours)


def check_regression_network(random):
    """A network of prices: its numbers are scaled at the end of the file, and back again when it is imported."""
    rows = np.round(random.normal(2, 3, size=(ROWS, 8)), 3).astype(np.float32)
    write_csv("data", rows.tolist(), labels_of(rows, "squared", random))
    freshet("train", "data", "--model", "mlp", "--loss", "squared", "--no-standardise", "--rate", "0.001", "--epochs", 2,
            "--quiet", "-o", "model")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    ours = predictions("model", "data")
    if not 150_000 < ours.mean() < 210_000:
        failures.append("a network of prices says other numbers than prices")
    compare("mlp squared, by OpenCV", by_opencv("out.onnx", rows), ours)
    compare("mlp squared, by NumPy", evaluate.run(load("out.onnx"), {"input": rows})["prediction"], ours)
    freshet("import", "out.onnx", "-o", "again")
    compare("mlp squared, imported again", predictions("again", "data"), ours)


def check_recurrent(random):
    """Symbols in, a class out: embedding, LSTM and GRU, for which OpenCV has no words of ours."""
    rows = random.integers(0, 12, size=(ROWS, 9))
    write_csv("data", rows.tolist(), rows.sum(axis=1) % 3)
    with open("net.toml", "w") as file:
        file.write(
            'input = "data"\nlayers = [{embedding = 5, vocabulary = 12}, {lstm = 7, sequence = true}, '
            '{dense = 6, per-step = true, activation = "tanh"}, {gru = 4}, {dense = "classes"}]\n'
        )
    freshet("train", "data", "--model", "net.toml", "--loss", "softmax", "--no-standardise", "--quiet", "-o", "model")
    freshet("export", "-i", "model", "--onnx", "out.onnx")
    answer = evaluate.run(load("out.onnx"), {"input": rows.astype(np.float32)})
    compare("embedding, lstm, gru", answer["probabilities"], predictions("model", "data", "--probabilities"))


def check_that_a_difference_shows():
    """One weight of the last file changed a little: does anybody notice?"""
    model = load("out.onnx")
    weight = next(t for t in model.graph.initializer if t.name.endswith(".weight"))
    values = onnx.numpy_helper.to_array(weight).copy()
    values.flat[:] *= 1.05
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    inputs = np.random.default_rng(5).integers(0, 12, size=(50, 9)).astype(np.float32)
    key = model.graph.output[0].name
    before, after = (evaluate.run(m, {"input": inputs})[key] for m in (load("out.onnx"), model))
    if np.max(np.abs(before - after)) <= CLOSE:
        failures.append("a changed weight makes no difference")


def main():
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="freshet-onnx-") as scratch:
        os.chdir(scratch)
        for check in (check_linear, check_table, check_fm, check_factorization, check_kmeans):
            check(random)
        for name, model, rows in networks.all_of_them(random):
            check_network(name, model, rows, random)
        check_regression_network(random)
        check_outside(random)
        check_recurrent(random)
        check_that_a_difference_shows()
        check_trained("mlp", (1, 28, 28))
        check_trained("lenet5", (1, 28, 28), "--subtract-mean", "pixel")
        check_trained("lenet5", (1, 28, 28), "--crop", "24")
        os.chdir("/")
    if failures:
        sys.exit(f"{len(failures)} of the files do not say what the model does: " + "; ".join(failures))
    print("all files say what the models do")


if __name__ == "__main__":
    main()
