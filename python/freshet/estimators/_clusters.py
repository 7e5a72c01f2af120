import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from .._train import train
from ._base import Estimator


class KMeans(ClusterMixin, Estimator):
    """Mini-batch k-means (Sculley): every row moves its nearest centre towards it, by one over the rows that has had.

    :param tries: the best of so many runs is taken, each with the rows in another order

    >>> import numpy
    >>> from freshet.estimators import KMeans
    >>> X = numpy.array([[0, 0], [0, 1], [9, 9], [9, 8]] * 5, dtype=float)
    >>> kmeans = KMeans(2, random_state=0).fit(X)
    >>> sorted(kmeans.cluster_centers_.round(1).tolist())
    [[0.0, 0.5], [9.0, 8.5]]
    """

    def __init__(self, n_clusters=8, *, epochs=10, tries=4, threads=None, random_state=None):
        self.n_clusters = n_clusters
        self.epochs = epochs
        self.tries = tries
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        options = {"model": "kmeans", "clusters": self.n_clusters, "standardise": False}
        if whole:
            options["epochs"] = self.epochs
        return options

    def fit(self, X, y=None, sample_weight=None):
        """Finds clusters; what it knew before is forgotten."""
        X = self._checked(X, reset=True)
        if len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        weights = self._weights(sample_weight, X)
        order = np.random.default_rng(self._seed())
        best = None
        for _ in range(self.tries):
            mixed = order.permutation(len(X))
            model = train(X[mixed], sample_weight=None if weights is None else weights[mixed], threads=self.threads or 0,
                          **self._options(X, whole=True))
            inertia = 2 * len(X) * model.evaluate(X, threads=self.threads or 0)["loss"]
            if best is None or inertia < best:
                best, self.model_ = inertia, model
        self.inertia_ = best
        self.labels_ = self.model_.predict(X)
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Goes on moving centres, row by row."""
        X = self._checked(X, reset=not hasattr(self, "model_"))
        self._partial_fit(X, None, sample_weight)
        self.labels_ = self.model_.predict(X)
        return self

    def predict(self, X):
        """The number of the nearest centre, for each row."""
        check_is_fitted(self, "model_")
        return self.model_.predict(self._checked(X, reset=False))

    def score(self, X, y=None):
        """Minus the sum of squared distances to the nearest centres."""
        check_is_fitted(self, "model_")
        X = self._checked(X, reset=False)
        return -2 * len(X) * self.model_.evaluate(X)["loss"]

    @property
    def cluster_centers_(self):
        return self.model_.weights["centroids"].astype(np.float64)
