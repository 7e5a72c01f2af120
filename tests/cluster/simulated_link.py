#!/usr/bin/python3 -B
"""How near simulated times come to real ones between hosts: an update of several models by three workers, each a host of
its own (a network namespace) whose card sends 100 Mbit/s or 1 Gbit/s. What computing costs while three share this machine,
and what messages cost, is measured first; links are simulated as they are described. Fails when a time is out of the
bounds that docs/simulation.md states."""
import json
import os
import statistics
import sys

from cluster import Hosts, arguments, enter, last_line, run, scratch

NAMES = ["alpha", "beta", "gamma"]
MODELS = [("url-like", 510), ("mlp", 129), ("lenet5", 63), ("googlenet:3x96x96", 15)]
RATES = {"100mbit": (0.1, "1mbit"), "1gbit": (1.0, "1mbit")}  # and what may pass at once
WITHIN, WITHIN_CROWDED, MEAN_WITHIN = 0.25, 0.35, 0.15


def must(command, limit_s=600):
    done = run(command, limit_s)
    if done.code != 0:
        sys.exit("%s: %s" % (" ".join(map(str, done.command)), last_line(done.err)))
    return done


def calibrate(program, cores):
    rows = ",".join(str(rows) for rows in sorted({batch // len(NAMES) for _, batch in MODELS}))
    must([program, "launch", "-n", max(2, len(NAMES)), "--", "bench", "--calibrate", "here.json", "--no-shared-memory",
          "--model", ",".join(model for model, _ in MODELS), "--rows", rows, "--at-once", len(NAMES), "--seconds", 0.3])
    with open("here.json") as file:
        measured = json.load(file)
    return measured["platform"]


def describe(platform, gbit):
    """The measured machine three times over, with links as tc makes them; costs are those of three that share it."""
    changed = {"nodes": len(NAMES), "cores": 1, "topology": '"star"', "link-gbit": gbit, "link-us": 25, "share": 0.95}
    lines = [line for line in platform.splitlines() if line.partition("=")[0].strip() not in changed]
    with open("hosts.toml", "w") as file:
        file.write("\n".join(lines + ["%s = %s" % item for item in changed.items()]) + "\n")


def main():
    parser = arguments(__doc__, 1800)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each real update (%(default)s)")
    options = parser.parse_args()
    program = enter(options)
    cores = len(os.sched_getaffinity(0))
    off, misses = [], 0
    with scratch() as directory:
        platform = calibrate(program, cores)
        hosts = Hosts(directory, NAMES)
        for rate, (gbit, burst) in RATES.items():
            hosts.shape(rate, burst)
            describe(platform, gbit)
            for model, batch in MODELS:
                name, _, shape = model.partition(":")
                real = statistics.median(
                    must([program, "launch", "-H", ",".join(NAMES), "--ssh", hosts.ssh, "--", "bench", "step", "--model",
                          model, "--batch", batch, "--threads", len(NAMES), "--topology", "ring", "--steps", 5,
                          "--json"]).json()["update_seconds"] for _ in range(options.rounds))
                guess = must([program, "simulate", "--platform", "hosts.toml", "--calibration", "here.json", "--nodes",
                              len(NAMES), "--model", name, "--batch", batch, "--topology", "ring", "--json"] +
                             (["--input", shape] if shape else [])).json()["rows"][0]["update_seconds"]
                off.append(abs(guess / real - 1))
                missed = off[-1] > (WITHIN if len(NAMES) <= cores else WITHIN_CROWDED)
                misses += missed
                print("%-8s %-18s real %9.2f ms, simulated %9.2f ms, ratio %.2f%s" % (
                    rate, model, real * 1e3, guess * 1e3, guess / real, " !" if missed else ""), flush=True)
    mean = statistics.mean(off)
    print("mean distance %.0f %%, %d of %d out of bounds" % (100 * mean, misses, len(off)))
    sys.exit(1 if misses or mean > MEAN_WITHIN else 0)


main()
