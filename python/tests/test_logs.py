"""What others read of a run: TensorBoard and MLflow."""
import freshet
import numpy as np
import pytest


def scalars(folder):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator",
                                  reason="TENSORBOARD IS NOT HERE: EVENT FILES WERE NOT READ")
    accumulator = reading.EventAccumulator(str(folder))
    accumulator.Reload()
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]}


def test_tensorboard_reads_what_training_wrote(tmp_path, sea):
    X, y = sea
    model = freshet.train(X, y, epochs=3, holdout=0.1, tensorboard=tmp_path / "runs")
    told = scalars(tmp_path / "runs")
    assert {"loss/epoch", "loss/lately", "loss/held_out", "error_rate"} <= set(told)
    steps = [step for step, _ in told["loss/epoch"]]
    assert steps == sorted(steps) and steps[-1] == model.report["rows"]
    assert len(told["loss/held_out"]) == 3
    assert abs(told["loss/held_out"][-1][1] - model.report["held_out"]["log_loss"]) < 1e-6


def test_tensorboard_reads_what_the_command_line_wrote(tmp_path, sea, program):
    import subprocess
    X, y = sea
    np.savetxt(tmp_path / "sea.csv", np.column_stack([X, y]), delimiter=",", fmt="%.6g")
    subprocess.run([program, "train", tmp_path / "sea.csv", "--tensorboard", tmp_path / "runs", "--quiet"], check=True,
                   capture_output=True)
    assert scalars(tmp_path / "runs")["loss/epoch"][-1][0] == len(X)


@pytest.fixture
def tracked(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLFLOW IS NOT HERE: ITS FLAVOUR WAS NOT TESTED")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/mlruns")
    return mlflow


def test_a_logged_model_is_loaded_as_itself_and_as_a_pyfunc(tracked, sea):
    import freshet.mlflow
    X, y = sea
    model = freshet.train(X, y)
    with tracked.start_run():
        info = freshet.mlflow.log_model(model)
    assert np.array_equal(freshet.mlflow.load_model(info.model_uri).scores(X), model.scores(X))
    generic = tracked.pyfunc.load_model(info.model_uri)
    assert np.array_equal(generic.predict(X), model.predict(X))


def test_a_saved_model_is_a_folder(tracked, tmp_path, sea):
    import freshet.mlflow
    X, y = sea
    model = freshet.train(X, y)
    freshet.mlflow.save_model(model, tmp_path / "saved")
    assert np.array_equal(tracked.pyfunc.load_model(str(tmp_path / "saved")).predict(X), model.predict(X))


def test_runs_are_logged_by_themselves(tracked, sea):
    import freshet.mlflow
    X, y = sea
    freshet.mlflow.autolog(log_models=False)
    try:
        with tracked.start_run() as run:
            model = freshet.train(X, y, epochs=2)
    finally:
        freshet.mlflow.autolog(disable=True)
    logged = tracked.get_run(run.info.run_id).data
    assert logged.params["epochs"] == "2" and logged.params["used_optimizer"] == model.report["optimizer"]
    assert logged.metrics["last_epoch_log_loss"] == pytest.approx(model.report["last_epoch"]["log_loss"])
