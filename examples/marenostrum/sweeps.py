"""The sweeps: which cases each consists of. A sweep takes a Bench and keeps out/marenostrum/NAME.json."""
import gzip
import os
import time

from runs import MBIT, Case, largest_difference, weights

BATCHES = (256, 1024)


def average(every, topology):
    return ["--strategy", "average", "--every", every, "--topology", topology]


def all_reduce(topology):
    return ["--strategy", "allreduce", "--topology", topology]


DOCUMENT = average(1, "central")  # its system: DL4J on Spark, parameters averaged by the driver
RING = all_reduce("ring")


def on_one_core():
    return ["taskset", "-c", min(os.sched_getaffinity(0))]


def split(bench):
    """What an image costs one worker by the size b of its split, on one core and on two: the 32 of the document."""
    sizes = (8, 32, 128) if bench.quick else (4, 8, 16, 32, 64, 128, 256, 512, 1024)
    cases = []
    for size in sizes:
        rows = min(max(512, 4 * size), 2048)
        for threads, before in ((1, on_one_core()), (2, [])):
            cases.append(Case({"split": size, "threads": threads}, [bench.rows(rows)], size, rows, ["--workers", 1],
                              threads=threads, before=before))
    bench.keep("split", rows=bench.take_turns(cases, rounds=5))  # two threads of one worker feel whatever else runs


def links(bench):
    """What an exchange takes by the number of nodes: one image for each, so that there is little else."""
    ways = {"average, central": DOCUMENT, "all-reduce, ring": RING, "all-reduce, halving": all_reduce("halving"),
            "all-reduce, ring, fp16": [*RING, "--codec", "fp16"], "all-reduce, ring, 1bit": [*RING, "--codec", "1bit"]}
    result = []
    for mbit in (MBIT, 10 * MBIT):
        for count in (2, 4) if bench.quick else (2, 4, 8, 16, 32):
            rows = count * (6 if count < 16 else 4)
            with bench.nodes(count, mbit) as nodes:
                cases = [Case({"way": way, "nodes": count, "mbit": mbit}, [bench.rows(rows)], count, rows, flags,
                              launch=nodes.launch(1)) for way, flags in ways.items()]
                result += bench.take_turns(cases)
    bench.keep("links", rows=result)


def workers(bench):
    """Processes on this machine that exchange through sockets, each with one thread."""
    ways = {"average, central": DOCUMENT, "average every 3, central": average(3, "central"), "all-reduce, ring": RING}
    cases = []
    for batch in BATCHES[:1] if bench.quick else BATCHES:
        rows = 3 * batch if batch > 256 or bench.quick else 9 * batch
        cases.append(Case({"way": "alone", "workers": 1, "batch": batch}, [bench.rows(rows)], batch, rows,
                          ["--workers", 1]))
        for count in (2,) if bench.quick else (2, 4, 8):
            for way, flags in ways.items():
                cases.append(Case({"way": way, "workers": count, "batch": batch}, [bench.rows(rows)], batch, rows,
                                  [*flags, "--no-shared-memory"], launch=["launch", "-n", count]))
    bench.keep("workers", rows=bench.take_turns(cases), agreement=agreement(bench))


def agreement(bench):
    """How far models of equal settings are from one worker's: of averages of every update, and of all-reduce."""
    together = ["launch", "-n", 4]
    ways = {"alone": (["--workers", 1], []), "average every 1, central": (DOCUMENT, together),
            "all-reduce, ring": (RING, together), "all-reduce, halving": (all_reduce("halving"), together)}
    result = {}
    for updates in (1, 3) if bench.quick else (1, 8):
        rows, models = 256 * updates, {}
        for way, (flags, launch) in ways.items():
            path = bench.data / "agreement.model"
            bench.run(Case({}, [bench.rows(rows)], 256, rows, [*flags, "-o", path], launch=launch))
            models[way] = weights(path)
        alone = models.pop("alone")
        result[updates] = {way: largest_difference(alone, model) for way, model in models.items()}
        print("after %d updates no weight is farther from one worker's than: %s" %
              (updates, "; ".join("%s %.1e" % pair for pair in result[updates].items())), flush=True)
    return result


def frequency(bench):
    """Four nodes behind links of MBIT: how often to meet, and what else helps."""
    rows, epochs = (768, 1) if bench.quick else (3072, 2)
    test = ["--test", bench.rows(1000, seed=2)]
    ways = {("average, " + topology, every): average(every, topology)
            for topology in ("central", "ring") for every in ((1, 3) if bench.quick else (1, 3, 6, 12))}
    ways.update({("all-reduce, ring, no overlap", 1): [*RING, "--no-overlap"],
                 ("all-reduce, ring, overlap", 1): [*RING, "--bucket", 100_000],
                 ("all-reduce, ring, fp16", 1): [*RING, "--codec", "fp16"],
                 ("all-reduce, ring, 1bit", 1): [*RING, "--codec", "1bit"],
                 ("groups of 2, ring", 3): ["--strategy", "groups", "--group", 2, "--every", 3, "--topology", "ring"]})
    with bench.nodes(4) as nodes:
        cases = [Case({"way": way, "every": every}, [bench.rows(rows)], 256, rows, [*flags, *test], epochs=epochs,
                      launch=nodes.launch(1)) for (way, every), flags in ways.items()]
        bench.keep("frequency", rows=bench.take_turns(cases), mbit=MBIT)


def prefetch(bench):
    """A disk that pauses: how many blocks have to be read ahead so that training does not."""
    rows, burst_bytes, pause_s = 1024 if bench.quick else 3072, 2 << 20, 0.15
    images = bench.rows(rows).read_bytes()

    def disk(stream):
        for at in range(0, len(images), burst_bytes):
            time.sleep(pause_s if at > 0 else 0)
            stream.write(images[at:at + burst_bytes])

    # Rows of standard input are seen once, and so not centred: the rate that suits them is a small one.
    flags, rate = ["--format", "cifar10", "--no-shuffle"], 0.0001
    cases = [Case({"depth": depth}, ["-"], 64, rows, [*flags, "--prefetch", depth], rate=rate, threads=2, feed=disk)
             for depth in ((1, 4) if bench.quick else (1, 2, 4, 8, 16, 32))]
    alone = Case({"depth": 0}, ["-"], 64, rows, flags, rate=rate, feed=disk)  # who computes alone reads in between
    steady = Case({}, [bench.rows(rows)], 64, rows, flags, rate=rate, threads=2)
    result = bench.take_turns([alone, *cases, steady])
    bench.keep("prefetch", rows=result[:-1], file=result[-1], burst_bytes=burst_bytes, pause_s=pause_s)


def partitions(bench):
    """Two workers, the same rows in files of other sizes."""
    rows = 512 if bench.quick else 2048
    sizes = {"one file": [rows]}
    sizes.update({"%d files of %d" % (rows // size, size): [size] * (rows // size) for size in (512, 128, 32) if size < rows})
    uneven = [rows // 2, rows // 4, rows // 8, rows // 16, rows // 32, rows // 32]
    cases = []

    def add(form, how, pattern):
        cases.append(Case({"form": form, "split": how}, [pattern], 256, rows, ["--workers", 2, "--split", how], threads=2))

    for form, each in sizes.items():
        pattern = bench.files("files-%d-%d" % (len(each), each[0]), each)
        for how in ("rows", "bytes"):
            add(form, how, pattern)
    add("6 files of %d to %d" % (max(uneven), min(uneven)), "bytes", bench.files("uneven-%d" % rows, uneven))
    packed = bench.files("packed-%d" % rows, [128] * (rows // 128), gzip.compress)
    for how in ("rows", "bytes"):
        add("%d gzip files of 128" % (rows // 128), how, packed)
    bench.keep("partitions", rows=bench.take_turns(cases))


def per_node(bench):
    """Eight workers on fewer and fewer nodes; then the two cores of this machine divided among workers."""
    result, workers_all, batch = [], 8, 64
    rows = batch * (3 if bench.quick else 8)
    ways = {"central": DOCUMENT, "ring": RING, "hierarchical": all_reduce("hierarchical")}
    for count in (4,) if bench.quick else (8, 4, 2):
        each = workers_all // count
        with bench.nodes(count) as nodes:
            cases = [Case({"nodes": count, "per_node": each, "topology": topology}, [bench.rows(rows)], batch, rows, flags,
                          launch=nodes.launch(each)) for topology, flags in ways.items()]
            result += bench.take_turns(cases)
    rows = 768 if bench.quick else 2304
    cases = [Case({"workers": 1, "threads": 2}, [bench.rows(rows)], 256, rows, ["--workers", 1], threads=2)]
    cases += [Case({"workers": count, "threads": 1}, [bench.rows(rows)], 256, rows, RING, launch=["launch", "-n", count])
              for count in (2, 4, 8)]
    bench.keep("per-node", rows=result, cores=bench.take_turns(cases), mbit=MBIT)


def networks(bench):
    """The document's networks, for smaller images: what they compute and what they send."""
    shapes = {"alexnet": (3, 67, 67), "googlenet": (3, 80, 80), "cifar-quick": (3, 32, 32)}
    result = []
    for model, shape in shapes.items():
        rows = 32 if bench.quick else 96
        data = bench.idx(shape, rows)
        cases = [Case({"model": model, "shape": shape, "way": "alone"}, data, 32, rows, ["--workers", 1], model,
                      rate=0.0001, before=on_one_core())]
        cases += [Case({"model": model, "shape": shape, "way": way}, data, 32, rows, [*how, "--no-shared-memory"],
                       model, rate=0.0001, launch=["launch", "-n", 4]) for way, how in (("central", DOCUMENT), ("ring", RING))]
        result += bench.take_turns(cases)
    bench.keep("networks", rows=result)


SWEEPS = {"split": split, "workers": workers, "links": links, "frequency": frequency, "prefetch": prefetch,
          "partitions": partitions, "per-node": per_node, "networks": networks}
NEED_NODES = ("links", "frequency", "per-node")
