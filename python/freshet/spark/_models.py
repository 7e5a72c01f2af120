import functools
import json
from typing import Iterator

import numpy as np
import pandas as pd
from pyspark.ml import Model
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import functions as F

import freshet

from .._worker import Rows
from . import _rows
from ._params import ClassParams, PairParams, RowParams


@functools.lru_cache(maxsize=4)
def _loaded(data):
    return freshet.Model.from_bytes(data)


def _numbers(batch):
    """Rows of a batch of pandas: a series of arrays, or a frame with the parts of vectors as Spark keeps them."""
    import pyarrow as pa
    rows = Rows()
    if hasattr(batch, "columns"):
        parts = {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float32())}
        batch = pa.StructArray.from_arrays([pa.array(batch[name], kind, from_pandas=True) for name, kind in parts.items()],
                                           list(parts))
    else:
        batch = pa.array(batch, pa.list_(pa.float32()))
    rows.add(pa.record_batch({"features": batch}))
    return rows.source(rows.sparse)


def _probabilities(scores):
    """Of each class, from scores: one a row where there are two, else one for each."""
    if scores.shape[1] == 1:
        positive = 1 / (1 + np.exp(-scores.astype(np.float64)))
        return np.hstack([1 - positive, positive])
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class _Writer(MLWriter):
    def __init__(self, instance):
        super().__init__()
        self._instance = instance

    def saveImpl(self, path):
        session, model = self.sparkSession, self._instance
        DefaultParamsWriter.saveMetadata(model, path, session, extraMetadata={"report": json.dumps(model.report)})
        frame = session.createDataFrame([(bytearray(model._data),)], "model binary")
        frame.coalesce(1).write.parquet(f"{path}/data")


class _Reader(MLReader):
    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def load(self, path):
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(f"{path}/data").head()
        model = self._kind(bytes(row.model), json.loads(metadata["report"]))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


class _Predicts(Model, MLWritable, MLReadable):
    """A model's bytes as a transformer."""

    def __init__(self, data=b"", report=None):
        super().__init__()
        self._data = data
        self.report = report or {}
        """How training went, as freshet.train says it."""

    @property
    def native(self):
        """The :class:`freshet.Model`: its weights, to_onnx, save and all else."""
        return _loaded(self._data)

    def write(self):
        return _Writer(self)

    @classmethod
    def read(cls):
        return _Reader(cls)

    def _predict(self, dataset, work, kind, column):
        """A column of what `work` makes, of a model and a batch of rows in pandas; each executor is handed the model once."""
        shared = dataset.sparkSession.sparkContext.broadcast(self._data)

        def each(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
            model = _loaded(shared.value)
            for batch in batches:
                yield work(model, batch)

        return F.pandas_udf(each, kind)(column)

    def _features(self, dataset):
        """Rows as this model computes with them: arrays, or vectors with their parts where it is one of sparse rows."""
        name = self.getFeaturesCol()
        if isinstance(dataset.schema[name].dataType, VectorUDT) and self.native.config["dense"]:
            return vector_to_array(F.col(name), "float32")
        return _rows.features_of(dataset, name)


class FreshetClassificationModel(_Predicts, ClassParams):
    """What :class:`FreshetClassifier` makes. Columns whose names are empty are left out."""

    @property
    def numClasses(self):
        return len(self.native.classes)

    def _transform(self, dataset):
        likely = self.native.loss != "hinge"

        def work(model, batch):
            scores = model.scores(_numbers(batch), threads=1)
            both = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
            out = {"raw": list(both.astype(np.float64)), "prediction": both.argmax(axis=1).astype(np.float64)}
            if likely:
                out["probability"] = list(_probabilities(scores))
            return pd.DataFrame(out)

        kind = "raw array<double>, prediction double" + (", probability array<double>" if likely else "")
        found = self._predict(dataset, work, kind, self._features(dataset))
        wanted = {self.getRawPredictionCol(): array_to_vector(found["raw"]), self.getPredictionCol(): found["prediction"]}
        if likely:
            wanted[self.getProbabilityCol()] = array_to_vector(found["probability"])
        return dataset.withColumns({name: column for name, column in wanted.items() if name})


class FreshetRegressionModel(_Predicts, RowParams):
    """What :class:`FreshetRegressor` makes."""

    def _transform(self, dataset):
        def work(model, batch):
            return pd.Series(model.scores(_numbers(batch), threads=1)[:, 0].astype(np.float64))

        found = self._predict(dataset, work, "double", self._features(dataset))
        return dataset.withColumn(self.getPredictionCol(), found)


class FreshetRecommenderModel(_Predicts, PairParams):
    """What :class:`FreshetRecommender` makes. Who was never met counts as everybody."""

    def _transform(self, dataset):
        def work(model, batch):
            pairs = freshet.Columns(user=batch["user"].to_numpy(), item=batch["item"].to_numpy())
            return pd.Series(model.predict(pairs, threads=1).astype(np.float64))

        pair = F.struct(F.col(self.getOrDefault("userCol")).alias("user"), F.col(self.getOrDefault("itemCol")).alias("item"))
        return dataset.withColumn(self.getPredictionCol(), self._predict(dataset, work, "double", pair))
