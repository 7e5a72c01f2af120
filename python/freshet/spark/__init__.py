"""Freshet for Spark: estimators by the conventions of pyspark.ml, trained where the rows are, and a sink for streams.

    from freshet.spark import FreshetClassifier, learn_into
    model = FreshetClassifier(numWorkers=4, epochs=5).fit(frame)        # a barrier stage, a native worker in each task
    model.transform(other).select("prediction", "probability")
    stream.writeStream.foreachBatch(learn_into("http://host:8080", id_col="id"))

docs/spark.md has it all.
"""
from ._estimators import FreshetClassifier, FreshetRecommender, FreshetRegressor
from ._models import FreshetClassificationModel, FreshetRecommenderModel, FreshetRegressionModel
from ._stream import learn_into

__all__ = ["FreshetClassificationModel", "FreshetClassifier", "FreshetRecommender", "FreshetRecommenderModel",
           "FreshetRegressionModel", "FreshetRegressor", "learn_into"]
