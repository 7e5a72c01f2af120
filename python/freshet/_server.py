from __future__ import annotations

import os
from typing import Any

from . import _native
from ._model import Model


class Server:
    """Models behind HTTP that go on learning, in this process.

    :param models: a :class:`Model`, or a dict of names and models (or files); one without a name is called `model`
    :param state: the folder with journal and versions, from which the next start goes on
    :param options: port (0: any free one), address, tokens, certificate, key, method, durability (always, everysec, none),
        buffer, period, recipe, optimizer, rate … as `freshet serve` has them

    The server has threads of its own; :meth:`stop` ends them with everything on the disk, as does leaving `with`.

    >>> import numpy, tempfile, freshet
    >>> X = numpy.arange(100.0).reshape(50, 2)
    >>> model = freshet.train(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as state, freshet.Server({"line": model}, state=state) as server:
    ...     freshet.Client(server.address).models()
    ['line']
    """

    def __init__(self, models: Model | dict[str, Model | str | os.PathLike], *, state: str | os.PathLike, **options: Any):
        if not isinstance(models, dict):
            models = {"model": models}
        loaded = [(str(name), (model if isinstance(model, Model) else Model.load(model))._native)
                  for name, model in models.items()]
        self._native = _native.Server.open(loaded, os.fspath(state), options)

    @property
    def address(self) -> str:
        """Where it answers: http://127.0.0.1:8080/"""
        return self._native.address

    @property
    def port(self) -> int:
        return self._native.port

    def stop(self) -> None:
        """Ends what is under way and closes the models. More than once does nothing more."""
        self._native.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_):
        self.stop()
