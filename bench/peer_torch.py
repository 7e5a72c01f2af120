#!/usr/bin/python3
"""The networks of network_bench.py in PyTorch, from the same weights and rows.

  bench/peer_torch.py forward NET ROWS FILE                             how far its scores are from those in the file
  bench/peer_torch.py step NET ROWS FILE THREADS LAYOUT OPTIMIZER RATE  for every line "N" on standard input, N steps
  bench/peer_torch.py predict NET ROWS FILE THREADS LAYOUT              for every line "N", N predictions of the batch

FILE is what `network_bench forward NET ROWS FILE` wrote: weights, rows, labels and scores as floats. LAYOUT is
contiguous or channels_last. Answers are lines of JSON."""
import json
import sys
import time

import numpy
import torch
from torch import nn
from torch.nn import functional


def relu():
    return nn.ReLU(inplace=True)


def lrn():
    return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1)


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 50), relu(), nn.Linear(50, 10))


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, 4), relu(), lrn(), nn.MaxPool2d(3, 2),
        nn.Conv2d(96, 256, 5, padding=2), relu(), lrn(), nn.MaxPool2d(3, 2),
        nn.Conv2d(256, 384, 3, padding=1), relu(), nn.Conv2d(384, 384, 3, padding=1), relu(),
        nn.Conv2d(384, 256, 3, padding=1), relu(), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Linear(9216, 4096), relu(), nn.Dropout(0.5), nn.Linear(4096, 4096), relu(), nn.Dropout(0.5),
        nn.Linear(4096, 1000))


class Inception(nn.Module):
    def __init__(self, inputs, ones, reduce3, threes, reduce5, fives, pooled):
        super().__init__()
        self.ones = nn.Sequential(nn.Conv2d(inputs, ones, 1), relu())
        self.threes = nn.Sequential(nn.Conv2d(inputs, reduce3, 1), relu(), nn.Conv2d(reduce3, threes, 3, padding=1),
                                    relu())
        self.fives = nn.Sequential(nn.Conv2d(inputs, reduce5, 1), relu(), nn.Conv2d(reduce5, fives, 5, padding=2),
                                   relu())
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inputs, pooled, 1), relu())

    def forward(self, rows):
        return torch.cat([self.ones(rows), self.threes(rows), self.fives(rows), self.pooled(rows)], 1)


def googlenet():
    def pool():
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3), relu(), pool(), lrn(),
        nn.Conv2d(64, 64, 1), relu(), nn.Conv2d(64, 192, 3, padding=1), relu(), lrn(), pool(),
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), pool(),
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), pool(),
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000))


# By the zoo's names: how it is made, what a row looks like, classes.
NETWORKS = {"mlp": (perceptron, (1, 28, 28), 10), "alexnet": (alexnet, (3, 227, 227), 1000),
            "googlenet": (googlenet, (3, 224, 224), 1000)}


def load(name, rows, path):
    """The network with the file's weights, its rows, their labels and scores."""
    make, shape, classes = NETWORKS[name]
    net = make()
    with open(path, "rb") as file:
        def take(*extents):
            return torch.from_numpy(numpy.fromfile(file, numpy.float32, int(numpy.prod(extents))).reshape(extents))

        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(take(*parameter.shape))
        found = net, take(rows, *shape), take(rows).long(), take(rows, classes)
        if file.read(1):
            sys.exit("peer_torch.py: %s has more weights than %s" % (path, name))
        return found


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def answer(call):
    """Answers lines that ask for a number of calls, so that whoever asks can let programs take turns."""
    for line in sys.stdin:
        begun = time.perf_counter()
        for _ in range(int(line)):
            value = call()
        seconds = time.perf_counter() - begun
        print(json.dumps({"value": float(value), "seconds": seconds, "peak_bytes": peak_bytes()}), flush=True)


def forward(net, inputs, scores):
    net.eval()
    with torch.inference_mode():
        distance = (net(inputs) - scores).abs().max() / scores.abs().max()
    print(json.dumps({"distance": float(distance), "version": torch.__version__}))


def step(net, inputs, labels, optimizer, rate):
    rule = torch.optim.SGD(net.parameters(), lr=float(rate), momentum=0.9 if optimizer == "momentum" else 0)

    def once():
        rule.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(net(inputs), labels)
        loss.backward()
        rule.step()
        return loss.detach()

    answer(once)


def predict(net, inputs):
    net.eval()
    with torch.inference_mode():
        answer(lambda: net(inputs)[0, 0])


def main():
    mode, name, rows, path, *rest = sys.argv[1:]
    net, inputs, labels, scores = load(name, int(rows), path)
    if mode == "forward":
        return forward(net, inputs, scores)
    torch.set_num_threads(int(rest[0]))
    if rest[1] == "channels_last":
        net, inputs = net.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)
    del scores
    if mode == "step":
        step(net, inputs, labels, *rest[2:])
    else:
        predict(net, inputs)


if __name__ == "__main__":
    main()
