"""Examples of scikit-learn's documentation with our estimators in place of theirs: the errors beside each other."""
import lzma
import os
import pathlib

import numpy as np
import pytest
from freshet.estimators import LinearClassifier, NetworkClassifier
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def compared(what, theirs, ours, tolerance):
    print(f"{what}: error {theirs:.4f} by theirs, {ours:.4f} by ours")
    assert ours <= theirs + tolerance


@pytest.mark.parametrize(("theirs", "ours"), [
    (LogisticRegression(max_iter=1000), LinearClassifier()),
    (MLPClassifier((50,), max_iter=100, random_state=1), NetworkClassifier((50,), epochs=30, random_state=1))], ids=["linear", "network"])
def test_recognizing_hand_written_digits(theirs, ours):
    X, y = load_digits(return_X_y=True)
    train_X, test_X, train_y, test_y = train_test_split(X / 16, y, test_size=0.5, shuffle=False)
    errors = [1 - model.fit(train_X, train_y).score(test_X, test_y) for model in (theirs, ours)]
    compared(f"digits, {type(ours).__name__}", *errors, 0.015)


def test_a_column_transformer_with_mixed_types():
    pd = pytest.importorskip("pandas", reason="PANDAS IS NOT HERE: MIXED TYPES WERE NOT TRIED")
    rng = np.random.default_rng(0)  # in place of the Titanic's passengers, who are on the network
    people = pd.DataFrame({"age": rng.uniform(1, 80, 1300), "fare": rng.lognormal(3, 1, 1300),
                           "embarked": rng.choice(["C", "S", "Q"], 1300), "sex": rng.choice(["male", "female"], 1300),
                           "pclass": rng.integers(1, 4, 1300)})
    odds = 2.5 * (people["sex"] == "female") - 0.9 * people["pclass"] - 0.03 * people["age"] + 1.5 * (people["embarked"] == "C")
    survived = (odds + rng.logistic(size=1300) > -1.5).astype(int)
    people.loc[rng.random(1300) < 0.2, "age"] = np.nan
    columns = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "fare"]),
                                 ("categories", OneHotEncoder(handle_unknown="ignore"), ["embarked", "sex", "pclass"])])
    train_X, test_X, train_y, test_y = train_test_split(people, survived, test_size=0.3, random_state=0)
    errors = [1 - make_pipeline(columns, model).fit(train_X, train_y).score(test_X, test_y)
              for model in (LogisticRegression(), LinearClassifier())]
    compared("mixed types", *errors, 0.01)


def test_a_grid_search_with_cross_validation():
    X, y = load_breast_cancer(return_X_y=True)
    train_X, test_X, train_y, test_y = train_test_split(X, y, random_state=0)
    errors = []
    for name, model, strengths in (("logisticregression__C", LogisticRegression(), [0.01, 1, 100]),
                                   ("linearclassifier__l2", LinearClassifier(), [1e-1, 1e-3, 1e-5])):
        search = GridSearchCV(make_pipeline(StandardScaler(), model), {name: strengths}, cv=3).fit(train_X, train_y)
        errors.append(1 - search.score(test_X, test_y))
    compared("grid search", *errors, 0.015)


def test_text_documents_by_sparse_features():
    """20 newsgroups, as counts of words: the example's own loader would fetch the texts from the network."""
    folder = pathlib.Path(os.environ.get("FRESHET_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
    path = folder / "news20" / "news20.svm.xz"
    if not path.exists():
        pytest.skip(f"{path} IS NOT HERE: 20 NEWSGROUPS WERE NOT TRIED")
    with lzma.open(path) as file:
        counts, topics = load_svmlight_file(file)
    train_X, test_X, train_y, test_y = train_test_split(counts[:6000], topics[:6000], test_size=0.4, random_state=0)
    weigh = TfidfTransformer(sublinear_tf=True).fit(train_X)
    errors = [1 - model.fit(weigh.transform(train_X), train_y).score(weigh.transform(test_X), test_y)
              for model in (LogisticRegression(C=5, max_iter=200), LinearClassifier(l2=5e-5))]
    compared("20 newsgroups", *errors, 0.01)
