from __future__ import annotations

from typing import Any, Callable

from . import _input, _native
from ._model import Model
from ._place import Place
from ._progress import listener


def train(rows, y=None, *, sample_weight=None, columns: list[str] | None = None, classes: list | None = None,
          start: Model | None = None, threads: int = 0, progress: bool | Callable[[dict], None] | None = None,
          place: Place | None = None, **options: Any) -> Model:
    """Trains a model, as `freshet train` does: every option of the command line is an argument, with `_` for `-`.

    :param rows: an array of numbers (float32 or float64 are read where they lie), a SciPy CSR matrix, a table with
        columns (anything with ``__arrow_c_stream__``), or names of files
    :param y: a label for each row of an array: numbers or texts
    :param columns: names for the columns of an array, by which a server will know them
    :param classes: labels in order; found in `y` if left out
    :param start: a :class:`Model` to begin with
    :param progress: True shows how far it is; or a function that is called with a dict about twice a second
    :param place: where this process stands among several that train together, each with its share of the rows
        (``split="own"``) or all with the same files; all get the model
    :param options: ``model``, ``loss``, ``optimizer``, ``rate``, ``epochs``, ``batch``, ``holdout``, ``workers``,
        ``strategy``, ``checkpoint`` … (docs/cli.md)
    :returns: a :class:`Model` whose ``report`` says how it went

    Other Python threads run meanwhile; Ctrl-C stops it.

    >>> import numpy, freshet
    >>> X = numpy.random.default_rng(1).normal(size=(1000, 3)).astype("float32")
    >>> model = freshet.train(X, X @ [1.0, 2.0, 3.0], optimizer="lbfgs")
    >>> model.kind, model.loss
    ('linear', 'squared')
    >>> model.evaluate(X, X @ [1.0, 2.0, 3.0])["rmse"] < 0.001
    True
    """
    named = [] if classes is None else [str(name) for name in classes]
    label = "none" if options.get("model") in ("kmeans", "autoencoder") else options.get("label", "")
    source = _input.source(rows, y, sample_weight, columns, label)
    if not isinstance(source, list):
        options.pop("label", None)
    with listener(progress) as tell:
        native, report = _native.train(source, options, named, threads, tell, None if start is None else start._native,
                                       place)
    return Model(native, report)
