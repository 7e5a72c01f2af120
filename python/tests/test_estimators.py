"""scikit-learn's own checks, and its examples with our estimators."""
import pickle
import warnings

import numpy as np
import pytest
from freshet.estimators import (FactorizationMachineClassifier, FactorizationMachineRegressor, FactorizationRecommender,
                                KMeans, LinearClassifier, LinearRegressor, NetworkClassifier, NetworkRegressor)
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

# Results that differ in the last digits of a float are different to these checks, which want seven of a double.
SINGLE = "models compute with floats of four bytes: results agree to 1e-4 and not to 1e-7"
STEPS = "learned by steps over rows in random order: a row of weight two is a larger step, not two"
WEIGHTS = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
EXPECTED = {
    LinearClassifier: dict.fromkeys(WEIGHTS, SINGLE),
    LinearRegressor: dict.fromkeys(WEIGHTS, SINGLE),
    FactorizationMachineClassifier: dict.fromkeys(WEIGHTS, SINGLE),
    FactorizationMachineRegressor: dict.fromkeys(WEIGHTS, SINGLE),
    KMeans: dict.fromkeys(WEIGHTS, STEPS),
    NetworkClassifier: {**dict.fromkeys(WEIGHTS, STEPS), "check_methods_sample_order_invariance": SINGLE},
    NetworkRegressor: {**dict.fromkeys(WEIGHTS, STEPS), "check_methods_sample_order_invariance": SINGLE},
}


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_scikit_learns_checks_pass(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(kind(), expected_failed_checks=EXPECTED[kind], on_fail=None, on_skip=None)
    failed = [f"{result['check_name']}: {result['exception']}" for result in results if result["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert sum(result["status"] == "passed" for result in results) > 40
    for result in results:
        if result["status"] in ("skipped", "xfail"):
            print(f"{result['status']} {result['check_name']}: {result['exception'] or result['expected_to_fail_reason']}")


@pytest.mark.parametrize("kind", [LinearClassifier, LinearRegressor])
@pytest.mark.parametrize("bring", [np.asarray, sparse.csr_matrix])
def test_a_row_of_weight_two_is_two_rows(rng, kind, bring):
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
    weight = rng.integers(0, 4, 300)
    weighted = kind().fit(bring(X), y, sample_weight=weight)
    repeated = kind().fit(bring(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    assert np.allclose(weighted.coef_, repeated.coef_, atol=2e-3)


def test_coefficients_are_of_raw_numbers(rng):
    X = rng.normal(size=(500, 3)) * [1, 10, 100] + [5, -3, 0]
    y = X @ [1.0, 0.2, 0.03] + 4
    for standardise in (False, True):
        for bring in (np.asarray, sparse.csr_matrix):
            fitted = LinearRegressor(standardise=standardise, l2=0).fit(bring(X), y)
            assert np.allclose(fitted.coef_, [1.0, 0.2, 0.03], atol=1e-3) and abs(fitted.intercept_ - 4) < 0.02
            assert np.allclose(fitted.predict(bring(X)), X @ fitted.coef_ + fitted.intercept_, atol=1e-2)


def test_what_was_pickled_in_between_goes_on_learning_the_same(sea):
    X, y = sea
    for kind in (LinearClassifier, LinearRegressor, FactorizationMachineClassifier, NetworkClassifier):
        how = {"classes": [0, 1]} if hasattr(kind, "predict_proba") else {}
        here = kind(random_state=3).partial_fit(X[:500], y[:500], **how)
        there = pickle.loads(pickle.dumps(here))
        for estimator in (here, there):
            estimator.partial_fit(X[500:900], y[500:900])
        assert np.array_equal(here.predict(X), there.predict(X)), kind


def test_partial_fit_does_not_depend_on_how_rows_are_cut(sea):
    X, y = sea
    whole = LinearClassifier(random_state=1).partial_fit(X, y, classes=[0, 1])
    bits = LinearClassifier(random_state=1)
    for begin in range(0, len(X), 333):
        bits.partial_fit(X[begin:begin + 333], y[begin:begin + 333], classes=[0, 1])
    assert np.array_equal(whole.coef_, bits.coef_)
    assert whole.score(X, y) > 0.85


def test_digits_and_iris_as_well_as_scikit_learns_own():
    for load in (load_digits, load_iris):
        X, y = load(return_X_y=True)
        parts = train_test_split(X, y, random_state=0)
        ours = make_pipeline(StandardScaler(), LinearClassifier()).fit(parts[0], parts[2]).score(parts[1], parts[3])
        theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(parts[0], parts[2])
        assert ours >= theirs.score(parts[1], parts[3]) - 0.02
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(LinearRegressor(), X, y).mean() >= cross_val_score(Ridge(alpha=0.01), X, y).mean() - 0.02


def test_a_pipeline_with_one_hot_columns(rng):
    towns = rng.choice(["Rome", "Oslo", "Lima"], 600)
    X = np.column_stack([towns.astype(object), rng.normal(size=600)])
    y = (towns == "Oslo") ^ (X[:, 1].astype(float) > 0)
    encode = make_column_transformer((OneHotEncoder(), [0]), (StandardScaler(), [1]))
    linear = make_pipeline(encode, LinearClassifier()).fit(X, y)
    machine = make_pipeline(encode, FactorizationMachineClassifier(factors=4, random_state=1)).fit(X, y)
    assert linear.score(X, y) > 0.6 and machine.score(X, y) > 0.95


def test_a_grid_search_over_processes(sea):
    X, y = sea
    search = GridSearchCV(LinearClassifier(optimizer="adaptive", epochs=2, random_state=0, threads=1), {"l2": [1e-5, 10.0]},
                          n_jobs=2, cv=3).fit(X, y)
    assert search.best_params_ == {"l2": 1e-5}


def test_more_than_two_classes_by_hinge_loss_through_one_against_the_rest():
    X, y = load_digits(return_X_y=True)
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        LinearClassifier("hinge").fit(X, y)
    assert OneVsRestClassifier(LinearClassifier("hinge", random_state=0)).fit(X, y).score(X, y) > 0.85


def test_a_network_of_the_zoo_on_images():
    X, y = load_digits(return_X_y=True)
    images = np.kron(X.reshape(-1, 8, 8), np.ones((4, 4))).reshape(len(X), -1)[:, :]       # 32 x 32
    network = NetworkClassifier("lenet5", shape=(1, 32, 32), epochs=1, optimizer="momentum", rate=0.01, random_state=1)
    assert network.fit(images[:600] / 16, y[:600]).score(images[600:900] / 16, y[600:900]) > 0.8


def test_recommendations_by_names(rng):
    users, items = rng.integers(0, 60, 3000), rng.integers(0, 40, 3000)
    ratings = 3 + (users % 2 == items % 2) * 1.0
    named = np.column_stack([np.char.add("u", users.astype(str)), np.char.add("i", items.astype(str))])
    recommender = FactorizationRecommender(factors=4, epochs=30, random_state=1).fit(named, ratings)
    assert recommender.score(named, ratings) > 0.8
    numbered = FactorizationRecommender(factors=4, epochs=30, random_state=1).fit(np.column_stack([users, items]), ratings)
    assert np.allclose(recommender.predict(named), numbered.predict(np.column_stack([users, items])))
    seen = {item for user, item in named if user == "u1"}
    assert not seen & {item for item, _ in recommender.recommend("u1", 5)}
    recommender.partial_fit([["stranger", "i1"]] * 3, [5, 5, 5])
    assert recommender.predict([["stranger", "i1"]])[0] > 3.5
