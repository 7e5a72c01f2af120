"""One worker as a process of its own: `python -m freshet._worker`, for whoever starts workers and hands them their rows.

Standard input: an Arrow stream of rows (columns `features`, and `label` and `weight` where there are any; or `user`,
`item` and `label`), then lines of JSON. Standard output: lines of JSON, and a model's bytes behind the last.

    in   the Arrow stream
    out  {"rows": 4000, "width": 54, "entries": 216000, "sparse": false, "labels": [0, 1, true], "digest": "…"}
    in   {"options": {…}, "sparse": false, "classes": ["0", "1"], "place": {"rank": 0, "world": 4, …}}
    out  {"model": 5120, "report": {…}} and that many bytes, or {"error": "peer-lost", "text": "…"}

It ends when its standard input does, and is then killed in the midst of whatever it does: nobody waits for it any more.
"""
import hashlib
import json
import os
import sys
import threading

import numpy as np


class Rows:
    """Rows as they arrive, one after another in as few pieces of memory as they can be kept in."""

    def __init__(self):
        self.rows = self.width = self.entries = 0
        self.sparse = False
        self._values, self._indices, self._counts = bytearray(), bytearray(), bytearray()
        self._labels, self._weights, self._names = bytearray(), bytearray(), {"user": [], "item": []}

    def add(self, batch):
        """A record batch of pyarrow."""
        for column in batch.schema.names:
            array = batch.column(column)
            if array.null_count:
                raise ValueError(f"column {column} has {array.null_count} missing values among rows {self.rows} to "
                                 f"{self.rows + len(batch)} of this share; fill them (Imputer, fillna) or drop the rows")
            if column == "features":
                self._add_features(array)
            elif column == "label":
                self._labels += array.to_numpy(zero_copy_only=False).astype(np.float64).tobytes()
            elif column == "weight":
                self._weights += array.to_numpy(zero_copy_only=False).astype(np.float32).tobytes()
            else:
                self._names[column].append(array)
        self.rows += len(batch)

    def _add_features(self, array):
        """Arrays of numbers, or vectors as Spark keeps them: type (1 is dense), size, indices, values."""
        import pyarrow as pa
        if not pa.types.is_struct(array.type):
            return self._add_dense(_flat(array), np.diff(_offsets(array)))
        kinds, sizes, indices, values = (array.field(name) for name in ("type", "size", "indices", "values"))
        dense = kinds.to_numpy() == 1
        counts = np.diff(_offsets(values))
        if dense.all():
            return self._add_dense(_flat(values), counts)
        self._settle_width(np.where(dense, counts, sizes.fill_null(0).to_numpy()))
        self._turn_sparse()
        numbers, given = _flat(values), _flat(indices)
        places = np.empty(len(numbers), np.int32)
        of_dense = np.repeat(dense, counts)
        places[of_dense] = np.tile(np.arange(self.width, dtype=np.int32), int(dense.sum()))
        places[~of_dense] = given
        self._keep(numbers, counts, places)
        return None

    def _add_dense(self, numbers, counts):
        self._settle_width(counts)
        places = np.tile(np.arange(self.width, dtype=np.int32), len(counts)) if self.sparse else None
        self._keep(numbers, counts, places)

    def _keep(self, numbers, counts, places):
        self._values += np.ascontiguousarray(numbers, np.float32).data
        self.entries += len(numbers)
        if places is not None:
            self._indices += places.tobytes()
            self._counts += counts.astype(np.int64).tobytes()

    def _settle_width(self, widths):
        if len(widths) == 0:
            return
        width = self.width or int(widths[0])
        if width == 0 or np.any(widths != width):
            at = int(np.argmax(widths != width)) if width else 0
            raise ValueError(f"row {self.rows + at} of this share has {int(widths[at])} features, those before have "
                             f"{width}; all rows need as many")
        self.width = width

    def _turn_sparse(self):
        """From here on rows say which features their numbers are of; those that are there do so, too."""
        if not self.sparse:
            self.sparse = True
            self._indices += np.tile(np.arange(self.width, dtype=np.int32), self.rows).tobytes()
            self._counts += np.full(self.rows, self.width, np.int64).tobytes()

    def account(self):
        """What others must know of them before all decide how to learn from them."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (self._values, self._indices, self._counts, self._labels, self._weights):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        for array in self._names["user"] + self._names["item"]:
            for buffer in filter(None, array.buffers()):
                digest.update(buffer)
        labels = self.labels
        least, most = (float(labels.min()), float(labels.max())) if len(labels) else (0.0, 0.0)
        whole = bool(np.all(labels == np.floor(labels)))
        return {"rows": self.rows, "width": self.width, "entries": self.entries, "sparse": self.sparse,
                "labels": [least, most, whole], "digest": digest.hexdigest()}

    def source(self, sparse):
        """Rows as freshet.train takes them: an array, a sparse matrix, or a table of users and items."""
        if self._names["user"]:
            import pyarrow as pa
            return pa.table({name: pa.chunked_array(arrays) for name, arrays in self._names.items()})
        values = np.frombuffer(self._values, np.float32)
        if sparse:
            self._turn_sparse()
            return _Csr(values, np.frombuffer(self._indices, np.int32), np.frombuffer(self._counts, np.int64), self.width)
        if not self.sparse:
            return values.reshape(self.rows, self.width)
        dense = np.zeros((self.rows, self.width), np.float32)
        dense[np.repeat(np.arange(self.rows), np.frombuffer(self._counts, np.int64)), np.frombuffer(self._indices, np.int32)] = values
        return dense

    @property
    def labels(self):
        return np.frombuffer(self._labels, np.float64)

    @property
    def weights(self):
        return np.frombuffer(self._weights, np.float32) if self._weights else None


class _Csr:
    """As much of a SciPy matrix as rows are read by, so that workers need no SciPy."""

    has_canonical_format = True

    def __init__(self, data, indices, counts, width):
        self.data, self.indices = data, indices
        self.indptr = np.concatenate([[0], np.cumsum(counts)])
        self.shape = (len(counts), width)

    def tocsr(self):
        return self


def _flat(lists):
    """The numbers of all lists of an array, one after another."""
    flat = lists.flatten()
    return flat.to_numpy(zero_copy_only=False)


def _offsets(lists):
    """Where each list begins and the last ends; a list that is missing is empty."""
    if lists.null_count == 0:
        return lists.offsets.to_numpy()
    lengths = lists.value_lengths().fill_null(0).to_numpy()
    return np.concatenate([[0], np.cumsum(lengths)])


def _say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _train(rows, order):
    import freshet
    place, classes = order.get("place"), order.get("classes")
    if place is not None:
        place = freshet.Place(**{**place, "token": bytes.fromhex(place["token"])})
    labels = rows.labels if classes is None else freshet._input.Coded(rows.labels.astype(np.int32), classes)
    return freshet.train(rows.source(order.get("sparse", False)), labels, sample_weight=rows.weights, classes=classes, threads=order.get("threads", 0),
                         place=place, **order["options"])


def _until_unwanted():
    """Returns when nothing can come from whoever started this: it is gone, or wants no more."""
    while os.read(sys.stdin.fileno(), 1 << 16):
        pass


def _end_when_unwanted():
    def watch():
        _until_unwanted()
        os._exit(143)

    threading.Thread(target=watch, daemon=True).start()


def _work(said):
    """Reads rows, then an order; trains; tells what came of it."""
    import pyarrow.ipc
    rows = Rows()
    for batch in pyarrow.ipc.open_stream(said):
        rows.add(batch)
    _say(rows.account())
    line = said.readline()
    if not line:
        return
    _end_when_unwanted()
    model = _train(rows, json.loads(line))
    data = model.to_bytes()
    _say({"model": len(data), "report": model.report})
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def main():
    from freshet import errors
    try:
        _work(sys.stdin.buffer)
    except (ValueError, errors.Error) as problem:
        _say({"error": errors.code_of(problem), "text": str(problem)})
        _until_unwanted()  # rows may still be coming


if __name__ == "__main__":
    main()
