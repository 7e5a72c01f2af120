from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _input, _native
from .errors import InvalidError


def _as_labels(names):
    """Class names as numbers where all are, else as text."""
    try:
        values = np.array([float(name) for name in names])
    except ValueError:
        return np.array(names)
    return values.astype(np.int64) if np.all(values == np.floor(values)) else values


class Model:
    """A trained model: it predicts, judges itself, goes on learning, and is saved in freshet's own format.

    Models come from :func:`freshet.train`, :meth:`load` and :meth:`from_bytes`. Wherever rows are asked for, they may be
    an array (read where it lies), a SciPy sparse matrix, a table with columns, or names of files.

    >>> import numpy, freshet
    >>> X = numpy.array([[0.0], [1.0], [2.0], [3.0]] * 50, dtype=numpy.float32)
    >>> y = (X[:, 0] > 1.5).astype(int)
    >>> model = freshet.train(X, y, epochs=5)
    >>> model.predict([[0.0], [3.0]]).tolist()
    [0, 1]
    >>> again = freshet.Model.from_bytes(model.to_bytes())
    >>> bool((again.scores(X) == model.scores(X)).all())
    True
    """

    def __init__(self, native, report: dict[str, Any] | None = None):
        self._native = native
        self._labels = None
        self._learning = {}
        self.report = report or {}
        """What :func:`freshet.train` has to say of how it went; empty for a model from a file."""

    @classmethod
    def load(cls, path: str | os.PathLike) -> Model:
        """A model from a file."""
        return cls(_native.Model.load(os.fspath(path)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """A model from what :meth:`to_bytes` gave."""
        return cls(_native.Model.from_bytes(bytes(data)))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model file, wholly or not at all."""
        self._native.save(os.fspath(path))

    def to_bytes(self) -> bytes:
        """What a model file holds, with what its update rule has summed up if it has learned since it was made."""
        return self._native.to_bytes()

    def to_onnx(self, path: str | os.PathLike, *, ml: bool = False) -> None:
        """Writes an ONNX file. With `ml`, linear models by the operators of ai.onnx.ml."""
        self._native.to_onnx(os.fspath(path), ml)

    def __reduce__(self):
        return _unpickled, (self.to_bytes(), self.report, self._learning)

    @property
    def kind(self) -> str:
        """linear, factorization, fm, kmeans or network."""
        return self._native.kind

    @property
    def loss(self) -> str:
        """logistic, hinge, squared or softmax."""
        return self._native.loss

    @property
    def rows(self) -> int:
        """How many rows it has learned from."""
        return self._native.rows

    @property
    def classes(self) -> np.ndarray:
        """The labels that a row can have, in the order of :meth:`predict_proba`'s columns; empty where they are numbers."""
        if self._labels is None:
            self._labels = _as_labels(self._native.classes)
        return self._labels

    @property
    def _label(self):
        """The column that has the labels, of rows with columns."""
        return next((column["name"] for column in self.input["columns"] if column["kind"] == "label"), "none")

    @property
    def config(self) -> dict[str, Any]:
        """What the model is, as its file says it."""
        return json.loads(self._native.config)

    @property
    def input(self) -> dict[str, Any]:
        """How it reads rows, as its file says it."""
        return json.loads(self._native.input)

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Its parameters: copies of all blocks, by name."""
        return dict(self._native.blocks())

    def scores(self, rows, *, threads: int = 0) -> np.ndarray:
        """What the model gives for each row, before the loss makes a probability of it: an array of one or more columns."""
        return self._native.predict(_input.source(rows), False, threads)

    def predict(self, rows, *, threads: int = 0) -> np.ndarray:
        """For each row a label, a number, or the number of a cluster."""
        scores = self.scores(rows, threads=threads)
        if self._native.clusters:
            return scores[:, 0].astype(np.int64)
        if len(self.classes) == 0:
            return scores[:, 0] if scores.shape[1] == 1 else scores
        best = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes[best]

    def predict_proba(self, rows, *, threads: int = 0) -> np.ndarray:
        """For each row the probability of every class, in the order of :attr:`classes`."""
        if self.loss not in ("logistic", "softmax"):
            raise InvalidError(f"a model of {self.loss} loss has no probabilities; train it with loss logistic or softmax")
        linked = self._native.predict(_input.source(rows), True, threads)
        return linked if linked.shape[1] > 1 else np.hstack([1 - linked, linked])

    def evaluate(self, rows, y=None, *, sample_weight=None, threads: int = 0) -> dict[str, float]:
        """How good its predictions are: error rate, log loss, area under the curve, RMSE, as far as they apply."""
        return self._native.evaluate(_input.source(rows, y, sample_weight, label=self._label), threads)

    def update(self, rows, y=None, *, sample_weight=None, threads: int = 0) -> float:
        """Learns from more rows, one by one in their order, by the rule that suits a stream without an end (see
        :meth:`learn_with`). Returns the mean loss of what it predicted just before each.

        One row of numbers may be given as an array of one dimension with a single label:

        >>> import numpy, freshet
        >>> X = numpy.array([[0.0], [1.0]] * 20)
        >>> model = freshet.train(X, X[:, 0])
        >>> loss = model.update(numpy.array([1.0]), 1)
        >>> model.rows
        41
        """
        if type(rows) is np.ndarray and rows.ndim == 1:
            return self._native.update_row(rows, y, 1.0 if sample_weight is None else sample_weight)
        return self._native.update(_input.source(rows, y, sample_weight, label=self._label), threads)

    def learn_with(self, **options: Any) -> None:
        """How updates learn: optimizer, rate, schedule, l1, l2 …, by the names of the command line. Before the first."""
        self._native.set_learning(options)
        self._learning = options

    def recommend(self, user: Any, count: int = 10) -> list[tuple[str, float]]:
        """The best items for a user that they have not rated: pairs of name and score."""
        return self._native.recommend(str(user), count)

    def __repr__(self):
        return f"<freshet.Model {self.kind}, {self.loss} loss, {self.rows} rows>"


def _unpickled(data, report, learning):
    model = Model(_native.Model.from_bytes(data), report)
    if learning:
        model.learn_with(**learning)
    return model
