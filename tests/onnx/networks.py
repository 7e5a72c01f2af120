"""Networks with random weights, made by the onnx package: small ones of the shapes that matter."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph that grows at `at`, its latest value."""

    def __init__(self, random, shape):
        self.random, self.shape = random, shape
        self.nodes, self.weights, self.at = [], [], "input"

    def constant(self, values, what):
        name = f"{what}{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *dims, fan=None):
        reach = np.sqrt(2 / (fan or np.prod(dims[1:])))
        return self.constant(self.random.normal(0, reach, size=dims).astype(np.float32), "w")

    def add(self, op, *more, at=None, **attributes):
        out = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [at or self.at, *more], [out], name=out, **attributes))
        self.at = out
        return out

    def conv(self, inputs, outputs, kernel, stride=1, pad=0, group=1, at=None, dilation=1):
        return self.add(
            "Conv", self.weight(outputs, inputs // group, kernel, kernel), self.weight(outputs, fan=100), at=at,
            kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group, dilations=[dilation] * 2,
        )

    def dense(self, inputs, outputs):
        return self.add("Gemm", self.weight(outputs, inputs), self.weight(outputs, fan=100), transB=1)

    def pool(self, kind, kernel, stride, pad=0, at=None, **more):
        return self.add(kind, at=at, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)

    def model(self, outputs):
        value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *dims])
        graph = helper.make_graph(
            self.nodes, "net", [value("input", self.shape)], [value(self.at, [outputs])], self.weights
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def mlp(random):
    net = Net(random, [20])
    net.dense(20, 30)
    net.add("Relu")
    net.dense(30, 10)
    net.add("Tanh")
    net.add("MatMul", net.weight(10, 4, fan=10))
    net.add("Add", net.weight(4, fan=10))
    net.add("Softmax", axis=1)
    return net.model(4)


def regressor(random):
    net = Net(random, [6])
    net.dense(6, 8)
    net.add("LeakyRelu", alpha=0.1)
    net.add("Dropout")
    net.dense(8, 1)
    return net.model(1)


def lenet(random):
    net = Net(random, [1, 28, 28])
    net.conv(1, 6, 5, pad=2)
    net.add("Tanh")
    net.pool("AveragePool", 2, 2)
    net.conv(6, 16, 5)
    net.add("Sigmoid")
    net.pool("MaxPool", 2, 2)
    net.add("Reshape", net.constant(np.array([0, -1], np.int64), "shape"))
    net.dense(400, 10)
    net.add("Softmax")
    return net.model(10)


def alexnet(random):
    net = Net(random, [3, 63, 63])
    net.conv(3, 16, 11, stride=4)
    net.add("Relu")
    net.add("LRN", size=5, alpha=0.05, beta=0.75, bias=2.0)
    net.pool("MaxPool", 3, 2)
    net.conv(16, 24, 5, pad=2, group=2)
    net.add("Relu")
    net.add("LRN", size=3, alpha=0.05, beta=0.5, bias=1.0)
    net.pool("MaxPool", 3, 2, ceil_mode=1)
    net.conv(24, 12, 3, pad=2, dilation=2)
    net.add("Relu")
    net.add("Flatten")
    net.dense(12 * 9, 30)
    net.add("Relu")
    net.dense(30, 10)
    net.add("Softmax")
    return net.model(10)


def googlenet(random):
    net = Net(random, [3, 24, 24])
    net.conv(3, 8, 3, stride=2, pad=1)
    net.add("BatchNormalization", net.constant(np.ones(8, np.float32) * 1.5, "bn"), net.weight(8, fan=20),
            net.weight(8, fan=20), net.constant(np.linspace(0.5, 2, 8).astype(np.float32), "bn"), epsilon=1e-3)
    stem = net.add("Relu")
    one = net.conv(8, 4, 1, at=stem)
    net.conv(8, 4, 1, at=stem)
    net.add("Relu")
    three = net.conv(4, 6, 3, pad=1)
    net.conv(8, 2, 1, at=stem)
    five = net.conv(2, 3, 5, pad=2)
    net.pool("MaxPool", 3, 1, pad=1, at=stem)
    pooled = net.conv(8, 3, 1)
    net.add("Concat", three, five, pooled, at=one, axis=1)
    mixed = net.add("Relu")
    side = net.conv(16, 16, 3, pad=1)
    net.add("Add", mixed, at=side)
    net.pool("MaxPool", 3, 2, ceil_mode=1)
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.dense(16, 5)
    net.add("Softmax")
    return net.model(5)


def prepared(random):
    """Prepares its input as freshet's exports of image networks do."""
    net = Net(random, [3, 20, 17])
    of_channels = lambda values: net.constant(np.array(values, np.float32).reshape(3, 1, 1), "c")
    places = lambda *values: net.constant(np.array(values, np.int64), "p")
    net.add("Mul", net.constant(np.float32(1 / 255), "s"))
    net.add("Sub", of_channels([0.4, 0.5, 0.6]))
    net.add("Mul", of_channels([3, 4, 5]))
    net.add("Slice", places(2, 0), places(18, 16), places(2, 3))
    net.conv(3, 4, 3)
    net.add("Relu")
    net.add("Flatten")
    net.dense(4 * 14 * 14, 3)
    net.add("Softmax")
    return net.model(3)


def mobile(random):
    """As small networks for telephones are built: clipped activations, a gate for each channel, means by ReduceMean."""
    net = Net(random, [3, 20, 20])
    bound = lambda value: net.constant(np.float32(value), "bound")
    stem = net.conv(3, 8, 3, stride=2, pad=1)
    net.add("Clip", bound(0), bound(6))
    wide = net.conv(8, 8, 3, pad=1, group=8)
    net.add("GlobalAveragePool")
    net.conv(8, 8, 1)
    net.add("HardSigmoid", alpha=1 / 6, beta=0.5)
    net.add("Mul", net.at, at=wide)
    net.add("Mul", net.constant(np.float32(0.7), "f"))
    net.add("Add", net.constant(np.linspace(-1, 1, 8).astype(np.float32).reshape(1, 8, 1, 1), "f"))
    net.add("Add", stem)
    net.add("ReduceMean", axes=[2, 3], keepdims=0)
    net.dense(8, 5)
    net.add("Softmax")
    return net.model(5)


def all_of_them(random):
    """Name, model, rows to compare."""
    for make in (mlp, regressor, lenet, alexnet, googlenet, prepared, mobile):
        yield make.__name__, make(random), 1000
