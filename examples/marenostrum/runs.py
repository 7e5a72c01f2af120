"""How the sweeps run freshet: cases that take turns, each with the numbers of its report, and the data they learn from."""
import dataclasses
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import threading

from images import RECORD_BYTES, write_cifar, write_idx
from nodes import Nodes

DEADLINE_S = 300
MBIT = 100  # of a node's link: 47 ms for cifar-quick's 0.58 MB, a quarter of one core's time for 256 images


@dataclasses.dataclass
class Case:
    """One setting of the knobs. `fields` says which; the rest is how it is run."""
    fields: dict
    data: list
    batch: int
    rows: int
    flags: list = dataclasses.field(default_factory=list)
    model: str = "cifar-quick"
    rate: float = 0.01
    epochs: int = 1
    threads: int = 1
    launch: list = dataclasses.field(default_factory=list)  # launch and its flags, when workers are processes
    before: list = dataclasses.field(default_factory=list)
    feed: object = None  # writes the rows into the standard input it is given

    def command(self, freshet):
        verb = [*self.launch, "--", "train"] if self.launch else ["train"]
        parts = [*self.before, freshet, *verb, *self.data, "--model", self.model, "--optimizer", "sgd",
                 "--rate", self.rate, "--schedule", "constant", "--epochs", self.epochs, "--batch", self.batch, "--threads",
                 self.threads, *self.flags, "--quiet", "--json"]
        return [str(part) for part in parts]

    def updates(self):
        return self.epochs * math.ceil(self.rows / self.batch)


def values(case, report):
    """Numbers of one run. Parts of an update are means over the workers; bytes are those of whoever sends the most."""
    workers, updates, hosts = report.get("workers", []), case.updates(), {}
    seconds = report["train_seconds"]
    result = {"seconds": seconds, "update_seconds": seconds / updates,
              "images_per_second": case.epochs * case.rows / seconds, "waited_for_rows": report["wait_seconds"],
              "parameters": report["parameters"]}
    for part in ("read", "compute", "wait", "exchange", "apply") if workers else ():
        result[part] = statistics.mean(worker[part] for worker in workers) / updates
    for worker in workers:
        hosts[worker["host"]] = hosts.get(worker["host"], 0) + worker["bytes_sent"]
    if workers:
        result["busiest_bytes"] = max(w["bytes_sent"] + w["bytes_shared"] for w in workers) / updates
        result["busiest_link_bytes"] = max(hosts.values()) / updates
        result["least_rows"], result["most_rows"] = min(w["rows"] for w in workers), max(w["rows"] for w in workers)
    if "test" in report:
        result["test_loss"], result["test_error"] = report["test"]["log_loss"], report["test"]["error_rate"]
    return result


def _feed(write, descriptor):
    try:
        with open(descriptor, "wb", buffering=0) as stream:
            write(stream)
    except BrokenPipeError:
        pass  # the reader has ended and says itself why


class Bench:
    """Runs cases of one sweep after another and keeps what they gave under `out`."""

    def __init__(self, freshet, out, quick):
        self.freshet, self.out, self.quick = freshet, out, quick
        self.data = out / "data"
        self.data.mkdir(parents=True, exist_ok=True)

    def nodes(self, count, mbit=MBIT):
        """So many nodes, as long as the `with` lasts."""
        return Nodes(count, mbit, self.out / "nodes")

    def run(self, case, show=True):
        command = case.command(self.freshet)
        if show:
            print("$ " + " ".join("'%s'" % part if " " in part or "*" in part else part for part in command), flush=True)
        rows, feeder = subprocess.DEVNULL, None
        if case.feed:
            rows, end = os.pipe()
            feeder = threading.Thread(target=_feed, args=(case.feed, end))
            feeder.start()
        process = subprocess.Popen(command, stdin=rows, stdout=subprocess.PIPE, text=True)
        if feeder:
            os.close(rows)
        try:
            output, _ = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            sys.exit("sweep: no result after %d s; the machine is busy, or the command above hangs" % DEADLINE_S)
        if feeder:
            feeder.join()
        if process.returncode != 0:
            sys.exit("sweep: the command above ended with %d; its message stands before this one" % process.returncode)
        return values(case, json.loads(output))

    def take_turns(self, cases, rounds=3):
        """All cases once, then all once more, …: the median of each number."""
        taken = [[] for _ in cases]
        for number in range(1 if self.quick else rounds):
            for case, results in zip(cases, taken):
                results.append(self.run(case, show=number == 0))
        return [dict(case.fields, **{name: statistics.median(result[name] for result in results) for name in results[0]})
                for case, results in zip(cases, taken)]

    def keep(self, name, **result):
        (self.out / (name + ".json")).write_text(json.dumps(result, indent=1) + "\n")

    # Data. Files are made once; the same rows have the same names.

    def rows(self, count, seed=1):
        path = self.data / ("images-%d-%d.bin" % (seed, count))
        if not path.exists():
            write_cifar(path, count, seed)
        return path

    def files(self, name, sizes, pack=None):
        """The same rows, cut into files of so many each; a pattern that names them all."""
        folder = self.data / name
        folder.mkdir(exist_ok=True)
        rows, at = self.rows(sum(sizes)).read_bytes(), 0
        for number, size in enumerate(sizes):
            part = rows[at * RECORD_BYTES:(at + size) * RECORD_BYTES]
            (folder / ("part-%04d.bin%s" % (number, ".gz" if pack else ""))).write_bytes(pack(part) if pack else part)
            at += size
        return str(folder / "part-*")

    def idx(self, shape, count):
        name = "%dx%d-%d" % (shape[1], shape[2], count)
        paths = self.data / (name + "-images-idx4-ubyte"), self.data / (name + "-labels-idx1-ubyte")
        if not paths[1].exists():
            write_idx(*paths, shape, count, seed=1)
        return [paths[0], "--label-file", paths[1]]


def weights(path):
    """All numbers of a model file (safetensors), by name."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            tensors[name] = struct.unpack("<%df" % ((end - begin) // 4), data[8 + size + begin:8 + size + end])
    return tensors


def largest_difference(one, other):
    """Of two models, between any two numbers that should be the same."""
    return max(abs(a - b) for name in one for a, b in zip(one[name], other[name], strict=True))
