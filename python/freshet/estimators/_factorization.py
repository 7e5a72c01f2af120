import numpy as np
from scipy import sparse

from ._base import Classifier, Regressor

_SMALL = 1_000_000  # numbers; up to here all rows are cheap to look at again and again


class _Machine:
    """What the two factorization machines share. They compute with sparse rows; dense ones are brought into that form."""

    _accepts_sparse = True

    def _rows(self, X):
        return X if sparse.issparse(X) else sparse.csr_matrix(X)

    def _options(self, X, *, whole):
        numbers = X.nnz if sparse.issparse(X) else X.size
        lbfgs = whole and (self.optimizer == "lbfgs" or (self.optimizer == "auto" and numbers <= _SMALL))
        options = {"model": "fm", "factors": self.factors, "optimizer": "lbfgs" if lbfgs else self.optimizer,
                   "rate": self.rate, "l2": self.l2, "seed": self._seed()}
        if whole:
            options["epochs"] = self.epochs or (100 if lbfgs else 10)
            if not lbfgs:
                options["shuffle"] = True
        return options


class FactorizationMachineClassifier(_Machine, Classifier):
    """A factorization machine for two classes: a linear model that also weighs pairs of features, by factors of each.

    >>> import numpy
    >>> from freshet.estimators import FactorizationMachineClassifier
    >>> X = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, dtype=float)
    >>> y = (X[:, 0] != X[:, 1]).astype(int)              # no linear model tells these apart
    >>> FactorizationMachineClassifier(factors=4, random_state=1).fit(X, y).score(X, y)
    1.0
    """

    _multiclass = False

    def __init__(self, factors=8, *, optimizer="auto", rate=None, l2=1e-4, epochs=None, threads=None, random_state=None):
        self.factors = factors
        self.optimizer = optimizer
        self.rate = rate
        self.l2 = l2
        self.epochs = epochs
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        return {**super()._options(X, whole=whole), "loss": "logistic"}

    def predict_proba(self, X):
        """The probability of each class."""
        return self._linked(X)

    def predict_log_proba(self, X):
        """Its logarithm."""
        return np.log(self.predict_proba(X))


class FactorizationMachineRegressor(_Machine, Regressor):
    """A factorization machine that predicts numbers.

    >>> import numpy
    >>> from freshet.estimators import FactorizationMachineRegressor
    >>> X = numpy.random.default_rng(0).normal(size=(200, 2))
    >>> FactorizationMachineRegressor(factors=2, random_state=1).fit(X, X[:, 0] * X[:, 1]).score(X, X[:, 0] * X[:, 1]) > 0.99
    True
    """

    def __init__(self, factors=8, *, optimizer="auto", rate=None, l2=1e-4, epochs=None, threads=None, random_state=None):
        self.factors = factors
        self.optimizer = optimizer
        self.rate = rate
        self.l2 = l2
        self.epochs = epochs
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        return {**super()._options(X, whole=whole), "loss": "squared"}
