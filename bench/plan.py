#!/usr/bin/env python3
"""How good the planner's first choice is: on three platforms beside the best of an exhaustive search over the same choices,
and on this machine beside the fastest way that was really measured. Exits with 1 when it is more than a tenth slower."""

import json
import os
import statistics
import sys
import tempfile

from simulation import measure_exchange, measure_models, real, run

WITHIN = 1.10
PLATFORMS = [
    ["--platform", "ethernet-10g", "--nodes", "8", "--model", "alexnet", "--batch", "512", "--codecs", "none,fp16,int8"],
    ["--platform", "laptop-cluster", "--nodes", "6", "--model", "lenet5", "--batch", "192", "--strategies",
     "allreduce,average", "--every", "4"],
    ["--platform", "marenostrum3", "--nodes", "8", "--model", "googlenet", "--batch", "256"],
]
HERE = [("mlp", 128, 2), ("lenet5", 64, 2), ("googlenet:3x96x96", 16, 2)]
TOPOLOGIES = ["ring", "halving", "tree", "direct", "central"]
RUNS = 5


def plans(arguments):
    return json.loads(run(["plan", "--json"] + arguments))["plans"]


def on_platforms():
    worst = 0
    for arguments in PLATFORMS:
        chosen, best = plans(arguments)[0], plans(arguments + ["--exhaustive"])[0]
        ratio = best["rows_per_second"] / chosen["rows_per_second"]
        worst = max(worst, ratio)
        print(f"{arguments[1]:16} {arguments[5]:10} chosen {chosen['topology']}, {chosen['codec']}, "
              f"{chosen['bucket']} bytes: {ratio:.3f} times the best of all", flush=True)
    return worst


def on_this_machine(scratch):
    worst = 0
    models, path = os.path.join(scratch, "models.json"), os.path.join(scratch, "here.json")
    measure_models([(model, batch) for model, batch, _ in HERE], {workers for _, _, workers in HERE}, models)
    for tcp in (False, True):
        for model, batch, workers in HERE:
            name, _, shape = model.partition(":")
            measure_exchange(workers, tcp, models, path)
            ranked = plans(["--calibration", path, "--nodes", "1", "--workers-per-node", str(workers), "--model", name,
                            "--batch", str(batch), "--topologies", ",".join(TOPOLOGIES)] +
                           (["--input", shape] if shape else []))
            chosen = ranked[0]
            ways = {(chosen["topology"], chosen["bucket"])} | {(topology, 4 << 20) for topology in TOPOLOGIES}
            times = {way: [] for way in ways}
            for _ in range(RUNS):  # taking turns
                for topology, bucket in ways:
                    times[topology, bucket].append(real(model, batch, workers, tcp, topology, bucket))
            medians = {way: statistics.median(seconds) for way, seconds in times.items()}
            best = min(medians, key=medians.get)
            mine = (chosen["topology"], chosen["bucket"])
            ratio = medians[mine] / medians[best]
            worst = max(worst, ratio)
            print(f"{'tcp' if tcp else 'threads':8} {model:18} chosen {mine[0]}, {mine[1]} bytes: "
                  f"{medians[mine] * 1e3:.2f} ms, {ratio:.2f} times the best measured, {best[0]}", flush=True)
    return worst


def main():
    described = on_platforms()
    with tempfile.TemporaryDirectory() as scratch:
        measured = on_this_machine(scratch)
    print(f"at worst {described:.3f} on platforms, {measured:.2f} here, of {WITHIN}")
    sys.exit(1 if max(described, measured) > WITHIN else 0)


if __name__ == "__main__":
    main()
