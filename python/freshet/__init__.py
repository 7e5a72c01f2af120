"""Models that are trained on many machines and kept trained while they serve.

    import freshet
    model = freshet.train("sea.csv")
    model.save("sea.model")
"""
from . import errors
from ._model import Model
from ._train import train
from .errors import Error

__all__ = ["Error", "Model", "errors", "train"]
__version__ = "0.1.0"
