#!/usr/bin/python3 -B
"""What overlap and codecs are worth on a slow network: two hosts (network namespaces), one worker and one core each,
whose cards send 100 Mbit/s. The batch is chosen by a measurement so that an update computes about as long as it
exchanges. Runs with and without overlap take turns, then each codec has its turns; reported are medians of the time of
an update and the bytes a worker sends for it. A benchmark: it fails only when overlap is not faster."""
import random
import statistics
import struct
import sys

from cluster import Hosts, arguments, enter, last_line, run, scratch

NAMES = ["alpha", "beta"]
BYTES_S = 100e6 / 8 * 0.95  # what TCP gets of it
NETWORKS = {
    "perceptron": """input = [784]
layers = [{dense = 2048, activation = "relu"}, {dense = 2048, activation = "relu"}, {dense = 10}]
""",
    # Convolutions compute most and come first, most weights come last: back-propagation begins with what is to be sent.
    "lenet5": """input = [1, 28, 28]
layers = [{convolution = 20, kernel = 5}, {max-pool = 2}, {convolution = 50, kernel = 5}, {max-pool = 2},
          {dense = 500, activation = "relu"}, {dense = 10}]
"""}
OVERLAP = {"without overlap": ["--no-overlap"], "overlap": [], "overlap, small buckets": ["--bucket", "65536"]}
CODECS = {"fp16": [], "int8": [], "1bit": [], "topk": [], "power": []}


def write_images(rows):
    """Pictures of noise with a bright square whose place is the label, as MNIST's files are."""
    noise = random.Random(1)
    pixels, labels = bytearray(), bytearray()
    for _ in range(rows):
        label = noise.randrange(10)
        picture = bytearray(noise.randbytes(784))
        top, left = 14 * (label // 5), 5 * (label % 5)
        for row in range(top, top + 10):
            picture[28 * row + left:28 * row + left + 5] = b"\xff" * 5
        pixels += picture
        labels.append(label)
    with open("train-images-idx3-ubyte", "wb") as images:
        images.write(struct.pack(">4I", 0x803, rows, 28, 28) + pixels)
    with open("train-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2I", 0x801, rows) + labels)


class Link:
    def __init__(self, program, directory, rate, flags):
        self.program, self.flags = program, flags
        self.hosts = Hosts(directory, NAMES)
        self.hosts.shape(rate)

    def train(self, network, batch, flags):
        """Of an update: seconds, seconds by what was done, bytes sent by a worker."""
        done = run([self.program, "launch", "-H", ",".join(NAMES), "--ssh", self.hosts.ssh, "--", "train",
                    "train-images-idx3-ubyte", "--model", network + ".toml", "--epochs", 1, "--batch", batch,
                    "--threads", 1, "--topology", "ring", "--quiet", "--json"] + self.flags + flags, limit_s=300)
        if done.code != 0:
            sys.exit("%s: %s" % (" ".join(done.command), last_line(done.err)))
        workers = done.json()["workers"]
        steps = workers[0]["steps"]
        parts = {name: max(worker[name] for worker in workers) / steps
                 for name in ("compute", "wait", "exchange", "apply")}
        seconds = max(sum(worker[name] for name in parts) for worker in workers) / steps
        return seconds, parts, max(worker["bytes_sent"] for worker in workers) / steps


def show(name, runs, dense_s=None):
    seconds = statistics.median(run[0] for run in runs)
    parts = {name: statistics.median(run[1][name] for run in runs) for name in runs[0][1]}
    print("%-22s %7.3f s   %s   %8.3f MB%s" % (
        name, seconds, "  ".join("%s %.3f" % part for part in parts.items()), runs[0][2] / 1e6,
        "   %.2f times as fast" % (dense_s / seconds) if dense_s else ""), flush=True)
    return seconds


def choose_batch(link, network):
    """Rows and updates of which a run of about --seconds is made, half of it exchange."""
    batch = 128
    for _ in range(2):  # large batches compute faster by the row than small ones
        write_images(3 * batch)
        _, parts, sent = link.train(network, batch, ["--no-overlap"])
        batch = max(2, int(sent / BYTES_S / (parts["compute"] / batch)))
    return batch, sent


def measure(link, network, seconds, rounds, codecs):
    with open(network + ".toml", "w") as file:
        file.write(NETWORKS[network])
    batch, sent = choose_batch(link, network)
    steps = max(4, int(seconds / (2 * sent / BYTES_S)))
    write_images(steps * batch)
    print("\n%s: %.1f MB an update, %.2f s at 95 %% of the rate; batch %d, %d updates a run, medians of %d" % (
        network, sent / 1e6, sent / BYTES_S, batch, steps, rounds), flush=True)
    runs = {name: [] for name in OVERLAP}
    for _ in range(rounds):
        for name, flags in OVERLAP.items():
            runs[name].append(link.train(network, batch, flags))
    without = show("without overlap", runs["without overlap"])
    for name in list(OVERLAP)[1:]:
        show(name, runs[name], without)
    ratios = [a[0] / b[0] for a, b in zip(runs["without overlap"], runs["overlap"])]
    print("overlap, round by round: %s times as fast" % " ".join("%.2f" % ratio for ratio in ratios))
    for codec in codecs:
        flags = ["--codec", codec] + CODECS[codec]
        show("overlap, " + codec, [link.train(network, batch, flags) for _ in range(rounds)], without)
    return statistics.median(ratios)


def main():
    parser = arguments(__doc__, 1800)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each (%(default)s)")
    parser.add_argument("--seconds", type=float, default=8, metavar="S", help="of a run, about (%(default)s)")
    parser.add_argument("--rate", default="100mbit", help="of the network, as tc has it (%(default)s)")
    parser.add_argument("--network", choices=list(NETWORKS), help="one of them alone")
    parser.add_argument("--flags", default="", help="more for freshet train, such as '--bucket 65536'")
    parser.add_argument("--no-codecs", action="store_true", help="overlap alone")
    options = parser.parse_args()
    program = enter(options)
    with scratch() as directory:
        link = Link(program, directory, options.rate, options.flags.split())
        gains = [measure(link, network, options.seconds, options.rounds, [] if options.no_codecs else CODECS)
                 for network in NETWORKS if options.network in (None, network)]
    sys.exit(0 if min(gains) > 1 else "FAIL: overlap is not faster")


main()
