#!/usr/bin/env python3
"""How near simulated times come to real ones, on this machine: an update of several models by 2 to 8 workers.

What computing and exchanging cost is measured first (freshet bench --calibrate) and stays as it is; then every update is
timed for real (freshet bench step) and simulated (freshet simulate --calibration), and the ratio is shown. Real times are
medians of several runs. Exits with 1 when a ratio is out of the bounds that docs/simulation.md states.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

FRESHET = os.path.abspath("build/release/apps/freshet/freshet")
MODELS = [("url-like", 512), ("mlp", 128), ("lenet5", 64), ("googlenet:3x96x96", 16)]
WORKERS = [2, 4, 8]
RUNS = 3
WITHIN, WITHIN_CROWDED, MEAN_WITHIN = 0.25, 0.35, 0.15


def run(arguments, workers=0):
    launch = [FRESHET, "launch", "-n", str(workers), "--"] if workers else [FRESHET]
    done = subprocess.run(launch + arguments, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(launch + arguments)}\n{done.stderr}")
    return done.stdout


def measure_models(models, counts, path):
    """What computing costs for updates of these (model, batch) by so many workers."""
    rows = sorted({batch // workers for _, batch in models for workers in counts})
    run(["bench", "--calibrate", path, "--model", ",".join(m for m, _ in models), "--rows", ",".join(map(str, rows)),
         "--seconds", "1"])


def measure_exchange(workers, tcp, of_models, path):
    """The same with what exchanging costs among so many."""
    arguments = ["bench", "--calibrate", path, "--model", "mlp", "--rows", "1", "--seconds", "0.2"]
    arguments += ["--no-shared-memory"] if tcp else ["--workers", str(workers)]
    print(f"{'tcp' if tcp else 'threads':8} {workers} workers:", run(arguments, workers if tcp else 0).strip(), flush=True)
    with open(path) as file:
        measured = json.load(file)
    with open(of_models) as file:
        measured["models"] = json.load(file)["models"]
    with open(path, "w") as file:
        json.dump(measured, file)


def real(model, batch, workers, tcp, topology, bucket=4 << 20):
    arguments = ["bench", "step", "--model", model, "--batch", str(batch), "--topology", topology, "--steps", "20",
                 "--bucket", str(bucket), "--json"]
    arguments += ["--no-shared-memory"] if tcp else ["--workers", str(workers)]
    lines = run(arguments, workers if tcp else 0).strip().split("\n")
    return json.loads([line for line in lines if line.startswith("{")][0])["update_seconds"]


def simulated(model, batch, workers, path, topology):
    name, _, shape = model.partition(":")
    arguments = ["simulate", "--calibration", path, "--nodes", "1", "--workers-per-node", str(workers), "--model", name,
                 "--batch", str(batch), "--topology", topology, "--json"]
    return json.loads(run(arguments + (["--input", shape] if shape else [])))["rows"][0]["update_seconds"]


def main():
    cores = len(os.sched_getaffinity(0))
    misses, off = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        files = {(tcp, workers): os.path.join(scratch, f"{tcp}{workers}.json")
                 for tcp in (False, True) for workers in WORKERS}
        models = os.path.join(scratch, "models.json")
        measure_models(MODELS, WORKERS, models)
        for (tcp, workers), path in files.items():
            measure_exchange(workers, tcp, models, path)
        print(f"{'fabric':8} {'model':18} {'workers':>7} {'topology':>9} {'real ms':>9} {'simulated':>9} {'ratio':>6}")
        for tcp in (False, True):
            for model, batch in MODELS:
                for workers in WORKERS:
                    for topology in ("ring", "halving") if model != "url-like" else ("ring",):  # rows go one way
                        seconds = statistics.median(real(model, batch, workers, tcp, topology) for _ in range(RUNS))
                        guess = simulated(model, batch, workers, files[tcp, workers], topology)
                        ratio = guess / seconds
                        off.append(abs(ratio - 1))
                        missed = off[-1] > (WITHIN if workers <= cores else WITHIN_CROWDED)
                        misses += missed
                        print(f"{'tcp' if tcp else 'threads':8} {model:18} {workers:7} {topology:>9} {seconds * 1e3:9.2f} "
                              f"{guess * 1e3:9.2f} {ratio:6.2f}{' !' if missed else ''}", flush=True)
    mean = statistics.mean(off)
    print(f"mean distance {100 * mean:.0f} %, {misses} of {len(off)} out of bounds")
    sys.exit(1 if misses or mean > MEAN_WITHIN else 0)


if __name__ == "__main__":
    main()
