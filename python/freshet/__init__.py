"""Models that are trained on many machines and kept trained while they serve.

    import freshet
    model = freshet.train("sea.csv")
    model.save("sea.model")

`freshet.estimators` are for scikit-learn, `freshet.mlflow` is for MLflow, `freshet.spark` is for Spark.
"""
from . import errors
from ._client import Client
from ._input import Columns
from ._model import Model
from ._place import Place
from ._server import Server
from ._train import train
from .errors import Error

__all__ = ["Client", "Columns", "Error", "Model", "Place", "Server", "errors", "train"]
__version__ = "0.1.0"
