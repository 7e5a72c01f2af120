import numpy as np
from sklearn.utils.metaestimators import available_if

from ._base import Classifier, Regressor

_SMALL = 4_000_000  # numbers; up to here all rows are cheap to look at again and again


class _Linear:
    """What the two linear models share."""

    _accepts_sparse = True

    def _takes_lbfgs(self, X):
        if self.optimizer != "auto":
            return self.optimizer == "lbfgs"
        numbers = X.nnz if hasattr(X, "nnz") else X.size
        return numbers <= _SMALL and self.l1 == 0 and self.loss != "hinge"

    def _options(self, X, *, whole):
        lbfgs = whole and self._takes_lbfgs(X)
        options = {"model": "linear", "optimizer": "lbfgs" if lbfgs else self.optimizer, "rate": self.rate,
                   "l2": self.l2, "standardise": self.standardise, "seed": self._seed()}
        if not lbfgs:
            options.update(l1=self.l1)
        if whole:
            options["epochs"] = self.epochs or (200 if lbfgs else 10)
            if not lbfgs:
                options.update(shuffle=True)
        return options

    def _lines(self):
        """Weights of the raw numbers for each score, and what is added to them."""
        blocks, scaling = self.model_.weights, self.model_._native.scaling()
        weights, bias = blocks["weights"].astype(np.float64), blocks["bias"][0].astype(np.float64)
        if weights.shape[0] != len(bias) or not self.model_.config["dense"]:  # rows that no entry named are not there
            known = weights
            weights = np.zeros((len(bias), self.n_features_in_))
            weights[:, :len(known)] = known.T
        if scaling["scale"]:
            weights = weights * np.array(scaling["scale"])
            bias = bias - weights @ np.array(scaling["shift"])
        return weights * scaling["deviation"], bias * scaling["deviation"] + scaling["mean"]


class LinearClassifier(_Linear, Classifier):
    """Logistic regression (several classes: softmax) or a linear support vector machine.

    Of few rows (four million numbers) `fit` finds the best weights there are, by L-BFGS; of more it makes `epochs` passes
    of stochastic gradient descent by the scale-free adaptive rule, which needs neither scaling nor a rate. `partial_fit`
    always learns row by row.

    :param loss: logistic or hinge
    :param optimizer: auto, lbfgs, adaptive, sgd, momentum, adagrad, adam, ftrl
    :param rate: learning rate; None: the rule's own
    :param l1, l2: how strongly weights are held near zero
    :param epochs: passes over the rows (L-BFGS: at most so many steps); None: 10 (200)
    :param standardise: scale and centre columns as they are read; of dense rows

    >>> from sklearn.datasets import load_iris
    >>> from freshet.estimators import LinearClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = LinearClassifier().fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    >>> classifier.coef_.shape
    (3, 4)
    """

    def __init__(self, loss="logistic", *, optimizer="auto", rate=None, l1=0.0, l2=1e-4, epochs=None, standardise=False,
                 threads=None, random_state=None):
        self.loss = loss
        self.optimizer = optimizer
        self.rate = rate
        self.l1 = l1
        self.l2 = l2
        self.epochs = epochs
        self.standardise = standardise
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        several = len(self.classes_) > 2
        if self.loss not in ("logistic", "hinge"):
            raise ValueError(f"loss={self.loss!r}, expected 'logistic' or 'hinge'")
        if several and self.loss == "hinge":
            raise ValueError("loss='hinge' tells two classes apart; sklearn.multiclass.OneVsRestClassifier makes more of it")
        return {**super()._options(X, whole=whole), "loss": "softmax" if several else self.loss}

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X):
        """The probability of each class."""
        return self._linked(X)

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X):
        """Its logarithm."""
        return np.log(self.predict_proba(X))

    @property
    def coef_(self):
        return self._lines()[0]

    @property
    def intercept_(self):
        return self._lines()[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss != "hinge"
        return tags


class LinearRegressor(_Linear, Regressor):
    """Least squares, as :class:`LinearClassifier` finds its weights.

    >>> import numpy
    >>> from freshet.estimators import LinearRegressor
    >>> X = numpy.arange(20.0).reshape(10, 2)
    >>> regressor = LinearRegressor(l2=0).fit(X, X @ [1, 2] + 3)
    >>> numpy.allclose(regressor.predict(X), X @ [1, 2] + 3, atol=1e-2)
    True
    """

    loss = "squared"

    def __init__(self, *, optimizer="auto", rate=None, l1=0.0, l2=1e-4, epochs=None, standardise=False, threads=None,
                 random_state=None):
        self.optimizer = optimizer
        self.rate = rate
        self.l1 = l1
        self.l2 = l2
        self.epochs = epochs
        self.standardise = standardise
        self.threads = threads
        self.random_state = random_state

    def _options(self, X, *, whole):
        return {**super()._options(X, whole=whole), "loss": "squared"}

    @property
    def coef_(self):
        return self._lines()[0][0]

    @property
    def intercept_(self):
        return float(self._lines()[1][0])
