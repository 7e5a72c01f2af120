from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (HasFeaturesCol, HasLabelCol, HasPredictionCol, HasProbabilityCol, HasRawPredictionCol,
                                     HasWeightCol)

REPARTITIONING = ("whenNeeded", "always", "never")


def _param(name, doc, converter):
    return Param(Params._dummy(), name, doc, typeConverter=converter)


def _to_options(value):
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"options={value!r}: expected a dict of options of freshet.train by their names")
    return value


def _to_repartitioning(value):
    if value not in REPARTITIONING:
        raise ValueError(f"repartitioning={value!r}: expected one of {', '.join(REPARTITIONING)}")
    return value


class WorkerParams(Params):
    """What workers there are, and how they learn together: of every estimator."""

    numWorkers = _param("numWorkers", "workers, each a task of one barrier stage; 0: as many as the cluster has slots for",
                        TypeConverters.toInt)
    threads = _param("threads", "threads of each worker; 0: as many cores as a task has (spark.task.cpus)",
                     TypeConverters.toInt)
    strategy = _param("strategy", "how workers' updates meet: allreduce, average, groups, gossip, server, ring, …",
                      TypeConverters.toString)
    epochs = _param("epochs", "passes over the rows", TypeConverters.toInt)
    batch = _param("batch", "rows of an update, of all workers together", TypeConverters.toInt)
    batchSplitSize = _param("batchSplitSize", "rows of an update that each worker computes", TypeConverters.toInt)
    averagingFrequency = _param("averagingFrequency", "updates of each worker between two averages of their models",
                                TypeConverters.toInt)
    prefetch = _param("prefetch", "blocks of rows that are made ready ahead of need (networks)", TypeConverters.toInt)
    repartitioning = _param(
        "repartitioning", "whether rows are dealt out anew before training: whenNeeded (there are not as many partitions as "
        "workers), always, never", _to_repartitioning)
    optimizer = _param("optimizer", "update rule: adaptive, sgd, momentum, adagrad, adam, ftrl, lbfgs", TypeConverters.toString)
    rate = _param("rate", "learning rate", TypeConverters.toFloat)
    l2 = _param("l2", "how strongly weights are held near zero", TypeConverters.toFloat)
    seed = _param("seed", "of whatever is random", TypeConverters.toInt)
    checkpointDir = _param("checkpointDir", "a directory that driver and executors know by one name, where training is kept, "
                           "so that it goes on when a worker was lost", TypeConverters.toString)
    checkpointSeconds = _param("checkpointSeconds", "time between two checkpoints", TypeConverters.toFloat)
    joinTimeout = _param("joinTimeout", "seconds workers wait for each other to come; tasks wait as long for others' rows, and ten times "
                         "as long as for their own", TypeConverters.toFloat)
    tls = _param("tls", "encrypts what workers say to each other", TypeConverters.toBoolean)
    options = _param("options", "any other option of freshet.train, by its name", _to_options)

    def __init__(self):
        super().__init__()
        self._setDefault(numWorkers=0, threads=0, repartitioning="whenNeeded", checkpointSeconds=60.0, joinTimeout=60.0,
                         tls=False, options={})

    def _given(self, *names):
        """Those of these parameters that were set."""
        return {name: self.getOrDefault(name) for name in names if self.isSet(name)}

    def _learning(self):
        """Options of freshet.train, as the parameters say."""
        options = {"split": "own", **self._given("strategy", "epochs", "batch", "prefetch", "optimizer", "rate", "l2", "seed")}
        if self.isSet("batchSplitSize"):
            if self.isSet("batch"):
                raise ValueError(f"batch={self.getOrDefault('batch')} is of all workers together and batchSplitSize="
                                 f"{self.getOrDefault('batchSplitSize')} of each; set one of the two")
            options.update(batch=self.getOrDefault("batchSplitSize"), batch_per_worker=True)
        if self.isSet("averagingFrequency"):
            options.setdefault("strategy", "average")
            options["every"] = self.getOrDefault("averagingFrequency")
        strange = {"split", "checkpoint", "checkpoint_seconds", "workers", "elastic"} & set(self.getOrDefault("options"))
        if strange:
            raise ValueError(f"options name {', '.join(sorted(strange))}, which are settled by this estimator's parameters")
        return {**options, **self.getOrDefault("options")}


class RowParams(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol, WorkerParams):
    """What is learned from features, a label and perhaps a weight."""

    model = _param("model", "linear, fm, mlp, or another network of the zoo", TypeConverters.toString)
    loss = _param("loss", "what is made small: logistic, hinge, softmax, squared", TypeConverters.toString)
    l1 = _param("l1", "how strongly weights are pulled to zero", TypeConverters.toFloat)

    def _learning(self):
        return {**super()._learning(), **self._given("model", "loss", "l1")}


class ClassParams(HasRawPredictionCol, HasProbabilityCol, RowParams):
    pass


class PairParams(HasPredictionCol, WorkerParams):
    """What is learned from ratings."""

    userCol = _param("userCol", "users: whole numbers or texts", TypeConverters.toString)
    itemCol = _param("itemCol", "items: whole numbers or texts", TypeConverters.toString)
    ratingCol = _param("ratingCol", "their ratings", TypeConverters.toString)
    factors = _param("factors", "numbers by which a user and an item are known", TypeConverters.toInt)

    def __init__(self):
        super().__init__()
        self._setDefault(userCol="user", itemCol="item", ratingCol="rating")

    def _learning(self):
        return {"model": "factorization", "format": "ratings", **super()._learning(), **self._given("factors")}


def add_setters(kind):
    """setNumWorkers and its kin, as other estimators have them."""
    for name in dir(kind):
        if isinstance(getattr(kind, name, None), Param):
            method = "set" + name[0].upper() + name[1:]

            def setter(self, value, name=name):
                return self._set(**{name: value})

            setter.__name__, setter.__doc__ = method, f"Sets `{name}`: {getattr(kind, name).doc}"
            setattr(kind, method, setter)
    return kind
