"""freshet.Server and freshet.Client: what a client gets, and what becomes of it when the server goes away."""
import threading
import time

import freshet
import numpy as np
import pytest
from scipy import sparse


@pytest.fixture
def model(sea):
    return freshet.train(*sea)


def test_answers_are_the_models_own(tmp_path, sea, model):
    X, _ = sea
    with freshet.Server({"sea": model}, state=tmp_path) as server, freshet.Client(server.address) as client:
        answer = client.infer(X[:100])
        assert np.array_equal(answer["score"][:, 0], model.predict_proba(X[:100])[:, 1])
        assert answer["label"].astype(int).tolist() == model.predict(X[:100]).tolist()
        assert client.models() == ["sea"] and client.ready()


def test_columns_and_sparse_rows_and_ratings_travel_too(tmp_path, rng):
    columns = freshet.Columns(town=rng.choice(["Rome", "Oslo"], 300), age=rng.normal(size=300))
    of_columns = freshet.train(columns, (columns["town"] == "Oslo").astype(int))
    X = sparse.random(300, 50, 0.2, format="csr", random_state=1)
    of_sparse = freshet.train(X, (X[:, 0].toarray()[:, 0] > 0).astype(int))
    pairs = freshet.Columns(user=rng.integers(0, 9, 300), item=rng.integers(0, 99, 300))
    of_ratings = freshet.train(pairs, rng.normal(size=300), format="ratings")
    models = {"columns": of_columns, "sparse": of_sparse, "ratings": of_ratings}
    with freshet.Server(models, state=tmp_path) as server:
        for name, rows in {"columns": columns, "sparse": X, "ratings": pairs}.items():
            scores = freshet.Client(server.address, name).infer(rows)["score"][:, 0]
            own = models[name].predict(rows) if name == "ratings" else models[name].predict_proba(rows)[:, 1]
            assert np.allclose(scores, own, atol=1e-6), name
        assert len(freshet.Client(server.address, "ratings").recommend(3, 2)["items"]) == 2
        with pytest.raises(freshet.errors.InvalidError, match="say which"):
            freshet.Client(server.address).stats()


def test_rows_are_learned_once_over_restarts(tmp_path, sea, model):
    X, y = sea
    with freshet.Server({"sea": model}, state=tmp_path) as server, freshet.Client(server.address) as client:
        assert client.learn(X[:50], y[:50], ids=range(50))["accepted"] == 50
        assert client.learn(X[:60], y[:60], ids=range(60))["duplicates"] == 50
        assert client.stats()["learning"]["observations"] == 60
    with freshet.Server({"sea": model}, state=tmp_path) as server, freshet.Client(server.address) as client:
        assert client.learn(X[:50], y[:50], ids=range(50))["accepted"] == 0
        assert client.stats()["learning"]["observations"] == 60


def test_a_client_goes_on_when_the_server_comes_back(tmp_path, sea, model):
    X, y = sea
    first = freshet.Server({"sea": model}, state=tmp_path)
    port, client, accepted = first.port, freshet.Client(first.address, "sea", timeout=60), []
    def learn():
        for begin in range(0, 2000, 20):
            accepted.append(client.learn(X[begin:begin + 20], y[begin:begin + 20]))
            time.sleep(0.005)
    thread = threading.Thread(target=learn)
    thread.start()
    time.sleep(0.3)
    first.stop()
    time.sleep(0.3)
    with freshet.Server({"sea": model}, state=tmp_path, port=port) as second:
        thread.join()
        with freshet.Client(second.address) as other:
            assert other.stats()["learning"]["observations"] == 2000
    assert len(accepted) == 100


def test_feedback_versions_and_a_roll_back(tmp_path, sea, model):
    X, y = sea
    with freshet.Server({"sea": model}, state=tmp_path, method="baseline+") as server:
        client = freshet.Client(server.address)
        before = client.infer(X[:5])["score"]
        client.infer(X[:1], id="visit 1")
        assert client.feedback("visit 1", y[0])["result"] == "accepted"
        assert client.feedback("visit 1", y[0])["result"] == "duplicate"
        client.learn(X[:500], 1 - y[:500])
        assert client.stats()["learning"]["observations"] == 501
        assert str(client.versions()["versions"][0]["version"]) == "0"
        client.roll_back(0, discard=[1, 502])
        end = time.monotonic() + 20
        while not np.array_equal(client.infer(X[:5])["score"], before) and time.monotonic() < end:
            time.sleep(0.05)
        assert np.array_equal(client.infer(X[:5])["score"], before)
        assert np.array_equal(client.infer(X[:5], version=0)["score"], before)


def test_errors_of_a_server_are_exceptions(tmp_path, sea, model):
    with freshet.Server({"sea": model}, state=tmp_path) as server:
        client = freshet.Client(server.address)
        with pytest.raises(freshet.errors.InvalidError, match="400"):
            client.infer([[1.0, 2.0]])
        with pytest.raises(freshet.errors.NotFoundError, match="there is no model"):
            freshet.Client(server.address, "other").stats()
        with pytest.raises(freshet.errors.BusyError):
            freshet.Server({"sea": model}, state=tmp_path / "other", port=server.port)
    with pytest.raises(freshet.errors.PeerLostError):
        freshet.Client("http://127.0.0.1:1", "sea", timeout=0.3).stats()
    with pytest.raises(freshet.errors.InvalidError, match="did you mean 'port'"):
        freshet.Server({"sea": model}, state=tmp_path / "another", prot=1)


def test_tokens_say_who_may_do_what(tmp_path, sea, model):
    X, y = sea
    (tmp_path / "tokens").write_text("predict reader " + "r" * 32 + "\nlearn teacher " + "t" * 32 + "\n")
    (tmp_path / "tokens").chmod(0o600)
    with freshet.Server({"sea": model}, state=tmp_path / "state", tokens=tmp_path / "tokens") as server:
        with pytest.raises(freshet.errors.InvalidError, match="401"):
            freshet.Client(server.address, "sea").infer(X[:1])
        reader = freshet.Client(server.address, "sea", token="r" * 32)
        reader.infer(X[:1])
        with pytest.raises(freshet.errors.InvalidError, match="403"):
            reader.learn(X[:1], y[:1])
        assert freshet.Client(server.address, "sea", token="t" * 32).learn(X[:1], y[:1])["accepted"] == 1
