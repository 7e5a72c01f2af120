import pathlib

import numpy
import pytest


@pytest.fixture
def rng():
    return numpy.random.default_rng(7)


@pytest.fixture
def sea(rng):
    """Rows of the SEA concept: two of three numbers tell the class."""
    X = rng.uniform(0, 10, size=(4000, 3)).astype(numpy.float32)
    return X, (X[:, 0] + X[:, 1] > 10).astype(int)


@pytest.fixture
def program():
    """The command line, where `make build` has left it."""
    path = pathlib.Path(__file__).resolve().parents[2] / "build/release/apps/freshet/freshet"
    if not path.exists():
        pytest.skip(f"{path} is not there: THE COMMAND LINE IS NOT COMPARED WITH")
    return path
