"""Micro-batches of a stream as observations of a server that goes on learning."""
import json

import numpy as np
from pyspark.sql import functions as F

from .._client import Client
from .._worker import Rows
from ..errors import InvalidError
from . import _rows

_AT_ONCE = 2000  # rows of a request

_PLACE = ("topic", "partition", "offset")


def _ids(frame, id_col, cluster):
    """What each row is called for good: by a column, or by where it lies in Kafka."""
    if (id_col is None) == (cluster is None):
        raise InvalidError("learn_into wants an id_col, a column that names each row whenever it is read, or for rows from Kafka a "
                           "cluster, the name of which begins the ids; number of batch and row would be others after a retry")
    if id_col is not None:
        return F.col(id_col).cast("string")
    missing = [name for name in _PLACE if name not in frame.columns]
    if missing:
        raise InvalidError(f"cluster={cluster!r} is for rows from Kafka, and there is no column {missing[0]!r}; keep it, or name an "
                           "id_col")
    return F.concat_ws("/", F.lit(cluster), *(F.col(name).cast("string") for name in _PLACE))


def _column(array):
    import pyarrow as pa
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.to_pylist()
    return array.to_numpy(zero_copy_only=False)


def _inputs(batch):
    """Tensors of a request: rows of numbers, entries of sparse ones, or columns."""
    given = [name for name in batch.schema.names if name.startswith("column ")]
    if given:
        return {name.removeprefix("column "): _column(batch.column(name)) for name in given}
    rows = Rows()
    rows.add(batch.select(["features"]))
    found = rows.source(rows.sparse)
    if not rows.sparse:
        return {"x": found}
    return {"indptr": found.indptr, "indices": found.indices, "values": found.data}


def _post(where, model, how):
    """The function for mapInArrow: learns what is in a partition, some rows at a time; of each request what was answered."""
    def run(batches):
        import pyarrow as pa
        client = Client(where, model, **how)
        for batch in batches:
            for begin in range(0, len(batch), _AT_ONCE):
                some = batch.slice(begin, _AT_ONCE)
                if some.column("id").null_count:
                    raise InvalidError(f"{some.column('id').null_count} of {len(some)} rows have no id; each needs one, by which it "
                                       "is learned once")
                weights = some.column("weight").to_numpy() if "weight" in some.schema.names else None
                answer = client.learn(_inputs(some), _labels(some.column("label")), ids=some.column("id").to_pylist(),
                                      weights=weights)
                yield pa.RecordBatch.from_pydict({"answer": [json.dumps(answer)]})

    return run


def _labels(array):
    return np.asarray(_column(array))


def learn_into(url, model=None, *, id_col=None, cluster=None, label_col="label", features_col="features", columns=None,
               weight_col=None, told=None, **client):
    """A function for `foreachBatch`, by which a server learns from a stream: every row once, also over restarts of the query.

    :param url: of the server
    :param model: by its name; may be left out where the server has one
    :param id_col: the column that names each row, the same whenever the row is read again
    :param cluster: for rows from Kafka instead: ids are cluster/topic/partition/offset
    :param features_col: vectors or arrays of numbers; or
    :param columns: names of columns, for a model that was trained on columns
    :param told: called with each micro-batch's number and what became of it: accepted, duplicates
    :param client: token, timeout: as :class:`freshet.Client`'s

    What a micro-batch learned before a crash the server refuses as duplicates afterwards: it remembers the last ten
    million ids. Should a request fail, so does the micro-batch, and the query with it; it goes on with that batch.
    """
    def learn(frame, number):
        if columns is not None:
            rows = [F.col(name).alias(f"column {name}") for name in columns]
        else:
            rows = [_rows.features_of(frame, features_col).alias("features")]
        rows += [_ids(frame, id_col, cluster).alias("id"), F.col(label_col).alias("label")]
        if weight_col is not None:
            rows.append(F.col(weight_col).cast("float").alias("weight"))
        answers = frame.select(*rows).mapInArrow(_post(url, model, client), "answer string").collect()
        answers = [json.loads(row.answer) for row in answers]
        if told is not None:
            told(number, {name: sum(answer[name] for answer in answers) for name in ("accepted", "duplicates")})

    return learn
