"""What all estimators share: from scikit-learn's conventions to freshet's calls, and back."""
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import _input, _native
from .._model import Model
from .._train import train

_FLOATS = [np.float64, np.float32]


class Estimator(BaseEstimator):
    """An estimator whose state is a model. Kinds say what options they train with."""

    _accepts_sparse = False

    def _options(self, X, *, whole):
        """Options of training; `whole` is false where rows come bit by bit."""
        raise NotImplementedError

    def _seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _checked(self, X, *y, reset, **how):
        sparse = "csr" if self._accepts_sparse else False
        return validate_data(self, X, *y, reset=reset, accept_sparse=sparse, dtype=_FLOATS, **how)

    def _rows(self, X):
        """Rows as the model takes them."""
        return X

    def _weights(self, sample_weight, X):
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=_FLOATS, ensure_non_negative=True)

    def _fit(self, X, y, sample_weight, classes=None):
        self.model_ = train(self._rows(X), y, sample_weight=self._weights(sample_weight, X), classes=classes,
                            threads=self.threads or 0, **self._options(X, whole=True))
        return self

    def _partial_fit(self, X, y, sample_weight, classes=None):
        source = _input.source(self._rows(X), y, self._weights(sample_weight, X))
        options = self._options(X, whole=False)
        if not hasattr(self, "model_"):
            self.model_ = Model(_native.cold(source, options, classes or []))
        self.model_.learn_with(**{name: options[name] for name in ("optimizer", "rate", "l1", "l2") if name in options})
        self.model_._native.update(source, self.threads or 0)
        return self

    def _scores(self, X):
        check_is_fitted(self, "model_")
        X = self._checked(X, reset=False)
        return self.model_.scores(self._rows(X), threads=self.threads or 0)

    def _linked(self, X):
        check_is_fitted(self, "model_")
        X = self._checked(X, reset=False)
        return self.model_.predict_proba(self._rows(X), threads=self.threads or 0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags


class Classifier(ClassifierMixin, Estimator):
    _multiclass = True

    def _coded(self, y):
        """Labels as places in classes_."""
        codes = np.searchsorted(self.classes_, y)
        codes[codes == len(self.classes_)] = 0
        strange = self.classes_[codes] != y
        if np.any(strange):
            raise ValueError(f"label {y[strange][0]!r} is none of the classes {list(self.classes_)}")
        return _input.Coded(codes.astype(np.int32), self._names())

    def _names(self):
        labels = self.classes_.astype(int) if self.classes_.dtype.kind == "b" else self.classes_
        return [str(label) for label in labels]

    def _check_classes(self):
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs labels of at least 2 classes, found one class: {self.classes_[0]!r}")
        if len(self.classes_) > 2 and not self._multiclass:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")

    def fit(self, X, y, sample_weight=None):
        """Learns from all rows; what it knew before is forgotten."""
        X, y = self._checked(X, y, reset=True)
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            raise ValueError("Unknown label type: several labels a row")
        self.classes_ = np.unique(y)
        self._check_classes()
        return self._fit(X, self._coded(y), sample_weight, self._names())

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Goes on learning, row by row in their order. The first call says all classes there may be."""
        first = not hasattr(self, "model_")
        X, y = self._checked(X, y, reset=first)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_ = np.unique(classes)
            self._check_classes()
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(f"classes={classes} is not what the first call was given: {list(self.classes_)}")
        return self._partial_fit(X, self._coded(y), sample_weight, self._names())

    def decision_function(self, X):
        """Scores: one for each row where there are two classes (above 0: the second), else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """A class for each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multiclass
        return tags


class Regressor(RegressorMixin, Estimator):
    def fit(self, X, y, sample_weight=None):
        """Learns from all rows; what it knew before is forgotten."""
        X, y = self._checked(X, y, reset=True, y_numeric=True)
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X, y, sample_weight=None):
        """Goes on learning, row by row in their order."""
        X, y = self._checked(X, y, reset=not hasattr(self, "model_"), y_numeric=True)
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X):
        """A number for each row."""
        return self._scores(X)[:, 0]
