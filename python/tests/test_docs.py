"""The examples in docstrings are run as they stand."""
import doctest
import importlib
import pathlib

import pytest

MODULES = ["freshet", "freshet._client", "freshet._model", "freshet._place", "freshet._server", "freshet._train",
           "freshet.estimators._clusters", "freshet.estimators._factorization", "freshet.estimators._linear",
           "freshet.estimators._networks", "freshet.estimators._recommender"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_say(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0
    assert tried > 0 or name == "freshet"


def test_the_walk_through_the_documentation_gives_what_it_says():
    pytest.importorskip("pandas", reason="PANDAS IS NOT HERE: DOCS/PYTHON.MD WAS NOT RUN")
    path = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
    failed, tried = doctest.testfile(str(path), module_relative=False)
    assert failed == 0 and tried > 20
