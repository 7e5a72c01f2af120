import json

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from .. import errors
from . import _barrier, _rows
from ._models import FreshetClassificationModel, FreshetRecommenderModel, FreshetRegressionModel
from ._params import ClassParams, PairParams, RowParams, add_setters


_ATTEMPTS = 4  # as many as Spark's own at a stage
_PASSING = {"peer-lost", "timeout", "io", "busy", "stopped"}
"""What workers say when they are cut off from each other, or from a disk: another attempt may fare better."""


class _Fits(Estimator, DefaultParamsWritable, DefaultParamsReadable):
    """Training by a barrier stage."""

    _classifies = False

    def _train(self, rows):
        """A model's bytes and the report, from columns as workers take them."""
        context = rows.sparkSession.sparkContext
        said = self.getOrDefault("numWorkers")
        cpus = int(context.getConf().get("spark.task.cpus", "1"))
        directory = self.getOrDefault("checkpointDir").removeprefix("file:") if self.isSet("checkpointDir") else ""
        job = {"options": self._learning(), "classifies": self._classifies, "threads": self.getOrDefault("threads") or cpus,
               "join_timeout": self.getOrDefault("joinTimeout"), "tls": self.getOrDefault("tls"), "checkpoint_dir": directory,
               "checkpoint_seconds": self.getOrDefault("checkpointSeconds")}
        dealt = _rows.deal_out(rows, said or context.defaultParallelism, self.getOrDefault("repartitioning"), said=said > 0,
                               repeatable=bool(directory))
        for attempt in range(_ATTEMPTS):
            # A stage whose results go to the driver is not tried again by Spark when a task of it fails; one whose go to
            # another stage is. (What a frame has shuffled it does not do again: each attempt is another frame.)
            stage = dealt.mapInArrow(_barrier.work(job, rows.columns), _barrier.SCHEMA, barrier=True)
            answers = stage.repartition(1).collect()
            made = next((answer for answer in answers if answer.model is not None), None)
            if made is not None:
                return bytes(made.model), json.loads(made.told)["report"]
            told = [json.loads(answer.told) for answer in answers]
            lasting = next((one for one in told if one["error"] not in _PASSING), None)
            if lasting is not None or attempt + 1 == _ATTEMPTS:
                raise errors.of_code((lasting or told[0])["error"], (lasting or told[0])["text"])

    def _made(self, kind, rows):
        data, report = self._train(rows)
        return self._copyValues(kind(data, report))


class _FitsRows(_Fits):
    def _fit(self, dataset):
        columns = [_rows.features_of(dataset, self.getFeaturesCol()).alias("features"),
                   _rows.number_of(dataset, self.getLabelCol(), "label").alias("label")]
        if self.isDefined("weightCol") and self.getWeightCol():
            columns.append(_rows.number_of(dataset, self.getWeightCol(), "weight").alias("weight"))
        return self._made(self._model, dataset.select(*columns))


@add_setters
class FreshetClassifier(_FitsRows, ClassParams):
    """Tells classes apart: a linear model, a factorization machine or a network, trained by several workers.

    Labels are 0, 1, 2, …, as StringIndexer makes them. docs/spark.md has every parameter.
    """

    _classifies = True
    _model = FreshetClassificationModel

    @keyword_only
    def __init__(self, *, featuresCol="features", labelCol="label", predictionCol="prediction", probabilityCol="probability",
                 rawPredictionCol="rawPrediction", weightCol=None, numWorkers=0, threads=0, model=None, loss=None,
                 strategy=None, epochs=None, batch=None, batchSplitSize=None, averagingFrequency=None, prefetch=None,
                 repartitioning="whenNeeded", optimizer=None, rate=None, l1=None, l2=None, seed=None, checkpointDir=None,
                 checkpointSeconds=60.0, joinTimeout=60.0, tls=False, options=None):
        super().__init__()
        self.setParams(**self._input_kwargs)

    @keyword_only
    def setParams(self, **given):
        """Sets parameters by their names."""
        return self._set(**{name: value for name, value in given.items() if value is not None})


@add_setters
class FreshetRegressor(_FitsRows, RowParams):
    """Predicts numbers, as :class:`FreshetClassifier` tells classes apart."""

    _model = FreshetRegressionModel

    @keyword_only
    def __init__(self, *, featuresCol="features", labelCol="label", predictionCol="prediction", weightCol=None, numWorkers=0,
                 threads=0, model=None, loss=None, strategy=None, epochs=None, batch=None, batchSplitSize=None,
                 averagingFrequency=None, prefetch=None, repartitioning="whenNeeded", optimizer=None, rate=None, l1=None,
                 l2=None, seed=None, checkpointDir=None, checkpointSeconds=60.0, joinTimeout=60.0, tls=False, options=None):
        super().__init__()
        self.setParams(**self._input_kwargs)

    @keyword_only
    def setParams(self, **given):
        """Sets parameters by their names."""
        return self._set(**{name: value for name, value in given.items() if value is not None})

    def _learning(self):
        return {"loss": "squared", **super()._learning()}


@add_setters
class FreshetRecommender(_Fits, PairParams):
    """Biased matrix factorization of ratings: the columns `user`, `item` and `rating`, or as userCol and its kin say."""

    @keyword_only
    def __init__(self, *, userCol="user", itemCol="item", ratingCol="rating", predictionCol="prediction", factors=None,
                 numWorkers=0, threads=0, strategy=None, epochs=None, batch=None, batchSplitSize=None,
                 averagingFrequency=None, prefetch=None, repartitioning="whenNeeded", optimizer=None, rate=None, l2=None,
                 seed=None, checkpointDir=None, checkpointSeconds=60.0, joinTimeout=60.0, tls=False, options=None):
        super().__init__()
        self.setParams(**self._input_kwargs)

    @keyword_only
    def setParams(self, **given):
        """Sets parameters by their names."""
        return self._set(**{name: value for name, value in given.items() if value is not None})

    def _fit(self, dataset):
        names = {}
        for name, column in (("user", self.getOrDefault("userCol")), ("item", self.getOrDefault("itemCol"))):
            kind = dataset.schema[column].dataType
            if not isinstance(kind, (IntegralType, StringType)):
                raise TypeError(f"column {column!r} is of type {kind.simpleString()}, expected whole numbers or texts")
            names[name] = F.col(column).alias(name)
        rating = _rows.number_of(dataset, self.getOrDefault("ratingCol"), "rating").alias("label")
        return self._made(FreshetRecommenderModel, dataset.select(names["user"], names["item"], rating))
