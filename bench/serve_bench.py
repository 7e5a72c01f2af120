#!/usr/bin/python3
"""The server as its clients meet it: requests per second beside nginx, the time of answers while it trains, observations
per second, and how soon a prediction knows what was learned. Prints Markdown; docs/benchmarks.md explains the tables.

  bench/serve_bench.py [--rounds 5] [--seconds 3] [--latency-seconds 20] [--build build/release] [--tiny]

Client and server share the machine. What is compared is measured in turn, round after round; reported are medians, and
the median of the rounds' ratios. Every section checks answers. Needs wrk and nginx; FastAPI with scikit-learn joins in
when build/serve-venv has them. --tiny: a few seconds, for the tests; without wrk or nginx it ends with 77."""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from peers import print_table, verdict
from serve_http import NGINX, free_port

HERE = pathlib.Path(__file__).resolve().parent
FEATURES, BATCH = 28, 100
SECTION_HEAD = ["what", "median", "low – high", "target", ""]


def say(text):
    print(text, file=sys.stderr, flush=True)


def check(truth, text):
    if not truth:
        sys.exit("serve_bench.py: " + text)


def json_of(value):
    return json.dumps(value, separators=(",", ":")).encode()


class Server:
    """`freshet serve` with models in a directory of its own."""

    def __init__(self, freshet, directory, *arguments):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
        self.process = subprocess.Popen(
            [str(freshet), "serve", "--listen", "127.0.0.1:0", "--json", "--threads", "2", "--state",
             str(self.directory / "state"), *map(str, arguments)], stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        check(line, "the server did not start")
        self.port = json.loads(line)["port"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        shutil.rmtree(self.directory)

    def connect(self):
        return Client(self.port)

    def stats(self, model):
        with self.connect() as client:
            return client.get("/v2/models/%s/stats" % model)


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def get(self, path):
        self.connection.request("GET", path)
        return json.loads(self.connection.getresponse().read())

    def post(self, path, body):
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        check(answer.status == 200, "%s: %d %s" % (path, answer.status, text[:300]))
        return json.loads(text)


class Bodies:
    """Requests made of the first rows of a table of 28 numbers and a label, as files and as scripts for wrk."""

    def __init__(self, table, directory):
        lines = table.read_text().splitlines()[1:BATCH + 1]
        self.rows = [[float(cell) for cell in line.split(",")] for line in lines]
        self.directory = pathlib.Path(directory)
        self.infer = json_of({"inputs": [self.numbers(1)]})
        self.learn_one = json_of({"inputs": [self.numbers(1), self.labels(1)]})
        self.learn = json_of({"inputs": [self.numbers(BATCH), self.labels(BATCH)]})
        self.binary_head = json_of({"inputs": [self.binary("x", [BATCH, FEATURES], "FP32", 4),
                                               self.binary("labels", [BATCH], "INT64", 8)]})
        self.learn_binary = (self.binary_head + b"".join(struct.pack("<28f", *row[:FEATURES]) for row in self.rows)
                             + struct.pack("<%dq" % BATCH, *(int(row[FEATURES]) for row in self.rows)))

    def numbers(self, count):
        return {"name": "x", "shape": [count, FEATURES], "datatype": "FP32",
                "data": [cell for row in self.rows[:count] for cell in row[:FEATURES]]}

    def labels(self, count):
        return {"name": "labels", "shape": [count], "datatype": "INT64",
                "data": [int(row[FEATURES]) for row in self.rows[:count]]}

    @staticmethod
    def binary(name, shape, datatype, size):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        return {"name": name, "shape": shape, "datatype": datatype, "parameters": {"binary_data_size": count * size}}

    def file(self, name, body):
        path = self.directory / name
        path.write_bytes(body)
        return path

    def script(self, name, body, json_bytes=None):
        """For wrk: posts this body."""
        path = self.file(name, body)
        headers = {"Content-Type": "application/octet-stream" if json_bytes else "application/json"}
        if json_bytes:
            headers["Inference-Header-Content-Length"] = str(json_bytes)
        lines = ["wrk.method = 'POST'", "local file = io.open('%s', 'rb')" % path, "wrk.body = file:read('*a')"]
        lines += ["wrk.headers['%s'] = '%s'" % header for header in headers.items()]
        return self.file(name + ".lua", "\n".join(lines).encode())


def wrk(port, path, script, seconds, threads=2, connections=32):
    """Requests per second; every answer was 200."""
    text = subprocess.run(["wrk", "-t%d" % threads, "-c%d" % connections, "-d%ds" % seconds, "-s", str(script),
                           "http://127.0.0.1:%d%s" % (port, path)], check=True, stdout=subprocess.PIPE, text=True).stdout
    check("Non-2xx" not in text and "Socket errors" not in text, "wrk saw errors:\n" + text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))


@contextlib.contextmanager
def nginx(directory, answer):
    """nginx with two workers and a constant answer; its port."""
    port = free_port()
    settings = pathlib.Path(directory, "nginx.conf")
    settings.write_text(NGINX % dict(threads=2, directory=directory, port=port, answer=answer))
    process = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(settings), "-e",
                                str(pathlib.Path(directory, "start.log"))])
    try:
        await_port(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def await_port(port, seconds=20):
    for _ in range(seconds * 20):
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).connect()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("serve_bench.py: nobody answers on port %d" % port)


def row(what, values, shown, target="", met=None):
    spread = "%s – %s" % (shown(min(values)), shown(max(values))) if len(values) > 1 else ""
    return [what, shown(statistics.median(values)), spread, target, "" if met is None else verdict(met)]


def per_second(value):
    return "{:,.0f}/s".format(value)


def times(value):
    return "%.2f ×" % value


def share(value):
    return "%.0f %%" % (100 * value)


def milliseconds(value):
    return "%.2f ms" % (value / 1000)


# Requests per second.

@contextlib.contextmanager
def fastapi(flags, table, directory):
    """scikit-learn behind FastAPI with two workers: its port; None when it is not to be had."""
    python = flags.work.parent / "serve-venv/bin/python"
    if not python.exists() or subprocess.run([str(python), "-c", "import fastapi, uvicorn, sklearn"],
                                             capture_output=True).returncode != 0:
        print("NOTE FastAPI, uvicorn and scikit-learn are not in build/serve-venv: that peer is left out\n")
        yield None
        return
    port = free_port()
    process = subprocess.Popen([str(python), str(HERE / "peer_fastapi.py"), str(table), str(port), str(directory)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_port(port, 60)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def requests(flags, freshet, table, model, bodies, directory):
    script = bodies.script("infer.json", bodies.infer)
    path = "/v2/models/m/infer"
    with Server(freshet, directory, "m=%s" % model, "--method", "baseline") as server, server.connect() as client, \
            fastapi(flags, table, directory) as peer:
        answer = client.post(path, bodies.infer)
        expected = subprocess.run([str(freshet), "predict", "-i", str(model), str(table)], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.split("\n", 1)[0]
        check(abs(answer["outputs"][0]["data"][0] - float(expected)) < 1e-6, "infer and predict disagree: %s" % answer)
        ours, theirs, peers = [], [], []
        with nginx(directory, json_of(answer).decode().replace("'", "")) as port:
            for _ in range(flags.rounds):
                theirs.append(wrk(port, "/", script, flags.seconds))
                ours.append(wrk(server.port, path, script, flags.seconds))
                if peer:
                    peers.append(wrk(peer, path, script, flags.seconds))
    ratios = [one / other for one, other in zip(ours, theirs)]
    rows = [row("requests, freshet", ours, per_second), row("requests, nginx, a constant answer", theirs, per_second),
            row("freshet as a share of nginx", ratios, share, "≥ 55 %", statistics.median(ratios) >= 0.55)]
    if peers:
        rows.append(row("requests, scikit-learn behind FastAPI", peers, per_second))
        rows.append(row("freshet as a multiple of that", [one / other for one, other in zip(ours, peers)], times))
    print_table("Predictions of single rows", SECTION_HEAD, rows)
    return statistics.median(ours)


# Answers while it trains.

class Stream(threading.Thread):
    """Sends observations, twenty batches a second."""

    def __init__(self, server, body):
        super().__init__()
        self.server, self.body, self.stopped = server, body, threading.Event()
        self.sent = 0

    def run(self):
        with self.server.connect() as client:
            while not self.stopped.wait(0.05):
                self.sent += client.post("/v2/models/m/learn", self.body)["accepted"]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


def steps_per_second(server, seconds, during):
    """Steps of SGD in iterations while something is done that takes about so long; and what that returned."""
    before, begun = server.stats("m")["training"]["steps"], time.monotonic()
    result = during()
    while time.monotonic() - begun < seconds:
        time.sleep(0.05)
    steps = server.stats("m")["training"]["steps"] - before
    return steps / (time.monotonic() - begun), result


def latency(flags, freshet, model, bodies, directory, rate):
    body = bodies.file("infer.json", bodies.infer)
    seconds = max(1, flags.latency_seconds / flags.rounds)

    def open_loop(server):
        text = subprocess.run([str(flags.build / "bench/open_loop"), "--port", str(server.port), "--rate", "%.0f" % rate,
                               "--seconds", "%.1f" % seconds, "--path", "/v2/models/m/infer", "--body", str(body)],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(text)

    quiet, training, alone, under = [], [], [], []
    # Always at it: whenever nothing else wants the processor it goes over the whole history once more.
    hard = ["--buffer", "500", "--idle", "--recipe", "paper", "--sampling-rate", "1"]
    history = 10 if flags.tiny else 1000  # batches
    for _ in range(flags.rounds):
        with Server(freshet, directory, "m=%s" % model, "--method", "baseline") as server:
            quiet.append(open_loop(server))
        with Server(freshet, directory, "m=%s" % model, *hard) as server:
            with server.connect() as client:
                for _ in range(history):
                    client.post("/v2/models/m/learn", bodies.learn)
            with Stream(server, bodies.learn):
                time.sleep(1)
                alone.append(steps_per_second(server, seconds, lambda: None)[0])
                steps, result = steps_per_second(server, seconds, lambda: open_loop(server))
            training.append(result)
            under.append(steps)
            stats = server.stats("m")
            check(stats["training"]["iterations"] > 0 and stats["learning"]["problem"] == "", "no iterations: %s" % stats)
    failed = sum(result["failed"] for result in quiet + training)
    for result in [] if flags.tiny else quiet + training:
        check(result["sent"] >= 0.99 * rate * seconds, "the schedule was not kept: %s" % result)
    slower = [one["p99_us"] / other["p99_us"] for one, other in zip(training, quiet)]
    kept = [one / other for one, other in zip(under, alone) if other > 0] or [0.0]
    rows = [row("p50, not trained", [result["p50_us"] for result in quiet], milliseconds),
            row("p99, not trained", [result["p99_us"] for result in quiet], milliseconds),
            row("p50, trained all the time", [result["p50_us"] for result in training], milliseconds),
            row("p99, trained all the time", [result["p99_us"] for result in training], milliseconds),
            row("p99, trained by not trained", slower, times, "≤ 1.5 ×", statistics.median(slower) <= 1.5),
            row("steps of training, without predictions", alone, per_second),
            row("steps of training, under predictions", under, per_second),
            row("steps, with by without", kept, times, "≥ 0.5 ×", statistics.median(kept) >= 0.5),
            ["failed requests", str(failed), "", "0", verdict(failed == 0)]]
    print_table("Predictions while it trains, %s open loop" % per_second(rate), SECTION_HEAD, rows)


# Observations.

def observations(flags, freshet, model, bodies, directory):
    path, found = "/v2/models/m/learn", {"JSON": [], "binary": []}
    scripts = {"JSON": bodies.script("learn.json", bodies.learn),
               "binary": bodies.script("learn.bin", bodies.learn_binary, len(bodies.binary_head))}
    for _ in range(flags.rounds):
        for kind, script in scripts.items():
            with Server(freshet, directory, "m=%s" % model, "--durability", "everysec") as server:
                rate = BATCH * wrk(server.port, path, script, flags.seconds, threads=1, connections=4)
                time.sleep(0.2)
                kept = server.stats("m")["learning"]["observations"]
            check(kept >= 0.95 * rate * flags.seconds, "%d rows kept at %.0f/s" % (kept, rate))
            found[kind].append(rate)
    rows = [row("everysec, batches of 100, %s, 4 connections" % kind, values, per_second, "≥ 200,000/s",
                statistics.median(values) >= 200_000) for kind, values in found.items()]

    script = bodies.script("one.json", bodies.learn_one)
    raw, ours, one = [], [], []
    for _ in range(flags.rounds):
        with Server(freshet, directory, "m=%s" % model, "--durability", "always") as server:
            with server.connect() as client:
                before = server.stats("m")["learning"]["journal_bytes"]
                check(client.post(path, bodies.learn_one)["durable"] is True, "not durable")
                time.sleep(0.1)
                record = max(64, server.stats("m")["learning"]["journal_bytes"] - before)
            raw.append(durable_appends(server.directory, min(record, 4096), flags.seconds))
            one.append(wrk(server.port, path, script, flags.seconds, threads=1, connections=1))
            ours.append(wrk(server.port, path, script, flags.seconds, threads=1, connections=16))
    ratios = [mine / alone for mine, alone in zip(ours, raw)]
    rows += [row("always, single rows, 16 connections", ours, per_second),
             row("always, single rows, 1 connection", one, per_second),
             row("write and fdatasync of one such record, in a loop", raw, per_second),
             row("16 connections by that loop", ratios, times, "≥ 3 ×", statistics.median(ratios) >= 3)]
    print_table("Observations acknowledged", SECTION_HEAD, rows)


def durable_appends(directory, record_bytes, seconds):
    path, count, begun = pathlib.Path(directory, "appends"), 0, time.monotonic()
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    record = b"x" * record_bytes
    while time.monotonic() - begun < seconds:
        os.write(descriptor, record)
        os.fdatasync(descriptor)
        count += 1
    os.close(descriptor)
    path.unlink()
    return count / (time.monotonic() - begun)


# How soon a prediction knows.

def visibility(flags, freshet, model, bodies, directory, rate):
    """Acknowledged, then asked for on another connection until an answer comes from a version that has it, while others
    predict and teach."""
    ratings = directory / "ratings.dat"
    subprocess.run([str(freshet), "data", "generate", "--kind", "ratings", "--rows", "20000", "-o", str(ratings)],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(freshet), "train", str(ratings), "-o", str(directory / "r.model"), "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)

    def texts(name, values):
        return {"name": name, "shape": [len(values)], "datatype": "BYTES", "data": values}

    def rating(n):
        inputs = [texts("user", ["new %d" % (n // 10)]), texts("item", [str(n % 300)])]
        label = {"name": "labels", "shape": [1], "datatype": "FP32", "data": [1 + n % 5]}
        return {"inputs": inputs}, {"inputs": inputs + [label]}

    def sparse(n):
        inputs = [{"name": "indptr", "shape": [2], "datatype": "INT64", "data": [0, 3]},
                  {"name": "indices", "shape": [3], "datatype": "INT64", "data": [1 + n % 1000, 2000 + n % 7, 5000 + n]},
                  {"name": "values", "shape": [3], "datatype": "FP32", "data": [1, 1, 0.5]}]
        label = {"name": "labels", "shape": [1], "datatype": "INT64", "data": [n % 2]}
        return {"inputs": inputs}, {"inputs": inputs + [label]}

    rows = []
    count = 50 if flags.tiny else 1000
    body = bodies.file("infer.json", bodies.infer)
    with Server(freshet, directory, "m=%s" % model, "r=%s" % (directory / "r.model"), "--cold", "s") as server, \
            Stream(server, bodies.learn), server.connect() as teacher, server.connect() as asker:
        load = subprocess.Popen([str(flags.build / "bench/open_loop"), "--port", str(server.port), "--rate",
                                 "%.0f" % rate, "--seconds", "600", "--path", "/v2/models/m/infer", "--body", str(body)],
                                stdout=subprocess.DEVNULL)
        for name, which, make in (("factorization", "r", rating), ("linear, sparse", "s", sparse)):
            taken = []
            for n in range(count):
                ask, teach = map(json_of, make(n))
                sequence = teacher.post("/v2/models/%s/learn" % which, teach)["sequence"]
                begun = time.perf_counter()
                while int(asker.post("/v2/models/%s/infer" % which, ask)["model_version"]) < sequence:
                    pass
                taken.append(1e6 * (time.perf_counter() - begun))
            taken.sort()
            p99 = taken[int(0.99 * len(taken))]
            rows.append([name, milliseconds(statistics.median(taken)), milliseconds(p99), "p99 ≤ 10 ms",
                         verdict(p99 <= 10_000)])
        load.terminate()
        load.wait()
    print_table("From acknowledgement to a prediction that knows, under load",
                ["model", "median", "p99", "target", ""], rows)


def parse_flags():
    root = HERE.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement [3]")
    parser.add_argument("--latency-seconds", type=float, default=20, help="of the open loop, over all rounds [20]")
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/release")
    parser.add_argument("--freshet", type=pathlib.Path, help="the program [BUILD/apps/freshet/freshet]")
    parser.add_argument("--work", type=pathlib.Path, default=root / "build/bench", help="state, models [build/bench]")
    parser.add_argument("--only", help="of requests, latency, observations, visibility")
    parser.add_argument("--tiny", action="store_true")
    flags = parser.parse_args()
    if flags.tiny:
        flags.rounds = flags.seconds = flags.latency_seconds = 1
    flags.freshet = flags.freshet or flags.build / "apps/freshet/freshet"
    return flags


def print_machine(flags):
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    version = subprocess.run([str(flags.freshet), "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    load = os.getloadavg()[0]
    for name, value in (("cpu", cpu.group(1) if cpu else "unknown"), ("cores", os.cpu_count()),
                        ("freshet", " ".join(version.split())), ("load", "%.1f before we began" % load)):
        print("    %-9s %s" % (name, value))
    print(flush=True)


def main():
    flags = parse_flags()
    if not shutil.which("wrk") or not (shutil.which("nginx") or pathlib.Path("/usr/sbin/nginx").exists()):
        say("wrk and nginx are needed; see scripts/install-deps --bench")
        sys.exit(77 if flags.tiny else 1)
    flags.work.mkdir(parents=True, exist_ok=True)
    print_machine(flags)
    with tempfile.TemporaryDirectory(dir=flags.work) as name:
        directory = pathlib.Path(name)
        table, model = directory / "table.csv", directory / "table.model"
        for command in (["data", "generate", "--kind", "hyperplane", "--features", FEATURES, "--rows", 20000, "-o", table],
                        ["train", table, "-o", model, "--quiet"]):
            subprocess.run([str(flags.freshet), *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        bodies = Bodies(table, directory)

        def wanted(section):
            return not flags.only or section in flags.only.split(",")

        rate = 40_000
        if wanted("requests"):
            rate = requests(flags, flags.freshet, table, model, bodies, directory)
        if wanted("latency"):
            latency(flags, flags.freshet, model, bodies, directory, rate / 2)
        if wanted("observations"):
            observations(flags, flags.freshet, model, bodies, directory)
        if wanted("visibility"):
            visibility(flags, flags.freshet, model, bodies, directory, rate / 4)


if __name__ == "__main__":
    main()
