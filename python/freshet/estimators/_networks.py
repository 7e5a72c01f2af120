import os
import tempfile

import numpy as np

from .._train import train
from ._base import Classifier, Regressor

_OF_THE_ZOO = ("mlp", "lenet5", "cifar-quick", "alexnet", "alexnet-groups", "googlenet", "resnet20", "char-lstm")


def _text_of(layers, outputs, shape):
    """The text form of a network with fully connected, rectified layers."""
    hidden = [f'  {{dense = {int(units)}, activation = "relu"}},' for units in layers]
    return "\n".join([f"input = {[int(extent) for extent in shape]}", "layers = [", *hidden,
                      f"  {{dense = {outputs}}},", "]", ""])


class _Network:
    """What the two kinds of networks share."""

    def _rows(self, X):
        return X if self.shape is None else np.ascontiguousarray(X).reshape(len(X), *self.shape)

    def _options(self, X, *, whole):
        return {"optimizer": self.optimizer, "rate": self.rate, "l2": self.l2, "dropout": self.dropout,
                "standardise": self.standardise, "batch": self.batch, "epochs": (self.epochs if whole else 1),
                "shuffle": self.shuffle, "seed": self._seed()}

    def _learn(self, X, y, sample_weight, classes, whole):
        options = self._options(X, whole=whole)
        start = None if whole else getattr(self, "model_", None)
        weights = self._weights(sample_weight, X)
        outputs = len(classes) if classes is not None and len(classes) > 2 else 1
        options["loss"] = "squared" if classes is None else "logistic" if outputs == 1 else "softmax"
        if start is None and isinstance(self.layers, str):
            if self.layers not in _OF_THE_ZOO and not self.layers.endswith(".toml"):
                raise ValueError(f"layers={self.layers!r}, expected sizes of layers, a .toml file, or one of the zoo: "
                                 + ", ".join(_OF_THE_ZOO))
            options["model"] = self.layers
        with tempfile.TemporaryDirectory() as folder:
            if start is None and not isinstance(self.layers, str):
                options["model"] = os.path.join(folder, "network.toml")
                with open(options["model"], "w") as file:
                    file.write(_text_of(self.layers, outputs, self.shape or X.shape[1:]))
            self.model_ = train(self._rows(X), y, sample_weight=weights, classes=classes, start=start,
                                threads=self.threads or 0, **options)
        return self

    def _fit(self, X, y, sample_weight, classes=None):
        return self._learn(X, y, sample_weight, classes, whole=True)

    def _partial_fit(self, X, y, sample_weight, classes=None):
        return self._learn(X, y, sample_weight, classes, whole=False)


class NetworkClassifier(_Network, Classifier):
    """A network that tells classes apart.

    :param layers: sizes of fully connected layers; or the name of a network of the zoo (lenet5, resnet20 …) or a file
    :param shape: of a row's image: channels, height, width; None: rows are numbers
    :param batch: rows of an update; `partial_fit` makes one pass over the rows it is given in such batches

    >>> from sklearn.datasets import load_digits
    >>> from freshet.estimators import NetworkClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> NetworkClassifier((50,), epochs=20, random_state=1).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.9
    True
    """

    def __init__(self, layers=(100,), *, shape=None, optimizer="adam", rate=None, l2=1e-4, batch=32, epochs=100, dropout=None,
                 shuffle=True, standardise=True, threads=None, random_state=None):
        self.layers = layers
        self.shape = shape
        self.optimizer = optimizer
        self.rate = rate
        self.l2 = l2
        self.batch = batch
        self.epochs = epochs
        self.dropout = dropout
        self.shuffle = shuffle
        self.standardise = standardise
        self.threads = threads
        self.random_state = random_state

    def predict_proba(self, X):
        """The probability of each class."""
        return self._linked(X)

    def predict_log_proba(self, X):
        """Its logarithm."""
        return np.log(self.predict_proba(X))


class NetworkRegressor(_Network, Regressor):
    """A network that predicts numbers; arguments as for :class:`NetworkClassifier`.

    >>> import numpy
    >>> from freshet.estimators import NetworkRegressor
    >>> X = numpy.linspace(-3, 3, 400).reshape(-1, 1)
    >>> regressor = NetworkRegressor((40, 40), epochs=200, batch=20, random_state=1).fit(X, numpy.sin(X[:, 0]))
    >>> regressor.score(X, numpy.sin(X[:, 0])) > 0.95
    True
    """

    def __init__(self, layers=(100,), *, shape=None, optimizer="adam", rate=None, l2=1e-4, batch=32, epochs=100, dropout=None,
                 shuffle=True, standardise=True, threads=None, random_state=None):
        self.layers = layers
        self.shape = shape
        self.optimizer = optimizer
        self.rate = rate
        self.l2 = l2
        self.batch = batch
        self.epochs = epochs
        self.dropout = dropout
        self.shuffle = shuffle
        self.standardise = standardise
        self.threads = threads
        self.random_state = random_state
