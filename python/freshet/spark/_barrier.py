"""What a task of the barrier stage does: it starts a native worker, hands it its rows, and brings it together with others.

This runs where Spark's executors are; nothing of pyspark.ml is needed there.
"""
import contextlib
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time

SCHEMA = "model binary, told string"


class Worker:
    """A worker process (freshet._worker) and what is said to it."""

    def __init__(self, rank):
        self._rank = rank
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen([sys.executable, "-m", "freshet._worker"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
        self._writer = None

    def send(self, batch):
        import pyarrow.ipc
        with self._spoken_to():
            if self._writer is None:
                self._writer = pyarrow.ipc.new_stream(self._process.stdin, batch.schema)
            self._writer.write_batch(batch)

    def end_of_rows(self, schema):
        """No row follows. What those were."""
        import pyarrow.ipc
        with self._spoken_to():
            if self._writer is None:
                self._writer = pyarrow.ipc.new_stream(self._process.stdin, schema)
            self._writer.close()
        return self.hear()

    def order(self, order):
        with self._spoken_to():
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def hear(self):
        """Its next word."""
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        return json.loads(line)

    def bytes(self, count):
        return self._process.stdout.read(count)

    @contextlib.contextmanager
    def _spoken_to(self):
        try:
            yield
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def _fail(self):
        code = self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}; what it said is in stderr"
        raise RuntimeError(f"the worker of rank {self._rank} {how}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _classes(accounts):
    """Labels are 0, 1, …, up to the largest that anybody has."""
    for rank, account in enumerate(accounts):
        least, most, whole = account["labels"]
        if not whole or least < 0:
            raise ValueError(f"labels of rank {rank} go from {least} to {most}, expected whole numbers from 0 on, one for "
                             "each class; StringIndexer makes them")
    count = int(max(account["labels"][1] for account in accounts)) + 1
    if count < 2:
        raise ValueError("all labels are 0, expected at least two classes")
    if count > 100_000:
        raise ValueError(f"labels up to {count - 1}, expected classes numbered from 0 on, at most 100,000; StringIndexer "
                         "makes them")
    return [str(label) for label in range(count)]


def decide(accounts, job):
    """What all do with their rows, as follows from what rows all have: the same for each."""
    empty = [rank for rank, account in enumerate(accounts) if account["rows"] == 0]
    if empty:
        raise ValueError(f"{len(empty)} of {len(accounts)} workers have no rows (rank {empty[0]}); use fewer (numWorkers), or "
                         "repartitioning='always'")
    widths = sorted({account["width"] for account in accounts})
    if len(widths) > 1:
        raise ValueError(f"rows of {widths[0]} and of {widths[-1]} features; all rows need as many")
    numbers = sum(account["rows"] * account["width"] for account in accounts)
    entries = sum(account["entries"] for account in accounts)
    sparse = any(account["sparse"] for account in accounts) and entries * 10 <= numbers
    options, classes = dict(job["options"]), _classes(accounts) if job["classifies"] else None
    if len(accounts) == 1:
        for name in ("split", "batch_per_worker"):
            options.pop(name, None)
    if job["checkpoint_dir"]:
        rows = json.dumps([options, [account["digest"] for account in accounts]], sort_keys=True)
        name = hashlib.blake2b(rows.encode(), digest_size=12).hexdigest()
        options.update(checkpoint=os.path.join(job["checkpoint_dir"], f"freshet-{name}.ckpt"),
                       checkpoint_seconds=job["checkpoint_seconds"])
    return {"options": options, "sparse": sparse, "classes": classes, "threads": job["threads"],
            "resumes": os.path.exists(options.get("checkpoint", ""))}


def _remove(checkpoint):
    for name in os.listdir(os.path.dirname(checkpoint)):
        if name.startswith(os.path.basename(checkpoint)):
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(os.path.dirname(checkpoint), name))


def _told(text):
    import pyarrow as pa
    return pa.RecordBatch.from_pydict({"model": [None], "told": [text]},
                                      schema=pa.schema([("model", pa.binary()), ("told", pa.string())]))


def _answer(model, report):
    import pyarrow as pa
    return pa.RecordBatch.from_pydict({"model": [model], "told": [json.dumps({"report": report})]},
                                      schema=pa.schema([("model", pa.binary()), ("told", pa.string())]))


def _meeting_place(host):
    """Where rank 0 will listen, and what members know each other by. Ports below 32,000 are not given to outgoing connections, so
    that one which is free now will be free in a moment."""
    for _ in range(100):
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.closing(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)) as probe:
            with contextlib.suppress(OSError):
                probe.bind((host.strip("[]"), port))
                return {"rendezvous": f"{host}:{port}", "token": secrets.token_hex(32), "job": f"spark-{secrets.token_hex(8)}"}
    raise RuntimeError(f"no port from 20000 to 31999 is free at {host}, where workers were to meet")


def _gather(context, text, patience):
    """What all tasks say, by rank. Spark itself would wait for a year, also for a task that it has given to an executor which is
    gone and never heard of again; when this one fails in its stead, the stage is tried again."""
    said, failed = [], []
    def ask():
        try:
            said.extend(context.allGather(text))
        except BaseException as problem:  # it is raised where it is waited for
            failed.append(problem)
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(patience)
    if failed:
        raise failed[0]
    if asking.is_alive():
        raise TimeoutError(f"for {patience:.0f} s not all tasks of this stage have come to have their rows; if some need so much "
                           "longer than others, give a larger joinTimeout")
    return said


def work(job, columns):
    """The function for mapInArrow: of rank 0 comes the model, of whose worker gave up what it said. The task fails only if its
    worker was ended by somebody else."""
    def run(batches):
        import pyarrow as pa
        from pyspark import BarrierTaskContext
        context = BarrierTaskContext.get()
        rank = context.partitionId()
        begun = time.monotonic()
        with Worker(rank) as worker:
            for batch in batches:
                if len(batch):
                    worker.send(batch)
            account = worker.end_of_rows(pa.schema([(name, pa.null()) for name in columns]))
            infos = context.getTaskInfos()
            if rank == 0 and len(infos) > 1:
                account["meeting"] = _meeting_place(infos[0].address.rsplit(":", 1)[0])
            # The one time that tasks wait for each other: a task that waits in a barrier when another fails takes its whole
            # executor with it, and each costs a second.
            patience = job["join_timeout"] + 10 * (time.monotonic() - begun)  # others may have more rows, or be slower
            accounts = [json.loads(text) for text in _gather(context, json.dumps(account), patience)]
            wrong = next((one["text"] for one in accounts if "error" in one), None)
            try:
                order = None if wrong else decide(accounts, job)
            except ValueError as problem:
                wrong = str(problem)
            if wrong:
                if rank == 0:
                    yield _told(json.dumps({"error": "bad-input", "text": wrong}))
                return
            if len(infos) > 1:
                order["place"] = {"rank": rank, "world": len(infos), "join_timeout": job["join_timeout"], "tls": job["tls"],
                                  **accounts[0]["meeting"]}
            worker.order(order)
            last = worker.hear()
            if "error" in last:
                yield _told(json.dumps(last))
            elif rank == 0:
                model = worker.bytes(last["model"])
                if "checkpoint" in order["options"]:
                    _remove(order["options"]["checkpoint"])
                yield _answer(model, {**last["report"], "resumed": order["resumes"]})

    return run
