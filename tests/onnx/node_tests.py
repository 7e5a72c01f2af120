#!/usr/bin/python3
"""The node tests of the onnx package, for the operators that `freshet import` claims.

Each test is a graph of one operator with inputs and outputs. Inputs other than the first become constants of the file,
as they are in real models; the graph is imported, rows are predicted, and the answer is compared with the stored one.
Equal, refused and wrong are counted; a wrong answer is a failure, a refusal is not. A test that is refused with its first
dimension as the batch is tried once more with its whole input as one row (--one-row).

    tests/onnx/node_tests.py [--verbose] [FRESHET]
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np

for alias in (float, int, bool, object):  # onnx 1.12 still says np.float, which newer NumPy does not have
    if alias.__name__ not in np.__dict__:
        setattr(np, alias.__name__, alias)

import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

HOUSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARGUMENTS = [a for a in sys.argv[1:] if not a.startswith("--")]
VERBOSE = "--verbose" in sys.argv
FRESHET = os.path.abspath(ARGUMENTS[0]) if ARGUMENTS else HOUSE + "/build/release/apps/freshet/freshet"
NEWEST = 23  # operator set that import takes
CLOSE = 1e-4
FOR_CONSTANTS = {"Cast", "Constant", "ConstantOfShape", "Expand", "Shape"}  # claimed for what exporters compute of shapes


def freshet(*arguments):
    return subprocess.run([FRESHET, *map(str, arguments)], capture_output=True, text=True)


def claimed():
    """The operators that import knows, as it says itself."""
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 4])
    other = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph([helper.make_node("NoSuchThing", ["x"], ["y"])], "g", [value], [other])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), "none.onnx")
    told = freshet("import", "none.onnx", "-o", "none.model").stderr
    return set(re.search(r"known are (.*)", told).group(1).strip().split(", "))


def with_constants(model, inputs):
    """The graph with all inputs but the first as constants; old files keep their operator set, new ones are brought down."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    values = [v for v in graph.input]
    del graph.input[1:]
    for value, array in list(zip(values, inputs))[1:]:
        graph.initializer.append(numpy_helper.from_array(array, value.name))
    if made.opset_import[0].version > NEWEST:
        made.opset_import[0].version = NEWEST  # says the same for these operators
    made.ir_version = min(made.ir_version, 10)
    return made


def write_rows(rows):
    with open("rows.csv", "w") as file:
        for row in rows:
            file.write(",".join(repr(float(x)) for x in row) + ",0\n")


def answer(given, one_row):
    """What freshet makes of the graph: ("refused", why) or ("answered", scores, probabilities)."""
    rows = given.reshape(1 if one_row else len(given), -1)
    write_rows(rows)
    imported = freshet("import", "test.onnx", "-o", "test.model", "--like", "rows.csv", "--format", "csv", "--label",
                       rows.shape[1] + 1, *(["--one-row"] if one_row else []))
    if imported.returncode != 0:
        return "refused", imported.stderr.strip().splitlines()[-1]
    answers = []
    for how in ("--scores", "--probabilities"):
        done = freshet("predict", "-i", "test.model", "rows.csv", how)
        if done.returncode != 0:
            return "failed", done.stderr.strip()
        answers.append(np.array([[float(x) for x in line.split()] for line in done.stdout.splitlines()]))
    return "answered", answers[0], answers[1]


def differs(got, wanted):
    if got.size != wanted.size:
        return float("inf")
    wanted = wanted.reshape(-1).astype(float)
    return float(np.max(np.abs(got.reshape(-1) - wanted) / np.maximum(1, np.abs(wanted)), initial=0))


def judge(case):
    inputs, outputs = case.data_sets[0]
    inputs = [np.asarray(a) if isinstance(a, np.generic) else a for a in inputs]
    if not inputs or any(not isinstance(a, np.ndarray) for a in inputs) or inputs[0].dtype != np.float32:
        return "refused", "its input is no tensor of FLOAT"
    if inputs[0].ndim == 0 or inputs[0].size == 0:
        return "refused", "its input is empty or one number"
    onnx.save(with_constants(case.model, inputs), "test.onnx")
    op = case.model.graph.node[0].op_type
    why = ""
    for one_row in (False, True):
        got = answer(inputs[0], one_row)
        if got[0] == "failed":
            return "wrong", got[1]
        if got[0] == "refused":
            why = why or got[1]
            continue
        wanted = np.asarray(outputs[0])
        if op == "LogSoftmax":  # at the end of a network it is the loss's link, as Softmax is
            error = min(differs(got[1], wanted), differs(got[2], np.exp(wanted)))
        elif op in ("Softmax", "Sigmoid"):
            error = min(differs(got[1], wanted), differs(got[2], wanted))
        else:
            error = differs(got[1], wanted)
        if error <= CLOSE:
            return "equal", "--one-row" if one_row else ""
        return "wrong", f"differs by {error:.1e}"
    return "refused", why


def main():
    warnings.simplefilter("ignore")
    counts = collections.defaultdict(collections.Counter)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="freshet-node-tests-") as scratch:
        os.chdir(scratch)
        known = claimed() - FOR_CONSTANTS
        for case in collect_testcases(""):
            nodes = case.model.graph.node
            if len(nodes) != 1 or nodes[0].op_type not in known:
                continue
            verdict, why = judge(case)
            counts[nodes[0].op_type][verdict] += 1
            if verdict == "wrong":
                wrong.append(f"{case.name}: {why}")
            if VERBOSE:
                print(f"{verdict:8} {case.name} {why}")
        os.chdir("/")
    total = sum(counts.values(), collections.Counter())
    for op in sorted(counts):
        print(f"{op:20} {counts[op]['equal']:3} equal {counts[op]['refused']:3} refused {counts[op]['wrong']:3} wrong")
    print(f"onnx {onnx.__version__}: {sum(total.values())} node tests of {len(counts)} operators: "
          f"{total['equal']} equal, {total['refused']} refused, {total['wrong']} wrong")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
