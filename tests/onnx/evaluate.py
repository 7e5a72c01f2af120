"""Runs an ONNX graph with NumPy: slow, plain, and written from the operators' specification alone, so that freshet's
exports are judged by something that shares no code with it."""

import math

import numpy as np
from onnx import helper, numpy_helper


def run(model, feeds):
    """Values of all outputs, by name."""
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values.update(feeds)
    values[""] = None
    for node in model.graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        results = OPERATORS[node.op_type](attributes, *[values[name] for name in node.input])
        for name, result in zip(node.output, results if isinstance(results, tuple) else (results,)):
            values[name] = result
    return {output.name: values[output.name] for output in model.graph.output}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gemm(a, x, w, b=None):
    y = a.get("alpha", 1.0) * (x @ (w.T if a.get("transB", 0) else w))
    return y if b is None else y + a.get("beta", 1.0) * b


def padded(x, pads, fill):
    return np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=fill)


def windows(x, kernel, strides, dilations, count):
    """[N, C, oh, ow, kh, kw]; what lies outside is not asked for."""
    rows = [np.arange(count[d])[:, None] * strides[d] + np.arange(kernel[d])[None] * dilations[d] for d in (0, 1)]
    return x[:, :, rows[0][:, None, :, None], rows[1][None, :, None, :]]


def conv(a, x, w, b=None):
    strides, dilations = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
    x = padded(x, a.get("pads", [0, 0, 0, 0]), 0)
    count = [(x.shape[2 + d] - dilations[d] * (w.shape[2 + d] - 1) - 1) // strides[d] + 1 for d in (0, 1)]
    parts = windows(x, w.shape[2:], strides, dilations, count)
    groups = a.get("group", 1)
    outputs, inputs = w.shape[0] // groups, w.shape[1]
    y = np.concatenate(
        [
            np.einsum("ncyxhw,ochw->noyx", parts[:, g * inputs : (g + 1) * inputs], w[g * outputs : (g + 1) * outputs])
            for g in range(groups)
        ],
        axis=1,
    )
    return y if b is None else y + b[None, :, None, None]


def pool(a, x, most):
    kernel, strides, pads = a["kernel_shape"], a.get("strides", [1, 1]), a.get("pads", [0, 0, 0, 0])
    round_ = np.ceil if a.get("ceil_mode", 0) else np.floor
    count = [int(round_((x.shape[2 + d] + pads[d] + pads[d + 2] - kernel[d]) / strides[d])) + 1 for d in (0, 1)]
    reach = [(count[d] - 1) * strides[d] + kernel[d] for d in (0, 1)]
    over = [max(0, reach[d] - x.shape[2 + d] - pads[d] - pads[d + 2]) for d in (0, 1)]
    all_pads = [pads[0], pads[1], pads[2] + over[0], pads[3] + over[1]]
    if most:
        return windows(padded(x, all_pads, -np.inf), kernel, strides, [1, 1], count).max(axis=(4, 5))
    inside = np.ones_like(x)
    if a.get("count_include_pad", 0):
        inside, counted = padded(inside, pads, 1), [0, 0, over[0], over[1]]
    else:
        counted = all_pads
    sums = windows(padded(x, all_pads, 0), kernel, strides, [1, 1], count).sum(axis=(4, 5))
    return sums / windows(padded(inside, counted, 0), kernel, strides, [1, 1], count).sum(axis=(4, 5))


def lrn(a, x):
    size, channels = a["size"], x.shape[1]
    squares = np.zeros_like(x)
    for c in range(channels):
        low, high = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
        squares[:, c] = (x[:, low : high + 1] ** 2).sum(axis=1)
    return x / (a.get("bias", 1.0) + a.get("alpha", 1e-4) / size * squares) ** a.get("beta", 0.75)


def batch_norm(a, x, scale, shift, mean, variance):
    along = (1, -1) + (1,) * (x.ndim - 2)
    scale, shift, mean, variance = (v.reshape(along) for v in (scale, shift, mean, variance))
    return (x - mean) / np.sqrt(variance + a.get("epsilon", 1e-5)) * scale + shift


def lstm(a, x, w, r, b):
    hidden = a["hidden_size"]
    h = c = np.zeros((x.shape[1], hidden), np.float32)
    steps = []
    for step in x:
        gates = step @ w[0].T + h @ r[0].T + b[0, : 4 * hidden] + b[0, 4 * hidden :]
        i, o, f, g = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.stack(steps)[:, None], h[None], c[None]


def gru(a, x, w, r, b):
    assert a["linear_before_reset"] == 1
    hidden = a["hidden_size"]
    h = np.zeros((x.shape[1], hidden), np.float32)
    steps = []
    for step in x:
        of_x = np.split(step @ w[0].T + b[0, : 3 * hidden], 3, axis=1)
        of_h = np.split(h @ r[0].T + b[0, 3 * hidden :], 3, axis=1)
        z, reset = sigmoid(of_x[0] + of_h[0]), sigmoid(of_x[1] + of_h[1])
        h = (1 - z) * np.tanh(of_x[2] + reset * of_h[2]) + z * h
        steps.append(h)
    return np.stack(steps)[:, None], h[None]


def linear_classifier(a, x):
    names = a.get("classlabels_ints") or [s.decode() for s in a["classlabels_strings"]]
    weights = np.array(a["coefficients"], np.float32).reshape(len(names), -1)
    scores = x @ weights.T + np.array(a["intercepts"], np.float32)
    label = np.array(names)[scores.argmax(axis=1)]
    links = {b"NONE": lambda s: s, b"LOGISTIC": sigmoid, b"SOFTMAX": lambda s: softmax(s, 1)}
    return label, links[a["post_transform"]](scores)


def slice_(a, x, begins, ends, axes):
    index = [slice(None)] * x.ndim
    for begin, end, axis in zip(begins, ends, axes):
        index[axis] = slice(begin, end)
    return x[tuple(index)]


TYPES = {1: np.float32, 7: np.int64}
OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "ArgMax": lambda a, x: x.argmax(axis=a["axis"])[:, None],
    "ArgMin": lambda a, x: x.argmin(axis=a["axis"])[:, None],
    "AveragePool": lambda a, x: pool(a, x, False),
    "BatchNormalization": batch_norm,
    "Cast": lambda a, x: x.astype(TYPES[a["to"]]),
    "Clip": lambda a, x, low=None, high=None: np.clip(x, low, high),
    "Concat": lambda a, *x: np.concatenate(x, axis=a["axis"]),
    "Conv": conv,
    "Dropout": lambda a, x, *more: x,
    "Erf": lambda a, x: np.vectorize(math.erf)(x),
    "Flatten": lambda a, x: x.reshape(len(x), -1),
    "GRU": gru,
    "Gather": lambda a, table, index: np.take(table, index, axis=a.get("axis", 0)),
    "Gemm": gemm,
    "GlobalAveragePool": lambda a, x: x.mean(axis=(2, 3), keepdims=True),
    "Greater": lambda a, x, y: x > y,
    "HardSigmoid": lambda a, x: np.clip(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0, 1),
    "Identity": lambda a, x: x,
    "IsNaN": lambda a, x: np.isnan(x),
    "LRN": lrn,
    "LSTM": lstm,
    "LeakyRelu": lambda a, x: np.where(x < 0, a.get("alpha", 0.01) * x, x),
    "LinearClassifier": linear_classifier,
    "LinearRegressor": lambda a, x: x @ np.array(a["coefficients"], np.float32)[:, None] + a["intercepts"][0],
    "LogSoftmax": lambda a, x: np.log(softmax(x, a.get("axis", -1))),
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": lambda a, x: pool(a, x, True),
    "Mul": lambda a, x, y: x * y,
    "ReduceMean": lambda a, x: x.mean(axis=tuple(a["axes"]), keepdims=bool(a.get("keepdims", 1))),
    "ReduceSum": lambda a, x, axes: x.sum(axis=tuple(axes), keepdims=bool(a.get("keepdims", 1))),
    "Relu": lambda a, x: np.maximum(x, 0),
    "Reshape": lambda a, x, shape: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)]),
    "Sigmoid": lambda a, x: sigmoid(x),
    "Slice": slice_,
    "Softmax": lambda a, x: softmax(x, a.get("axis", -1)),
    "Split": lambda a, x, sizes: tuple(np.split(x, np.cumsum(sizes)[:-1], axis=a["axis"])),
    "Squeeze": lambda a, x, axes: x.squeeze(axis=tuple(axes)),
    "Sub": lambda a, x, y: x - y,
    "Sum": lambda a, *x: sum(x),
    "Tanh": lambda a, x: np.tanh(x),
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Where": lambda a, c, x, y: np.where(c, x, y),
}
