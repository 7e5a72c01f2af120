"""Models of freshet in MLflow: a flavour of their own, which is a pyfunc too, and autologging.

    import mlflow, freshet, freshet.mlflow
    freshet.mlflow.autolog()
    with mlflow.start_run():
        model = freshet.train(X, y)          # options, how it went and the model are logged
"""
import functools
import os
import sys

import mlflow
from mlflow import pyfunc
from mlflow.models import Model as MlflowModel
from mlflow.models.model import MLMODEL_FILE_NAME

import freshet

from . import _train

FLAVOR_NAME = "freshet"
_FILE = "model.freshet"


def get_default_pip_requirements():
    """What an environment needs to load a model."""
    return [f"freshet=={freshet.__version__}", "numpy"]


def save_model(model, path, *, mlflow_model=None, signature=None, input_example=None, pip_requirements=None):
    """Writes a folder that MLflow, and `mlflow models serve`, can load."""
    os.makedirs(path, exist_ok=True)
    mlflow_model = mlflow_model or MlflowModel()
    if signature is not None:
        mlflow_model.signature = signature
    model.save(os.path.join(path, _FILE))
    pyfunc.add_to_model(mlflow_model, loader_module="freshet.mlflow", data=_FILE, pip_requirements=None)
    mlflow_model.add_flavor(FLAVOR_NAME, freshet_version=freshet.__version__, data=_FILE, kind=model.kind, loss=model.loss)
    with open(os.path.join(path, "requirements.txt"), "w") as file:
        file.write("\n".join(pip_requirements or get_default_pip_requirements()) + "\n")
    mlflow_model.save(os.path.join(path, MLMODEL_FILE_NAME))


def log_model(model, name="model", **how):
    """Logs a model into the active run; arguments as :func:`save_model`'s, and those of MLflow (registered_model_name …)."""
    return MlflowModel.log(artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, **how)


def load_model(model_uri):
    """A :class:`freshet.Model` that was logged or saved."""
    folder = mlflow.artifacts.download_artifacts(artifact_uri=model_uri)
    return freshet.Model.load(os.path.join(folder, MlflowModel.load(folder).flavors[FLAVOR_NAME]["data"]))


class _Predictor:
    """What a pyfunc asks: labels, or with params={"probabilities": True} the probability of each class."""

    def __init__(self, model):
        self._model = model

    def predict(self, rows, params=None):
        if hasattr(rows, "to_numpy") and not any(c["kind"] == "category" for c in self._model.input["columns"]):
            rows = rows.to_numpy()
        return self._model.predict_proba(rows) if (params or {}).get("probabilities") else self._model.predict(rows)

    def get_raw_model(self):
        return self._model


def _load_pyfunc(path):
    return _Predictor(freshet.Model.load(path))


def _log_run(model, options):
    mlflow.log_params({name: value for name, value in options.items() if isinstance(value, (str, int, float, bool))})
    report = model.report
    mlflow.log_params({f"used_{name}": report[name] for name in ("optimizer", "rate", "batch", "epochs") if name in report})
    for part in ("progressive", "last_epoch", "held_out"):
        for name, value in report.get(part, {}).items():
            mlflow.log_metric(f"{part}_{name}", value)
    mlflow.log_metric("seconds", report["seconds"])


def autolog(log_models=True, disable=False):
    """From now on :func:`freshet.train` logs into the active run, if there is one: options, how it went, the model."""
    plain = getattr(_train.train, "__wrapped__", _train.train)
    if disable:
        freshet.train = _train.train = plain
        return

    @functools.wraps(plain)
    def train(rows, y=None, **options):
        model = plain(rows, y, **options)
        if mlflow.active_run() is not None:
            _log_run(model, options)
            if log_models:
                log_model(model)
        return model

    freshet.train = _train.train = train
