"""scikit-learn's estimators over the native library.

They take part in pipelines, grid searches and pickles as scikit-learn's own do; what they have learned is in `model_`, a
:class:`freshet.Model`, which can be saved and served.
"""
from ._clusters import KMeans
from ._factorization import FactorizationMachineClassifier, FactorizationMachineRegressor
from ._linear import LinearClassifier, LinearRegressor
from ._networks import NetworkClassifier, NetworkRegressor
from ._recommender import FactorizationRecommender

__all__ = ["FactorizationMachineClassifier", "FactorizationMachineRegressor", "FactorizationRecommender", "KMeans",
           "LinearClassifier", "LinearRegressor", "NetworkClassifier", "NetworkRegressor"]
