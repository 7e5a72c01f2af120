import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .. import _input
from .._train import train
from ._base import Estimator


class FactorizationRecommender(RegressorMixin, Estimator):
    """Biased matrix factorization: predicts what users would say of items, and recommends what they have not rated.

    Rows are pairs of a user and an item, each named by a number or a text.

    >>> import numpy
    >>> from freshet.estimators import FactorizationRecommender
    >>> pairs = numpy.array([(u, i) for u in range(30) for i in range(20) if (u + i) % 4])
    >>> ratings = 3 + (pairs[:, 0] % 2 == pairs[:, 1] % 2)
    >>> recommender = FactorizationRecommender(factors=2, epochs=200).fit(pairs, ratings)
    >>> recommender.score(pairs, ratings) > 0.8
    True
    >>> [int(item) % 2 for item, score in recommender.recommend(1, 2)]
    [1, 1]
    """

    def __init__(self, factors=40, *, optimizer="auto", rate=None, l2=None, epochs=20, threads=None, random_state=None):
        self.factors = factors
        self.optimizer = optimizer
        self.rate = rate
        self.l2 = l2
        self.epochs = epochs
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        options = {"model": "factorization", "format": "ratings", "factors": self.factors, "optimizer": self.optimizer,
                   "rate": self.rate, "l2": self.l2, "seed": self._seed()}
        if whole:
            options["epochs"] = self.epochs
        return options

    @staticmethod
    def _pairs(X):
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"rows of shape {X.shape}, expected pairs of a user and an item: (n, 2)")
        return _input.Columns({"user": X[:, 0], "item": X[:, 1]})

    def fit(self, X, y):
        """Learns from ratings; what it knew before is forgotten."""
        pairs = self._pairs(X)
        self.n_features_in_ = 2
        self.model_ = train(pairs, np.asarray(y, dtype=np.float32), threads=self.threads or 0,
                            **self._options(X, whole=True))
        return self

    def partial_fit(self, X, y):
        """Goes on learning, rating by rating; users and items may be new."""
        self.n_features_in_ = 2
        return self._partial_fit(self._pairs(X), np.asarray(y, dtype=np.float32), None)

    def predict(self, X):
        """A rating for each pair; who was never met counts as everybody."""
        check_is_fitted(self, "model_")
        return self.model_.predict(self._pairs(X), threads=self.threads or 0).astype(np.float64)

    def recommend(self, user, count=10):
        """The best items for a user that they have not rated: pairs of name and predicted rating."""
        check_is_fitted(self, "model_")
        return self.model_.recommend(user, count)
