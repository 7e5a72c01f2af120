from __future__ import annotations

import http.client
import json
import time
import urllib.parse
import uuid
from typing import Any

import numpy as np

from . import _tensors, errors

_AGAIN = {429, 503}  # what a server answers that wants to be asked again later
_BY_STATUS = {400: errors.InvalidError, 401: errors.InvalidError, 403: errors.InvalidError, 404: errors.NotFoundError,
              409: errors.BusyError, 413: errors.InvalidError, 429: errors.BusyError, 503: errors.BusyError}


def _inputs(rows):
    """Rows as tensors: numbers, entries of sparse rows, or columns by name."""
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
        return {"indptr": rows.indptr, "indices": rows.indices, "values": rows.data.astype(np.float32)}
    if hasattr(rows, "to_pydict"):  # of pyarrow
        rows = rows.to_pydict()
    elif hasattr(rows, "columns") and hasattr(rows, "__getitem__"):  # of pandas and polars
        rows = {name: rows[name].to_numpy() for name in rows.columns}
    if isinstance(rows, dict):
        return {str(name): np.asarray(values) for name, values in rows.items()}
    rows = np.asarray(rows)
    return {"x": rows if rows.dtype.kind in "fiub" else rows.astype(np.float32)}


class Client:
    """One who asks a server, over HTTP: for predictions, and to learn.

    What can be sent again without harm is sent again when the server does not answer, or says that it is busy, until
    `timeout` seconds have passed: rows to learn have ids, by which each is learned once.

    :param url: of the server: http://127.0.0.1:8080
    :param model: by its name; may be left out where the server has one
    :param token: where the server wants one

    >>> import numpy, tempfile, freshet
    >>> X = numpy.random.default_rng(0).normal(size=(500, 2)).astype("float32")
    >>> model = freshet.train(X, (X[:, 0] > 0).astype(int))
    >>> with tempfile.TemporaryDirectory() as state, freshet.Server(model, state=state) as server:
    ...     client = freshet.Client(server.address)
    ...     client.infer([[2.0, 0.0], [-2.0, 0.0]])["label"].tolist()
    ...     client.learn([[0.5, 1.0]], [1])["accepted"]
    ['1', '0']
    1
    """

    def __init__(self, url: str, model: str | None = None, *, token: str | None = None, timeout: float = 30.0, context=None):
        self._url = urllib.parse.urlsplit(url if "//" in url else "http://" + url)
        self._token = token
        self._timeout = timeout
        self._context = context
        self._connection = None
        self._model = model

    def close(self) -> None:
        """Closes the connection; another is made when it is needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_):
        self.close()

    def models(self) -> list[str]:
        """The names of the server's models."""
        return [one["name"] for one in self._json("GET", "/v2/models")["models"]]

    def ready(self) -> bool:
        """Does the server want requests?"""
        try:
            return self._ask("GET", "/v2/health/ready", None, {}, again=False)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def infer(self, rows, *, id: Any = None, version: Any = None) -> dict[str, np.ndarray]:  # noqa: A002 - as the protocol calls it
        """Predictions: arrays by name, `score` and, where labels have names, `label`. With an `id` the prediction waits for
        its label (:meth:`feedback`); with a `version` a kept one answers."""
        where = "infer" if version is None else f"versions/{version}/infer"
        request = {} if id is None else {"id": str(id)}
        return self._tensors(where, _inputs(rows), request, again=True)[1]

    def learn(self, rows, labels=None, *, ids=None, weights=None, times=None) -> dict[str, Any]:
        """Rows with their labels, to be learned once each: `accepted` says how many are in the log, `sequence` the number of
        the last. `ids` are made up where none are given, so that a request can be sent again."""
        inputs = _inputs(rows)
        count = len(inputs["indptr"]) - 1 if "indptr" in inputs else len(next(iter(inputs.values())))
        prefix = uuid.uuid4().hex
        inputs["ids"] = [f"{prefix}/{i}" for i in range(count)] if ids is None else [str(one) for one in ids]
        if labels is not None:
            labels = np.asarray(labels)
            inputs["labels"] = labels if labels.dtype.kind in "fiu" else labels.astype(str)
        if weights is not None:
            inputs["weights"] = np.asarray(weights, np.float32)
        if times is not None:
            inputs["times"] = np.asarray(times, np.int64)
        return self._tensors("learn", inputs, {}, again=True)[0]

    def feedback(self, id: Any, label: Any, *, owner: str | None = None) -> dict[str, Any]:  # noqa: A002
        """The label of what was predicted under this id; for several rows a list of labels."""
        body = {"id": str(id)}
        several = isinstance(label, (list, tuple, np.ndarray))
        body["labels" if several else "label"] = np.asarray(label).tolist() if several else _plain(label)
        if owner is not None:
            body["owner"] = owner
        return self._json("POST", self._path("feedback"), body, again=True)

    def recommend(self, user: Any, count: int = 10, *, seen=()) -> dict[str, Any]:
        """The best items for a user that they have not rated."""
        body = {"user": str(user), "k": count, "seen": [str(item) for item in seen]}
        return self._json("POST", self._path("recommend"), body, again=True)

    def stats(self) -> dict[str, Any]:
        """How the model serves, learns and trains."""
        return self._json("GET", self._path("stats"))

    def versions(self) -> dict[str, Any]:
        """The versions that are kept."""
        return self._json("GET", self._path("versions"))

    def roll_back(self, version: Any, *, discard=None, relearn: bool = False) -> dict[str, Any]:
        """Makes an earlier version the current one. `discard` names observations that leave the history: a pair of sequence
        numbers, or a dict of sequences, times and ids; with `relearn` the others are learned once more."""
        body = {"version": str(version), "relearn": relearn}
        if discard is not None:
            body["discard"] = discard if isinstance(discard, dict) else list(discard)
        return self._json("POST", self._path("rollback"), body)

    def pin(self, version: Any, pinned: bool = True) -> dict[str, Any]:
        """Keeps a version for good, or no longer."""
        return self._json("POST", self._path("pin"), {"version": str(version), "pinned": pinned})

    def iterate(self) -> dict[str, Any]:
        """Asks for a training iteration soon."""
        return self._json("POST", self._path("iterate"), {})

    def _path(self, call):
        if self._model is None:
            names = self.models()
            if len(names) != 1:
                raise errors.InvalidError(f"the server has the models {', '.join(names)}; say which: Client(url, model)")
            self._model = names[0]
        return f"/v2/models/{urllib.parse.quote(self._model)}/{call}"

    def _json(self, method, path, body=None, again=None):
        data = None if body is None else json.dumps(body).encode()
        _, _, answer = self._ask(method, path, data, {"Content-Type": "application/json"} if data else {},
                                 again=method == "GET" if again is None else again)
        return json.loads(answer)

    def _tensors(self, call, inputs, request, again):
        body, head = _tensors.pack(inputs, **request)
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(head)}
        _, fields, answer = self._ask("POST", self._path(call), body, headers, again=again)
        return _tensors.unpack(answer, int(fields.get("Inference-Header-Content-Length") or 0))

    def _ask(self, method, path, body, headers, *, again):
        """Status, fields and body of the answer; asks again where that is allowed and helps."""
        end, pause = time.monotonic() + self._timeout, 0.05
        if self._token:
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        while True:
            left = end - time.monotonic()
            try:
                status, fields, answer = self._once(method, path, body, headers, left)
            except (OSError, http.client.HTTPException) as problem:
                self.close()
                if not again or left <= pause:
                    raise errors.PeerLostError(f"{self._url.netloc}: {problem or type(problem).__name__}") from problem
            else:
                if status < 400:
                    return status, fields, answer
                if status not in _AGAIN or not again or left <= pause:
                    raise _BY_STATUS.get(status, errors.Error)(f"{status}: {_reason(answer)}")
                pause = max(pause, min(float(fields.get("Retry-After") or 0), left - pause))
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _once(self, method, path, body, headers, left):
        if self._connection is None:
            secure = self._url.scheme == "https"
            make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            how = {"context": self._context} if secure else {}
            self._connection = make(self._url.hostname, self._url.port, timeout=max(left, 0.001), **how)
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.headers, answer.read()


def _plain(label):
    return label.item() if isinstance(label, np.generic) else label


def _reason(answer):
    try:
        return json.loads(answer)["error"]
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")
