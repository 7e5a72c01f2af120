#!/usr/bin/python3
"""What a ring of workers that each hold a part of a network aims at, beside all-reduce and a parameter server: the same
model, rows and machines in one run. First processes on this machine (2, 4, 8), then simulated nodes (8 to 256).
Prints Markdown (docs/ring.md); exits with 1 where an aim is missed.

  bench/ring_aims.py [--build build/release] [--most 256]

- equal convergence: the loss of all ways is the same to half a per cent;
- no weights travel in a step: a member of the ring sends what crosses its edges, rows x numbers x 4 bytes there and back,
  and less than two per cent more to tell of it;
- a member sends as much however many there are, where at the one server the busiest link has more with every worker."""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, LAYERS, BATCH, MICRO, NUMBERS, ROWS = 256, 24, 64, 16, 32, 2048
MOST_SERVED = 32  # by one server, which is slow to simulate
WAYS = {
    "ring": ["--strategy", "ring", "--micro", str(MICRO)],
    "allreduce": ["--strategy", "allreduce", "--topology", "ring"],
    "server": ["--strategy", "server", "--synchrony", "bsp", "--servers", "1"],
}
missed = []


def check(truth, text):
    if not truth:
        missed.append(text)
        print("MISSED " + text, file=sys.stderr)


def network(layers, classes):
    """A chain, so that every cut crosses the same."""
    hidden = '  {dense = %d, activation = "tanh"},\n' % WIDTH
    return "input = [%d]\nlayers = [\n%s  {dense = %s},\n]\n" % (NUMBERS, hidden * layers, classes)


def write_rows(path):
    draw = random.Random(1)
    with open(path, "w") as file:
        for row in range(ROWS):
            label = row % 4
            numbers = [draw.gauss(0, 1) + (k % 4 == label) for k in range(NUMBERS)]
            file.write(",".join("%.3f" % number for number in numbers) + ",%d\n" % label)


def freshet(program, *arguments, cwd):
    done = subprocess.run([program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit("ring_aims.py: freshet %s: %s" % (" ".join(map(str, arguments)), done.stderr[-500:]))
    return json.loads(done.stdout)


def megabytes(number):
    return "%.2f" % (number / 1e6)


def on_this_machine(program, directory):
    (directory / "chain.toml").write_text(network(LAYERS, '"classes"'))
    write_rows(directory / "rows.csv")
    edge = 2 * BATCH * WIDTH * 4  # there and back
    print("| way | workers | idle | a member sends in a step, MB | the busiest | log loss |")
    print("|---|---:|---:|---:|---:|---:|")
    losses = []
    for workers in [2, 4, 8]:
        for way, flags in WAYS.items():
            processes = workers + (1 if way == "server" else 0)
            result = freshet(program, "launch", "-n", processes, "--", "train", "rows.csv", "--model", "chain.toml",
                             "--batch", BATCH, "--epochs", 1, "--threads", 1, "--rate", 0.01, "--quiet", "--json",
                             "--no-shared-memory", *flags, cwd=directory)
            lines = result["workers"]
            steps = ROWS // BATCH
            sent = [(each["bytes_next"] + each["bytes_back"] if way == "ring" else each["bytes_sent"]) / steps
                    for each in lines]
            busy = [each for each in lines if each["rows"] > 0]
            idle = [each["wait"] / max(sum(each[part] for part in
                                           ["read", "compute", "wait", "exchange", "apply"]), 1e-9) for each in busy]
            losses.append(result["progressive"]["log_loss"])
            print("| %s | %d | %.0f %% | %s | %s | %.4f |" % (
                way, workers, 100 * sum(idle) / len(idle), megabytes(sum(sent) / len(sent)), megabytes(max(sent)),
                losses[-1]), flush=True)
            if way == "ring":
                most = edge if workers > 2 else edge / 2
                check(max(sent) < 1.02 * most, "%d workers: a member of the ring sends %d bytes in a step, of which its "
                      "edges are %d" % (workers, max(sent), most))
    check(max(losses) < 1.005 * min(losses), "losses differ: %s" % losses)


def in_simulated_time(program, directory, most):
    layers = max(LAYERS, 2 * most)  # for two of them on each
    (directory / "long.toml").write_text(network(layers, 4))
    nodes = [n for n in [8, 16, 32, 64, 128, 256] if n <= most]
    print("\n| way | nodes | idle | a node sends in an update, MB | the busiest link, MB | updates/s |")
    print("|---|---:|---:|---:|---:|---:|")
    busiest = {}
    for way, flags in WAYS.items():
        for count in nodes:
            if way == "server" and count > MOST_SERVED:
                continue
            batch = max(BATCH, count)
            result = freshet(program, "simulate", "--platform", "ethernet-10g", "--model", "long.toml", "--batch", batch,
                             "--nodes", count, "--json", *flags, cwd=directory)
            row = result["rows"][0]
            spent = sum(row[part] for part in ["read", "compute", "wait", "exchange", "apply"])
            link = max(each["bytes"] for each in row["links"]) * row["update_seconds"] / row["simulated_seconds"]
            busiest[way, count] = link / batch * BATCH
            print("| %s | %d | %.0f %% | %s | %s | %.1f |" % (
                way, count, 100 * row["wait"] / spent, megabytes(row["bytes_sent"]), megabytes(link),
                1 / row["update_seconds"]), flush=True)
    for count in nodes:
        check(busiest["ring", count] < 1.15 * busiest["ring", nodes[0]],
              "%d nodes: the busiest link of the ring has %d bytes, of %d nodes %d" %
              (count, busiest["ring", count], nodes[0], busiest["ring", nodes[0]]))
    served = [count for count in nodes if count <= MOST_SERVED]
    check(busiest["server", served[-1]] > 0.8 * served[-1] / served[0] * busiest["server", served[0]],
          "the busiest link of the server does not grow with its workers")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "release")
    parser.add_argument("--most", type=int, default=256, help="simulated nodes (%(default)s)")
    options = parser.parse_args()
    program = options.build.resolve() / "apps" / "freshet" / "freshet"
    with tempfile.TemporaryDirectory() as directory:
        on_this_machine(program, pathlib.Path(directory))
        in_simulated_time(program, pathlib.Path(directory), options.most)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
