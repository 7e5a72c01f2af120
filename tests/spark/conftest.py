import pathlib
import time

import numpy as np
import pytest
import spark_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    one = spark_cluster.Cluster(tmp_path_factory.mktemp("cluster"))
    yield one
    one.stop()


@pytest.fixture(scope="session")
def spark(cluster):
    """A session on a standalone cluster: a master and two workers of two cores each. Nobody is left behind by its stages."""
    session = spark_cluster.session(cluster.url)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    end = time.monotonic() + 20
    while spark_cluster.processes("freshet._worker") and time.monotonic() < end:
        time.sleep(0.2)
    left = spark_cluster.processes("freshet._worker")
    session.stop()
    assert left == []


@pytest.fixture(scope="session")
def program():
    """The command line, where `make build` has left it."""
    return pathlib.Path(__file__).resolve().parents[2] / "build/release/apps/freshet/freshet"


@pytest.fixture
def sea():
    """Rows of the SEA concept: two of three numbers tell the class."""
    X = np.random.default_rng(7).uniform(0, 10, size=(4000, 3)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] > 10).astype(int)
